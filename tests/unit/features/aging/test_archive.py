import pytest

from pipeline.features.aging import job as module
from pipeline.features.aging.job import ACTOR, COLD_DAYS, archive
from pipeline.features.review import usecases as review
from pipeline.kernel.records import EdgeKind, FactKey, Kind, Revision, Tier
from pipeline.kernel.store import audit, changes, edges, index_state, memories
from pipeline.write.revise import edit
from tests.fakes.in_process import scratch_database, workspace_over
from tests.fakes.job_runs import Killed, after, count_accesses, job_run_on, read, set_fact, text_of, write
from tests.fakes.recall_workspace import open_recall_workspace
from tests.fakes.sources import keep_in_step

LATE = 200


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def chatter(database, day=0, name="worker", **fields):
    return write(database, day, f"Looked at the log of the {name}", **{"kind": Kind.ACTIVITY, **fields})


def live_until(database, day, begin=0, step=10):
    """Write on through the days, so that time goes by; milestones stay for years."""
    for number in range(begin, day + 1, step):
        write(database, number, f"Card {number} is done", kind=Kind.MILESTONE)


def list_archived(database):
    with database.read() as db:
        return [row[0] for row in db.execute("SELECT id FROM memory WHERE archived_at IS NOT NULL ORDER BY seq")]


def entries(database):
    with database.read() as db:
        return list(reversed(audit.page(db, 10_000, None)))


def test_archived_memory_leaves_the_tail_and_is_logged_and_audited(database):
    memory_id = chatter(database)
    live_until(database, LATE)
    assert archive(job_run_on(database, LATE)).counts == {"archived": 1}
    assert list_archived(database) == [memory_id]
    with database.read() as db:
        assert 1 not in {seq for seq, _, _ in index_state.list_tail_after(db, 0)}
        assert db.execute("SELECT op, memory_id FROM change ORDER BY seq DESC").fetchone() == (
            changes.ARCHIVE,
            memory_id,
        )
    [entry] = entries(database)
    assert (entry.actor, entry.action, entry.memory_id, entry.at) == (
        ACTOR,
        audit.AuditAction.ARCHIVE,
        memory_id,
        text_of(LATE),
    )
    assert entry.detail == {"unused_days": LATE, "importance": 0.05, "recalls": 0}


@pytest.mark.parametrize("kind", [Kind.CODE, Kind.DOCUMENT, Kind.ACTIVITY])
def test_unmoved_code_and_documents_are_not_archived(database, kind):
    memory_id = chatter(database, kind=kind, importance=0.05)
    keep_in_step(database, memory_id)
    live_until(database, 1000, step=20)
    assert archive(job_run_on(database, 1000)).counts == {"archived": 0 if kind is not Kind.ACTIVITY else 1}


def test_memory_archived_by_the_job_is_not_recalled():
    with open_recall_workspace() as workspace:
        memory_id = chatter(workspace.database)
        live_until(workspace.database, LATE)
        workspace.fold()
        assert memory_id in workspace.find_ids("log of the worker")
        archive(job_run_on(workspace.database, LATE))
        assert memory_id not in workspace.find_ids("log of the worker")


def test_a_job_that_runs_twice_archives_once(database):
    chatter(database)
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    assert archive(job_run_on(database, LATE)).counts == {"archived": 0}
    assert len(entries(database)) == 1


@pytest.mark.parametrize("day", [59, 61, 89])
def test_young_memory_is_not_archived(database, day):
    chatter(database)
    live_until(database, 89)
    archive(job_run_on(database, day))
    assert list_archived(database) == []


def test_fact_is_kept_for_half_a_year_at_any_importance(database):
    fact = chatter(database, kind=Kind.FACT, importance=0.1)
    live_until(database, 200, begin=10)
    archive(job_run_on(database, 179))
    assert list_archived(database) == []
    archive(job_run_on(database, 181))
    assert list_archived(database) == [fact]


