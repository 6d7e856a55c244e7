"""An arc is stored whole or not at all, and never says what may no longer be said."""

import pytest

from pipeline.features.arcs import store as arcs
from pipeline.features.arcs.store import SHOWN_MEMBERS, Arc, ArcStatus
from pipeline.kernel.records import Draft, EdgeKind, Kind, Revision, Scope, ScopeKind, Viewer
from pipeline.kernel.store import edges
from pipeline.write.accept import accept
from pipeline.write.revise import archive, edit, purge
from tests.fakes.in_process import scratch_database

AT = "2026-06-15T00:00:00.000Z"


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def write(database, count, text="Memory number {}.", **fields):
    for number in range(1, count + 1):
        accept(
            database, Draft(text.format(number), occurred_at=f"2026-06-{number % 28 + 1:02}T00:00:00.000Z", **fields)
        )


def arc(members, title="Memory", summary="", status=ArcStatus.ACTIVE, last_at=AT, scope=None):
    return Arc(title, summary, status, scope or Scope(), AT, last_at, tuple(members))


def put_arc(database, *args, row=None, **fields):
    with database.write() as db:
        return arcs.put(db, row, arc(*args, **fields), AT)


def list_arcs(database, viewer=None, status=None, limit=50, before=None):
    with database.read() as db:
        return arcs.page(db, viewer or Viewer(), status, limit, before)


def memory_id(database, seq):
    with database.read() as db:
        return db.execute("SELECT id FROM memory WHERE seq = ?", (seq,)).fetchone()[0]


def test_stored_arc_is_listed_with_its_members(database):
    write(database, 4)
    assert put_arc(database, [3, 1, 2], title="Memory · number", summary="Memory number 1.\nMemory number 3.")
    [shown] = list_arcs(database)
    assert [member.seq for member in shown.members] == [3, 1, 2]
    assert (shown.title, shown.summary, shown.size) == ("Memory · number", "Memory number 1. Memory number 3.", 3)
    with database.read() as db:
        [stored] = arcs.of_scope(db, Scope())
    assert stored.arc.members == (3, 1, 2)
    assert stored.id == shown.id


def test_arc_with_lost_members_has_no_summary_until_stored_again(database):
    write(database, 6)
    put_arc(database, [1, 2, 3, 4], summary="Memory number 4.")
    put_arc(database, [4, 5, 6], summary="Memory number 4.")
    with database.read() as db:
        first, second = arcs.of_scope(db, Scope())
    assert (first.arc.members, first.arc.title, first.arc.summary) == ((1, 2, 3), "", "")
    assert second.arc.summary == "Memory number 4."
    purge(database, memory_id(database, 4))
    with database.read() as db:
        assert [found.seq for found in arcs.of_scope(db, Scope())] == [first.seq]
        assert db.execute("SELECT count(*) FROM arc WHERE title || summary LIKE '%4%'").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM arc_member").fetchone() == (3,)
    assert [found.title for found in list_arcs(database)] == ["Memory number 3."]


def test_arc_with_an_archived_member_is_not_stored(database):
    write(database, 3)
    archive(database, memory_id(database, 2))
    assert not put_arc(database, [1, 2, 3])
    assert list_arcs(database) == []


def test_purge_of_a_memory_outside_arcs_keeps_all_arcs(database):
    write(database, 4)
    put_arc(database, [1, 2, 3])
    purge(database, memory_id(database, 4))
    assert len(list_arcs(database)) == 1


def test_nothing_is_quoted_that_was_archived_or_edited_since(database):
    write(database, 4, text="Secret{0} is number {0}.")
    put_arc(
        database, [1, 2, 3, 4], title="Secret1 · Secret2 · is", summary="Secret1 is number 1.\nSecret2 is…\nSecret3 is"
    )
    archive(database, memory_id(database, 1))
    edit(database, memory_id(database, 3), Revision(content="Something else"))
    [shown] = list_arcs(database)
    assert (shown.title, shown.summary) == ("Secret2 · is", "Secret2 is…")
    assert shown.size == 3
    for seq in (2, 3, 4):
        archive(database, memory_id(database, seq))
    assert list_arcs(database) == []


