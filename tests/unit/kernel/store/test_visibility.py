"""The SQL condition and the rule in Python say the same of every scope and every viewer."""

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import OWNER, Draft, Filter, Kind, Scope, ScopeKind, Viewer
from pipeline.kernel.store import memories
from pipeline.kernel.store.visibility import reaches, viewer_within
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database

OWNED = (ScopeKind.USER, ScopeKind.AGENT, ScopeKind.SESSION, ScopeKind.TASK)
NAMES = ("x", "X", "xx", "%", "_", "x' OR '1'='1", "null", "workspace", "0", "工程")
EVERYONE = (Scope(ScopeKind.WORKSPACE), Scope(ScopeKind.USER))
SCOPES = (*EVERYONE, *(Scope(kind, name) for kind in OWNED for name in NAMES))
# An empty name is no one's, though a scope without an owner is stored by it.
NAMED = st.none() | st.sampled_from(("", *NAMES))
VIEWERS = st.builds(Viewer, NAMED, NAMED, NAMED, NAMED)


@pytest.fixture(scope="module")
def stored():
    """A database with a memory of every scope, and their scopes by row number."""
    with scratch_database() as database:
        for scope in SCOPES:
            accept(database, Draft("Said in every scope", scope=scope))
        with database.read() as db:
            scopes = {seq: memory.scope for seq, memory in memories.by_seqs(db, memories.all_seqs(db)).items()}
        assert sorted(scopes.values(), key=str) == sorted(SCOPES, key=str)
        yield database, scopes


def visible(stored, wanted: Filter) -> set[Scope]:
    database, scopes = stored
    with database.read() as db:
        return {scopes[seq] for seq in memories.visible_seqs(db, wanted)}


@given(viewer=VIEWERS)
def test_the_condition_agrees_with_the_rule(stored, viewer):
    assert visible(stored, Filter(viewer=viewer)) == {scope for scope in SCOPES if reaches(scope, viewer)}


@given(viewer=VIEWERS)
def test_owned_and_public_memories_are_exactly_the_visible_ones(stored, viewer):
    database, scopes = stored
    with database.read() as db:
        owned = {scopes[seq] for seq in memories.list_owned_seqs(db, Filter(viewer=viewer))}
        everyone = {scopes[row.seq] for row in memories.list_ranking_rows(db, -1) if row.visible}
    assert everyone == set(EVERYONE)
    assert owned | everyone == visible(stored, Filter(viewer=viewer))


def test_the_homes_owner_sees_every_scope(stored):
    database, _ = stored
    assert visible(stored, Filter(viewer=OWNER)) == set(SCOPES)
    assert all(reaches(scope, OWNER) for scope in SCOPES)
    assert visible(stored, Filter(viewer=OWNER, scope=SCOPES[2])) == {SCOPES[2]}
    with database.read() as db:
        assert memories.owns_any(db, OWNER)


@given(viewer=VIEWERS)
def test_viewer_of_a_scope_kind_sees_no_other_kinds(stored, viewer):
    for scope in visible(stored, Filter(viewer=viewer)):
        assert scope in EVERYONE or getattr(viewer, scope.kind) == scope.id


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_a_named_scope_is_exactly_that_scope(stored, scope):
    assert visible(stored, Filter(scope=scope)) == {scope}


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_viewer_within_a_scope_sees_it_and_public_scopes(scope):
    home = viewer_within(scope)
    assert {other for other in SCOPES if reaches(other, home)} == {scope, *EVERYONE}


@given(viewer=VIEWERS, session=st.sampled_from(NAMES))
def test_session_filter_sets_the_viewers_session_by_default(stored, viewer, session):
    database, _ = stored
    asked = Filter(viewer=viewer, session_id=session)
    with database.write() as db:
        db.execute("UPDATE memory SET session_id = ?", (session,))
    effective = Viewer(viewer.user, viewer.agent, viewer.session or session, viewer.task)
    assert visible(stored, asked) == {scope for scope in SCOPES if reaches(scope, effective)}


@given(viewer=VIEWERS)
def test_other_filters_do_not_widen_visibility(stored, viewer):
    reach = visible(stored, Filter(viewer=viewer))
    assert visible(stored, Filter(kinds=(Kind.FACT,), viewer=viewer)) == reach
    assert visible(stored, Filter(as_of="9999-01-01T00:00:00.000Z", viewer=viewer)) == reach
    assert visible(stored, Filter(archived=True, viewer=viewer)) == set()


def test_an_empty_name_owns_nothing():
    assert not reaches(Scope(ScopeKind.AGENT), Viewer(agent=""))
    assert not reaches(Scope(ScopeKind.AGENT, ""), Viewer(agent=""))