def test_recently_recalled_or_edited_memory_is_not_archived(database):
    recalled, edited = chatter(database, name="gateway"), chatter(database, name="worker")
    cold = chatter(database, name="portal")
    live_until(database, LATE)
    count_accesses(database, {1: 1}, text_of(LATE - 30))
    edit(database, edited, Revision(tags=("kept",)))
    archive(job_run_on(database, LATE))
    assert list_archived(database) == [cold]
    assert recalled not in list_archived(database)


def pin(database, memory_id):
    edit(database, memory_id, Revision(pinned=True))
    with database.write() as db:
        # Only the pin may hold it, not that it was edited.
        db.execute("UPDATE memory SET updated_at = created_at WHERE id = ?", (memory_id,))


def add_to_arc(database, memory_id, status="active"):
    seq = read(database, memory_id).seq
    with database.write() as db:
        db.execute(
            "INSERT INTO arc VALUES (1, 'a', 'The worker', '-', ?, 'workspace', '', '-', '-', '-')",
            (status,),
        )
        db.execute("INSERT INTO arc_member VALUES (?, 1, 0)", (seq,))


def test_pinned_memory_is_not_archived(database):
    pin(database, chatter(database))
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    assert list_archived(database) == []


@pytest.mark.parametrize("outgoing", [True, False])
@pytest.mark.parametrize("kind", [EdgeKind.CAUSE, EdgeKind.DERIVED_FROM, EdgeKind.CONTRADICTS])
def test_either_end_of_an_edge_stays(database, kind, outgoing):
    one = chatter(database)
    other = write(database, 0, "The worker was restarted", kind=Kind.MILESTONE)
    ends = [read(database, memory_id).seq for memory_id in (one, other)]
    begin, end = ends if outgoing else reversed(ends)
    with database.write() as db:
        edges.add(db, begin, kind, end, "user", text_of(0))
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    assert list_archived(database) == []


@pytest.mark.parametrize("outgoing", [True, False])
def test_superseding_memory_is_kept_and_superseded_memory_is_archived(database, outgoing):
    one = chatter(database)
    other = write(database, 0, "The worker was restarted", kind=Kind.MILESTONE)
    ends = [read(database, memory_id).seq for memory_id in (one, other)]
    begin, end = ends if outgoing else reversed(ends)
    with database.write() as db:
        edges.add(db, begin, EdgeKind.SUPERSEDES, end, "user", text_of(0))
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    assert list_archived(database) == ([] if outgoing else [one])


def test_memory_that_only_absorbed_a_duplicate_is_archived(database):
    one, other = chatter(database), chatter(database, name="same worker")
    with database.write() as db:
        memories.archive(db, 2, text_of(1), merged_into=1)
        edges.add(db, 1, EdgeKind.SUPERSEDES, 2, "dedup", text_of(1))
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    assert list_archived(database) == [one, other]


@pytest.mark.parametrize(("status", "stays"), [("active", True), ("closed", False)])
def test_a_member_of_an_active_arc_stays(database, status, stays):
    add_to_arc(database, chatter(database), status)
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    assert (list_archived(database) == []) is stays


def test_keyed_facts_stay_as_history(database):
    set_fact(database, 0, FactKey("staging", "port"), 5433)
    set_fact(database, 5, FactKey("staging", "port"), 6543)
    live_until(database, 3000)
    archive(job_run_on(database, 3000))
    with database.read() as db:
        assert all(memory.archived_at is None for memory in memories.by_seqs(db, [1, 2]).values())


@pytest.mark.parametrize(
    ("details", "stays"),
    [({}, True), ({"status": "in_progress"}, True), ({"status": "done"}, False), ({"status": "dropped"}, False)],
)
def test_unfinished_goals_stay(database, details, stays):
    goal = chatter(database, kind=Kind.GOAL, details=details)
    live_until(database, 600)
    archive(job_run_on(database, 600))
    assert (goal not in list_archived(database)) is stays


@pytest.mark.parametrize("kind", [Kind.LESSON, Kind.DECISION, Kind.MILESTONE])
def test_settled_kinds_are_kept_for_two_years(database, kind):
    memory_id = chatter(database, kind=kind, importance=0.1)
    live_until(database, 800, begin=10)
    archive(job_run_on(database, 729))
    assert memory_id not in list_archived(database)
    archive(job_run_on(database, 740))
    assert memory_id in list_archived(database)


