"""What waits for a person: counted, and of contradictions only what still stands between two memories."""

import pytest

from pipeline.features.review import store as review
from pipeline.kernel.records import OWNER, Draft, EdgeKind, FactKey, Scope, ScopeKind, Source, Viewer
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import duplicates, edges, memories
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from pipeline.write.accept import accept
from pipeline.write.facts import end_fact, set_fact
from tests.fakes.in_process import scratch_database

MINE = Scope(ScopeKind.AGENT, "claude")


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def keep(database, content, **fields):
    memory_id = accept(database, Draft(content, **fields), WritePolicy(review=True)).id
    with database.read() as db:
        return memories.get(db, memory_id)


def contradict(database, first, second, made_by="edges-job"):
    with database.write() as db:
        edges.add(db, first.seq, EdgeKind.CONTRADICTS, second.seq, made_by, utc_now())


def denials(database, limit=50, before=None):
    with database.read() as db:
        return [(one.from_seq, one.to_seq) for one in review.list_contradictions(db, limit, before)]


def count_waiting(database):
    with database.read() as db:
        return review.count_waiting(db)


def notes(database, count):
    return [keep(database, f"Note number {number} about the harbour", scope=MINE) for number in range(count)]


def test_contradictions_come_in_pages_the_latest_first(database):
    made = notes(database, 6)
    for first, second in ((5, 0), (5, 2), (4, 3), (3, 1)):
        contradict(database, made[first], made[second])
    expected = [(made[a].seq, made[b].seq) for a, b in ((5, 2), (5, 0), (4, 3), (3, 1))]
    assert denials(database) == expected
    found, before = [], None
    while page := denials(database, 1, before):
        found += page
        before = page[-1]
    assert found == expected
    assert count_waiting(database).contradictions == 4


def test_mutual_contradiction_is_listed_once(database):
    one, other = notes(database, 2)
    contradict(database, one, other)
    contradict(database, other, one)
    assert denials(database) == [(other.seq, one.seq)]


def test_only_active_memories_are_listed_as_contradictions(database):
    made = notes(database, 4)
    contradict(database, made[1], made[0])
    contradict(database, made[3], made[2])
    revise.archive(database, made[0].id)
    with database.write() as db:
        memories.update(db, made[3].seq, {"candidate": 1}, utc_now())
    assert denials(database) == []


def test_a_fact_that_ended_denies_nothing(database):
    key = FactKey("staging", "port")
    fact = set_fact(database, key, 5433, Draft(content=""), WritePolicy())
    [note] = notes(database, 1)
    with database.read() as db:
        fact = memories.get(db, fact.id)
    contradict(database, fact, note)
    assert len(denials(database)) == 1
    end_fact(database, key, Scope())
    assert denials(database) == []


def test_everything_that_waits_is_counted_and_nothing_else(database):
    assert count_waiting(database) == review.Waiting(0, 0, 0, 0)
    keep(database, "Deploys of the shop wait for the tests", source=Source.AMBIENT)
    turned_away = keep(database, "Deploys of the portal wait for the checks", source=Source.AMBIENT)
    revise.archive(database, turned_away.id)
    made = notes(database, 4)
    with database.write() as db:
        duplicates.add(db, made[0].seq, made[1].seq, 0.9, ["one contains more"], utc_now())
        duplicates.add(db, made[2].seq, made[3].seq, 0.85, [], utc_now())
        duplicates.keep(db, made[2].seq, made[3].seq, utc_now())
    assert count_waiting(database) == review.Waiting(1, 1, 0, 0)
    revise.archive(database, made[0].id)
    assert count_waiting(database).pairs == 0


def test_more_than_enough_is_not_counted(database, monkeypatch):
    monkeypatch.setattr(review, "MOST_COUNTED", 2)
    for number in range(4):
        keep(database, f"Deploys of the shop {number} wait for the tests", source=Source.AMBIENT)
    assert count_waiting(database).candidates == 2


def test_pairs_of_a_memory_are_listed_by_similarity(database):
    made = notes(database, 4)
    with database.write() as db:
        for number, cosine in ((1, 0.81), (2, 0.9), (3, 0.85)):
            duplicates.add(db, made[0].seq, made[number].seq, cosine, [], utc_now())
        duplicates.keep(db, made[0].seq, made[3].seq, utc_now())
    with database.read() as db:
        assert [pair.newer_seq for pair in duplicates.list_pairs_of(db, made[0].seq, 5)] == [made[2].seq, made[1].seq]
        assert [pair.older_seq for pair in duplicates.list_pairs_of(db, made[1].seq, 5)] == [made[0].seq]
        assert duplicates.list_pairs_of(db, made[3].seq, 5) == []


@pytest.mark.parametrize(("viewer", "seen"), [(OWNER, 1), (Viewer(agent="claude"), 1), (Viewer(), 0)])
def test_waiting_pair_is_listed_only_to_its_viewers(database, viewer, seen):
    one, other = notes(database, 2)
    with database.write() as db:
        duplicates.add(db, one.seq, other.seq, 0.9, [], utc_now())
    with database.read() as db:
        assert len(duplicates.list_waiting(db, viewer, 5, None)) == seen


@pytest.mark.files
def test_pairs_are_looked_up_one_by_one(database):
    seen = []
    with database.read() as db:
        db.set_trace_callback(seen.append)
        duplicates.list_waiting(db, OWNER, 5, None)
        db.set_trace_callback(None)
        [statement] = [one for one in seen if one.startswith("SELECT")]
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")]
    # A scan of all memories for each of all memories never ends in a large workspace.
    assert not any("SCAN memory" in step for step in plan), plan
