"""Each index of the schema has a query of the product that uses it: an index costs every write."""

import re
from collections.abc import Callable
from sqlite3 import Connection
from types import SimpleNamespace

import pytest

from pipeline.features.arcs import store as arcs
from pipeline.features.bridges import store as bridges
from pipeline.features.entities import alias_store as entity_aliases, store as entities
from pipeline.features.map import store as maps
from pipeline.features.review import store as review
from pipeline.kernel.records import Draft, FactKey, Filter, Kind, Scope, ScopeKind, Viewer
from pipeline.kernel.store import (
    action_history,
    agent_sessions,
    audit,
    conclusions,
    edges,
    facts,
    goals,
    history,
    impressions,
    index_state,
    ingested,
    memories,
    oplog,
    refusals,
    runs,
    subagents,
    tables,
    turns,
    work,
)
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database

pytestmark = pytest.mark.files

AT = "2026-03-02T08:00:00.000Z"
ANYONE, PROJECT = Viewer(), Scope(ScopeKind.WORKSPACE, "")


def erase(db):
    """Erase a memory, which this store does not have."""
    tables.erase_memory(db, SimpleNamespace(seq=99, id="m", content_hash="x"))


# By index: a function that would read a whole table without it.
NEEDED_BY: dict[str, Callable[[Connection], object]] = {
    "action_error": lambda db: action_history.list_occurrences(db, ["x"], None),
    "action_session": lambda db: agent_sessions.list_actions(db, "s", AT, 5),
    "action_time": lambda db: agent_sessions.list_sessions_since(db, AT, 5),
    "admission_turned_away": lambda db: review.count_rejections(db, "x"),
    "agent_session_parent": lambda db: subagents.list_subagents(db, "s"),
    "arc_member_arc": lambda db: arcs.drop(db, 1),
    "audit_memory": lambda db: audit.merge_of(db, "m"),
    "conclusion_session": lambda db: conclusions.list_of_sessions(db, ["s"]),
    "edge_to": erase,
    "embedding_outdated": lambda db: index_state.list_outdated(db, [1]),
    "entity_alias_target": lambda db: entity_aliases.list_aliases(db, ("person", "ada")),
    "history_about": erase,
    "history_memory": lambda db: history.of(db, 1),
    "impression_memory": erase,
    "impression_session": lambda db: impressions.list_unanswered(db, "s"),
    "ingest_item_source": lambda db: ingested.items(db, "notes", 5, None),
    "ingest_memory_hash": lambda db: ingested.of_text(db, "x"),
    "ingest_memory_memory": lambda db: ingested.record_restored(db, 1),
    "job_run_name": lambda db: runs.last(db, "decay"),
    "map_tie_high": lambda db: maps.forget(db, [1]),
    "map_tie_low": lambda db: maps.forget(db, [1]),
    "memory_archived": lambda db: entities.page(db, ANYONE, "", None, 5, None),
    "memory_candidate": review.count_waiting,
    "memory_expires": lambda db: memories.list_ended(db, AT, 5),
    "memory_fact": lambda db: facts.find_valid(db, FactKey("staging", "port"), PROJECT, AT),
    "memory_journal": lambda db: agent_sessions.list_sessions_since(db, AT, 5),
    "memory_kind": lambda db: memories.page(db, Filter(kinds=(Kind.GOAL,), viewer=ANYONE), 5, None),
    "memory_merged": lambda db: memories.list_merged_into(db, 1),
    "memory_owned": lambda db: memories.list_owned_seqs(db, Filter(viewer=ANYONE)),
    "memory_session": lambda db: turns.find_last_memory_of_session(db, "s"),
    "memory_unfinished_goal": lambda db: goals.list_unfinished(db, ANYONE, 5),
    "memory_valid_from": lambda db: facts.find_last_validity_change(db, AT),
    "memory_valid_to": lambda db: facts.find_last_validity_change(db, AT),
    "mention_entity": lambda db: entities.newest(db, 1, 5),
    "operation_memory": lambda db: oplog.list_keys_about(db, ["m"]),
    "operation_merged": lambda db: oplog.list_merged_into(db, ["m"]),
    "operation_other": lambda db: oplog.list_keys_about(db, ["m"]),
    "operation_purge": lambda db: oplog.list_purged(db, ["m"]),
    "pair_newer": erase,
    "refusal_memory": lambda db: refusals.take_back(db, "m"),
    "seen_memory": erase,
    "tail_change": lambda db: index_state.list_tail_after(db, 1),
    "turn_session": lambda db: turns.page(db, "s", 5, None),
    "turn_text": lambda db: turns.find_copies(db, [1]),
    "work_leased": work.list_owners,
}
# They enforce a rule: one entry of an id and memory, one active memory of a text, one migration.
RULES = {"history_uid", "memory_active_text", "idx__sqlite_migrations_migration_set_name"}


@pytest.fixture(scope="module")
def database():
    with scratch_database() as database:
        for text in ("CSW is the case worker", "The case worker is away"):
            accept(database, Draft(text))
        mined = [
            bridges.MinedBridge("CSW", "case worker", bridges.BridgeSource.DEFINITION, 1),
            bridges.MinedBridge("CW", "case worker", bridges.BridgeSource.DEFINITION, 2),
        ]
        with database.write() as db:
            bridges.replace(db, mined)
        yield database


def list_indexes(db):
    """List the indexes that the schema names; SQLite makes those of primary and unique keys itself."""
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")}


def find_plans(db, run):
    """Return the plans of all statements that a function runs."""
    asked = []
    db.set_trace_callback(asked.append)
    run(db)
    db.set_trace_callback(None)
    statements = [one for one in asked if re.match(r"\s*(SELECT|WITH|UPDATE|DELETE|INSERT)", one)]
    return [row[3] for one in statements for row in db.execute(f"EXPLAIN QUERY PLAN {one}")]


def test_each_index_is_listed(database):
    with database.read() as db:
        assert list_indexes(db) == NEEDED_BY.keys() | RULES


@pytest.mark.parametrize("index", NEEDED_BY)
def test_a_query_uses_the_index(database, index):
    with database.write() as db:
        plans = find_plans(db, NEEDED_BY[index])
    assert [plan for plan in plans if re.search(rf"INDEX {index}\b", plan)], plans


def test_memories_of_a_kind_in_a_session_are_found_by_their_session(database):
    criteria = Filter(kinds=(Kind.LESSON,), session_id="s", viewer=ANYONE)
    with database.write() as db:
        plans = find_plans(db, lambda db: memories.page(db, criteria, 5, None))
    assert any("INDEX memory_session" in plan for plan in plans), plans


def test_of_superseding_memories_only_those_with_an_edge_are_read(database):
    with database.write() as db:
        plans = find_plans(db, lambda db: edges.list_superseding(db, [1, 2]))
    places = [next(place for place, plan in enumerate(plans) if name in plan) for name in ("edge_to", "SEARCH old")]
    assert places == sorted(places), plans