def test_candidates_are_left_to_people(database):
    chatter(database)
    with database.write() as db:
        db.execute("UPDATE memory SET candidate = 1")
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    assert list_archived(database) == []


def test_unused_workspace_archives_nothing(database):
    memory_id = chatter(database)
    for day in (100, 500, 1500):
        archive(job_run_on(database, day))
    assert list_archived(database) == []
    # Coming back is not what sends it away either.
    write(database, 1500, "Back at work on the gateway")
    archive(job_run_on(database, 1501))
    assert list_archived(database) == []
    assert read(database, memory_id).archived_at is None


def test_undo_brings_it_back_for_good(database):
    memory_id = chatter(database)
    live_until(database, LATE)
    archive(job_run_on(database, LATE))
    [entry] = entries(database)
    assert review.undo_act(workspace_over(database), entry.id).archived_at is None
    with database.write() as db:
        # Undone on the simulated day, not now.
        db.execute("UPDATE memory SET updated_at = ? WHERE id = ?", (text_of(LATE), memory_id))
    with database.read() as db:
        assert 1 in {seq for seq, _, _ in index_state.list_tail_after(db, 0)}
    live_until(database, 400, begin=LATE + 1)
    for day in range(LATE + 1, LATE + int(COLD_DAYS[Tier.WORKING])):
        archive(job_run_on(database, day))
    assert list_archived(database) == []
    archive(job_run_on(database, 400))
    assert list_archived(database) == [memory_id]


def crowd(database):
    ids = [chatter(database, name=f"worker of host {number}") for number in range(30)]
    live_until(database, LATE)
    return ids


def test_a_run_takes_only_so_many_and_the_next_goes_on(database, monkeypatch):
    monkeypatch.setattr(module, "ARCHIVE_LIMIT", 12)
    ids = crowd(database)
    assert archive(job_run_on(database, LATE)).counts == {"archived": 12}
    assert archive(job_run_on(database, LATE + 0.2)).counts == {"archived": 0}
    assert list_archived(database) == ids[:12]
    archive(job_run_on(database, LATE + 1))
    archive(job_run_on(database, LATE + 2))
    assert list_archived(database) == ids


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(module, "PAGE", 7)
    monkeypatch.setattr(module, "ARCHIVED_PER_TRANSACTION", 3)
    monkeypatch.setattr(module, "ARCHIVE_LIMIT", 20)


@pytest.mark.parametrize("calls", [0, 1, 2, 4, 6])
def test_a_paused_run_comes_to_the_same_end(database, small_pieces, calls):
    ids = crowd(database)
    assert archive(job_run_on(database, LATE, pausing=after(calls))).more
    assert not archive(job_run_on(database, LATE)).more
    assert list_archived(database) == ids[:20]
    assert [entry.memory_id for entry in entries(database)] == ids[:20]


@pytest.mark.parametrize("acts", [0, 1, 3, 4, 19])
def test_a_killed_run_comes_to_the_same_end(database, small_pieces, monkeypatch, acts):
    ids = crowd(database)
    left, add = iter(range(acts)), audit.add

    def killed(*args, **fields):
        if next(left, None) is None:
            raise Killed
        return add(*args, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(audit, "add", killed)
        with pytest.raises(Killed):
            archive(job_run_on(database, LATE))
    assert [entry.memory_id for entry in entries(database)] == list_archived(database)
    archive(job_run_on(database, LATE))
    assert list_archived(database) == ids[:20]
    assert [entry.memory_id for entry in entries(database)] == ids[:20]


def test_memory_used_during_the_run_is_not_archived(database, monkeypatch):
    used, gone = chatter(database, name="worker"), chatter(database, name="gateway")
    live_until(database, LATE)
    may_go = module.may_go

    def used_meanwhile(usage, lived, today):
        if usage.id == used:
            count_accesses(database, {usage.seq: 1}, text_of(LATE))
        return may_go(usage, lived, today)

    monkeypatch.setattr(module, "may_go", used_meanwhile)
    archive(job_run_on(database, LATE))
    assert list_archived(database) == [gone]
