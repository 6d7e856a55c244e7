"""Of people too the SQL condition and the rule in Python say the same, and nobody sees what is another's own."""

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import OWNED, OWNER, Draft, Filter, Scope, ScopeKind, Viewer
from pipeline.kernel.records.people import (
    PRIVATE,
    display_name,
    owner_of,
    qualified_name,
    qualified_scope,
    qualified_viewer,
)
from pipeline.kernel.store import memories
from pipeline.kernel.store.visibility import is_open_to, reaches, viewer_within
from pipeline.text.normalize import normalize_id
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database

# One's id is how another's begins.
PEOPLE = (None, "ada", "ad", "ada-2", "bob")
NAMES = ("x", "y", "ada", "token", "password=x")
KINDS = (ScopeKind.USER, ScopeKind.AGENT, ScopeKind.SESSION, ScopeKind.TASK)
NAMED = [Scope(kind, name) for kind in KINDS for name in NAMES]
SCOPES = {qualified_scope(person, scope) for person in PEOPLE for scope in (Scope(), Scope(ScopeKind.USER), *NAMED)}
VIEWERS = st.builds(
    qualified_viewer,
    st.sampled_from(PEOPLE),
    st.builds(Viewer, st.none() | st.sampled_from(NAMES), *[st.none() | st.sampled_from(NAMES)] * 3),
)


@pytest.fixture(scope="module")
def stored():
    with scratch_database() as database:
        for scope in SCOPES:
            accept(database, Draft("Said in every scope", scope=scope))
        with database.read() as db:
            scopes = {seq: memory.scope for seq, memory in memories.by_seqs(db, memories.all_seqs(db)).items()}
        # No name of theirs is changed on its way to the store.
        assert set(scopes.values()) == SCOPES
        yield database, scopes


def visible(stored, viewer: Viewer) -> set[Scope]:
    database, scopes = stored
    with database.read() as db:
        return {scopes[seq] for seq in memories.visible_seqs(db, Filter(viewer=viewer))}


@given(viewer=VIEWERS)
def test_the_condition_agrees_with_the_rule(stored, viewer):
    found = visible(stored, viewer)
    assert found == {scope for scope in SCOPES if reaches(scope, viewer)}
    assert all(is_open_to(scope, viewer.person) for scope in found)


@pytest.mark.parametrize("person", PEOPLE)
def test_viewer_of_everything_sees_all_but_private_memories_of_others(stored, person):
    found = visible(stored, Viewer(everything=True, person=person))
    assert found == {scope for scope in SCOPES if scope.kind not in PRIVATE or owner_of(scope.id) == person}
    assert person is not None or found == visible(stored, OWNER)


@pytest.mark.parametrize("person", PEOPLE)
def test_viewer_within_a_persons_scope_is_that_person(person):
    for scope in (scope for scope in SCOPES if is_open_to(scope, person)):
        seen = {other for other in SCOPES if reaches(other, viewer_within(scope, person))}
        assert all(is_open_to(other, person) for other in seen)


@given(st.sampled_from(PEOPLE[1:]), st.text(min_size=1).filter(lambda name: OWNED not in name))
def test_a_name_comes_back_as_it_was_given(person, name):
    stored = qualified_name(person, name)
    assert (owner_of(stored), display_name(stored)) == (person, name)
    assert (owner_of(name), display_name(name)) == (None, name)


@given(st.sampled_from(PEOPLE[1:]), st.text(min_size=1, max_size=20))
def test_no_normalization_takes_the_person_from_a_name(person, name):
    given_name = normalize_id(name)
    if given_name and OWNED not in given_name:
        assert owner_of(normalize_id(f"{person}{OWNED}{given_name}")) == person
