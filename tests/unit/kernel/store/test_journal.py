"""The journal: whatever is asked for comes in the order of time, page by page, and whole."""

import pytest
from hypothesis import given, strategies as st

from pipeline.features.entities import store as entities
from pipeline.kernel.records import Anchor, EntityKind, FactKey, Kind, Scope, ScopeKind, Source
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store import journal, memories
from pipeline.kernel.store.journal import MOST_COUNTED, ArchivedFilter, JournalPosition, JournalQuery, SessionSpan
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import set_fact, text_of, write
from tests.fakes.properties import opens_stores

KINDS = (Kind.FACT, Kind.DECISION)
SOURCES = (Source.USER, Source.IMPORT)
SCOPES = (Scope(), Scope(ScopeKind.AGENT, "claude"), Scope(ScopeKind.AGENT, "other"))
TAGS = ("ops", "ops-2")
SESSIONS = ("s1", "s2", None)
NAMES = ("Door.py", "door.py", "gate.py")

bodies = st.fixed_dictionaries(
    {
        "day": st.integers(0, 3),
        "kind": st.sampled_from(KINDS),
        "source": st.sampled_from(SOURCES),
        "scope": st.sampled_from(SCOPES),
        "tags": st.lists(st.sampled_from(TAGS), unique=True).map(tuple),
        "session_id": st.sampled_from(SESSIONS),
        "named": st.sampled_from((*NAMES, None)),
        "archived": st.booleans(),
        "candidate": st.sampled_from([False, False, False, True]),
    }
)
sought = st.builds(
    JournalQuery,
    kind=st.none() | st.sampled_from(KINDS),
    source=st.none() | st.sampled_from(SOURCES),
    scope=st.none() | st.sampled_from([ScopeKind.WORKSPACE, ScopeKind.AGENT, ScopeKind.TASK]),
    owner=st.none() | st.just("claude"),
    tag=st.none() | st.sampled_from(TAGS),
    entity=st.none() | st.sampled_from((*NAMES, "GATE.py")),
    session_id=st.none() | st.sampled_from(["s1", "s2"]),
    since=st.none() | st.integers(0, 3).map(text_of),
    until=st.none() | st.integers(0, 4).map(text_of),
    archived=st.none() | st.sampled_from(ArchivedFilter),
)


def fill(database, given_bodies):
    """Write memories and return (id, body) of each."""
    written = []
    for number, body in enumerate(given_bodies):
        fields = {name: body[name] for name in ("kind", "source", "scope", "tags", "session_id")}
        written.append((write(database, body["day"], f"Note number {number} on a subject", **fields), body))
    with database.write() as db:
        for memory_id, body in written:
            seq = memories.get(db, memory_id).seq
            if body["named"] is not None:
                name = body["named"]
                entities.link(db, seq, [EntityMention(EntityKind.FILE, name, name, 0, len(name))])
            if body["archived"]:
                memories.archive(db, seq, utc_now())
            if body["candidate"]:
                memories.update(db, seq, {"candidate": 1}, utc_now())
    return written


def fits(wanted, body):
    at = text_of(body["day"])
    return (
        not body["candidate"]
        and (wanted.archived is ArchivedFilter.ALSO or body["archived"] is (wanted.archived is ArchivedFilter.ONLY))
        and wanted.kind in (None, body["kind"])
        and wanted.source in (None, body["source"])
        and wanted.scope in (None, body["scope"].kind)
        and (wanted.owner is None or body["scope"].id == wanted.owner)
        and (wanted.tag is None or wanted.tag in body["tags"])
        and (wanted.entity is None or (body["named"] or "").lower() == wanted.entity.lower())
        and wanted.session_id in (None, body["session_id"])
        and (wanted.since is None or at >= wanted.since)
        and (wanted.until is None or at < wanted.until)
    )


def read_pages(database, wanted, size):
    found, place = [], None
    while True:
        with database.read() as db:
            page = journal.page(db, wanted, size, place)
        if not page:
            return found
        found += page
        place = JournalPosition(page[-1].occurred_at, page[-1].seq)


@opens_stores
@given(st.lists(bodies, max_size=12), sought, st.integers(1, 4))
def test_filtered_pages_together_list_exactly_the_matching_memories(given_bodies, wanted, size):
    with scratch_database() as database:
        written = fill(database, given_bodies)
        found = read_pages(database, wanted, size)
        assert {memory.id for memory in found} == {memory_id for memory_id, body in written if fits(wanted, body)}
        order = [(memory.occurred_at, memory.seq) for memory in found]
        assert order == sorted(set(order), reverse=True)


def test_an_entity_is_named_by_its_id_too():
    with scratch_database() as database:
        body = {"day": 0, "kind": Kind.FACT, "source": Source.USER, "scope": Scope(), "tags": (), "session_id": None}
        [(memory_id, _)] = fill(database, [body | {"named": "gate.py", "archived": False, "candidate": False}])
        with database.read() as db:
            [entity] = entities.of(db, memories.get(db, memory_id).seq)
            assert [one.id for one in journal.page(db, JournalQuery(entity=entity.id), 5, None)] == [memory_id]
            assert journal.page(db, JournalQuery(entity="nobody"), 5, None) == []


def test_ended_facts_are_listed_in_the_journal():
    with scratch_database() as database:
        for day, value in ((0, 5433), (1, 6543)):
            set_fact(database, day, FactKey("staging", "port"), value)
        with database.read() as db:
            assert [one.details["value"] for one in journal.page(db, JournalQuery(), 5, None)] == [6543, 5433]


def test_a_session_is_as_long_as_its_active_memories():
    with scratch_database() as database:
        ids = [write(database, day, f"Said on day {day}", session_id="s1") for day in (3, 1, 2, 9)]
        write(database, 20, "Said elsewhere", session_id="s2")
        revise.archive(database, ids[-1])
        with database.read() as db:
            assert journal.span(db, "s1") == SessionSpan(text_of(1), text_of(3), 3)
            assert journal.span(db, "nobody") is None


def test_session_span_counts_up_to_its_limit(monkeypatch):
    monkeypatch.setattr(journal, "MOST_COUNTED", 3)
    with scratch_database() as database:
        for day in range(5):
            write(database, day, f"Said on day {day}", session_id="s1")
        with database.read() as db:
            assert journal.span(db, "s1") == SessionSpan(text_of(0), text_of(4), 3)
    assert MOST_COUNTED > 100


@pytest.mark.files
@pytest.mark.parametrize(
    "wanted", [JournalQuery(), JournalQuery(archived=ArchivedFilter.ALSO), JournalQuery(scope=ScopeKind.WORKSPACE)]
)
def test_common_filters_are_read_by_the_time_index(wanted):
    with scratch_database() as database:
        write(database, 0, "Anything", anchor=Anchor("src/door.py"))
        seen = []
        with database.read() as db:
            db.set_trace_callback(seen.append)
            journal.page(db, wanted, 5, None)
            db.set_trace_callback(None)
            [statement] = [one for one in seen if one.startswith("SELECT")]
            plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}"))
    assert "memory_journal" in plan