def supersede(database, old, new):
    with database.write() as db:
        edges.add(db, new, EdgeKind.SUPERSEDES, old, "user", AT)


def test_an_active_arc_for_agents_leaves_out_superseded_memories(database):
    write(database, 3, text="Choice{0} is decided.")
    put_arc(database, [1, 2, 3], title="Choice1 · Choice3", summary="Choice1 is decided.\nChoice3 is decided.")
    supersede(database, 1, 3)
    with database.read() as db:
        for [shown] in (arcs.list_threads(db, Viewer(), 5), arcs.list_threads_of(db, Viewer(), [3], 5)):
            assert (shown.title, shown.summary, shown.size) == ("Choice3", "Choice3 is decided.", 2)
            assert [member.seq for member in shown.members] == [2, 3]
        assert arcs.list_threads_of(db, Viewer(), [1], 5) == []
    assert list_arcs(database)[0].size == 3


def test_an_arc_of_superseded_memories_is_not_active_for_agents(database):
    write(database, 3)
    put_arc(database, [1, 2])
    for old in (1, 2):
        supersede(database, old, 3)
    with database.read() as db:
        assert arcs.list_threads(db, Viewer(), 5) == []


def test_a_title_may_be_a_tag(database):
    write(database, 3, tags=("ops",))
    put_arc(database, [1, 2, 3], title="ops · op · elsewhere")
    assert list_arcs(database)[0].title == "ops"


def test_of_a_long_arc_the_last_members_are_shown(database):
    write(database, SHOWN_MEMBERS + 5)
    put_arc(database, range(1, SHOWN_MEMBERS + 6))
    [shown] = list_arcs(database)
    assert shown.size == SHOWN_MEMBERS + 5
    assert [member.seq for member in shown.members] == list(range(6, SHOWN_MEMBERS + 6))


def test_pages_hold_every_arc_once_the_latest_first(database):
    write(database, 15)
    for number in range(5):
        put_arc(
            database,
            range(number * 3 + 1, number * 3 + 4),
            last_at=f"2026-06-{10 - number // 2:02}T00:00:00.000Z",
            status=ArcStatus.CLOSED if number == 3 else ArcStatus.ACTIVE,
        )
    pages, before = [], None
    while page := list_arcs(database, limit=2, before=before):
        pages.append([found.seq for found in page])
        before = page[-1].seq
    assert pages == [[2, 1], [4, 3], [5]]
    assert [found.seq for found in list_arcs(database, status=ArcStatus.CLOSED)] == [4]
    assert [found.seq for found in list_arcs(database, status=ArcStatus.ACTIVE, limit=2, before=3)] == [5]


def test_only_scopes_with_enough_memories_or_with_arcs_are_looked_at(database):
    agent = Scope(ScopeKind.AGENT, "a")
    write(database, 2, scope=agent)
    write(database, 3)
    with database.read() as db:
        assert arcs.scopes(db, AT, 3) == [Scope()]
        assert arcs.scopes(db, AT, 2) == [agent, Scope()]
    put_arc(database, [1, 2], scope=agent)
    with database.read() as db:
        assert arcs.scopes(db, AT, 3) == [agent, Scope()]


def test_strands_come_newest_first_in_pages_and_know_a_goals_status(database):
    write(database, 3)
    accept(database, Draft("Finish it", kind=Kind.GOAL, details={"status": "done"}))
    archive(database, memory_id(database, 2))
    with database.read() as db:
        first = arcs.strands(db, Scope(), AT, 2, 2**62)
        assert [strand.seq for strand in first] == [4, 3]
        assert [strand.seq for strand in arcs.strands(db, Scope(), AT, 2, 3)] == [1]
        assert [strand.goal_status for strand in first] == ["done", None]
