import pytest
from hypothesis import given, strategies as st

from pipeline.features.aging import job as module
from pipeline.features.aging.job import FLOOR, IDLE_DAYS, decay, importance_of, measure_lived_time
from pipeline.kernel.records import FactKey, Kind, Revision, Source, Tier
from pipeline.kernel.store import changes, facts, memory_usage
from pipeline.kernel.store.memory_usage import Usage
from pipeline.write.revise import edit
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import Killed, after, count_accesses, job_run_on, read, set_fact, state, text_of, write


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def live_until(database, day, step=10):
    """Write something now and then, so that time goes by in this workspace."""
    for number in range(0, day + 1, step):
        write(database, number, f"Looked at the board on day {number} and moved card {number}", kind=Kind.ACTIVITY)


def importance(database, memory_id):
    return read(database, memory_id).importance


def test_importance_halves_in_the_half_life_of_its_kind(database):
    fact = write(database, 0, "The port of staging is 5433")
    decision = write(database, 0, "We keep one table for all events", kind=Kind.DECISION)
    live_until(database, 100)
    decay(job_run_on(database, 100))
    assert importance(database, fact) == 0.25
    assert 0.55 < importance(database, decision) < 0.7


def test_second_decay_run_of_a_day_changes_nothing(database):
    write(database, 0, "The port of staging is 5433")
    live_until(database, 60)
    assert decay(job_run_on(database, 60)).counts["faded"] > 0
    once = state(database)
    assert not any(decay(job_run_on(database, 60)).counts.values())
    assert state(database) == once


def test_many_runs_come_to_the_same_as_one(database):
    fact = write(database, 0, "The port of staging is 5433")
    live_until(database, 120)
    for day in range(1, 121):
        decay(job_run_on(database, day))
    many = importance(database, fact)
    with scratch_database() as other:
        fact = write(other, 0, "The port of staging is 5433")
        live_until(other, 120)
        decay(job_run_on(other, 120))
        assert importance(other, fact) == many


def test_pinned_memories_and_current_facts_do_not_decay(database):
    pinned = write(database, 0, "The port of staging is 5433")
    edit(database, pinned, Revision(pinned=True))
    old = set_fact(database, 0, FactKey("staging", "port"), 5433)
    new = set_fact(database, 5, FactKey("staging", "port"), 6543)
    live_until(database, 400)
    with database.write() as db:
        # Its end was told on the simulated day, not now.
        facts.close(db, 2, text_of(5), text_of(5))
    decay(job_run_on(database, 400))
    assert importance(database, pinned) == 0.5
    assert importance(database, new) == 0.6
    assert importance(database, old) < 0.4


def test_nothing_falls_below_the_floor_and_nothing_is_lifted_to_it(database):
    chatter = write(database, 0, "Looked at the log of the worker", kind=Kind.ACTIVITY)
    trifle = write(database, 0, "Looked at the log of the gateway", kind=Kind.ACTIVITY, importance=0.01)
    live_until(database, 400)
    decay(job_run_on(database, 400))
    assert importance(database, chatter) == FLOOR
    assert importance(database, trifle) == 0.01


def test_use_stops_the_fading_and_raises(database):
    used = write(database, 0, "The port of staging is 5433")
    unused = write(database, 0, "The port of production is 5434")
    live_until(database, 100)
    count_accesses(database, {1: 2}, text_of(100))
    decay(job_run_on(database, 100))
    assert importance(database, used) > 0.5 > importance(database, unused)


def test_tiers_rise_by_recalls_and_never_fall(database):
    memory_id = write(database, 0, "Looked at the log of the worker", kind=Kind.ACTIVITY)
    tiers = [read(database, memory_id).tier]
    for day in range(1, 11):
        count_accesses(database, {1: 1}, text_of(day))
        decay(job_run_on(database, day))
        tiers.append(read(database, memory_id).tier)
    assert tiers == [Tier.WORKING] * 3 + [Tier.EPISODIC] * 7 + [Tier.SEMANTIC]
    lesson = write(database, 10, "Never deploy on a Friday", kind=Kind.LESSON)
    decay(job_run_on(database, 11))
    assert read(database, lesson).tier is Tier.SEMANTIC


def test_recalled_memory_decays_more_slowly(database):
    for number in range(2):
        write(database, 0, f"Looked at the log of worker {number}", kind=Kind.ACTIVITY)
    live_until(database, 28)
    count_accesses(database, {1: 3}, text_of(0))
    decay(job_run_on(database, 28))
    risen, stayed = state(database)[:2]
    assert risen[1] > 0.3 / 2 > stayed[1]


def test_edited_importance_decays_from_the_edit_on(database):
    memory_id = write(database, 0, "The port of staging is 5433")
    live_until(database, 90)
    decay(job_run_on(database, 90))
    edit(database, memory_id, Revision(importance=0.9))
    assert importance(database, memory_id) == 0.9
    decay(job_run_on(database, 91))
    assert importance(database, memory_id) == 0.9


def test_repeated_write_restores_decayed_importance(database):
    memory_id = write(database, 0, "The port of staging is 5433", importance=0.8)
    live_until(database, 180)
    decay(job_run_on(database, 180))
    assert importance(database, memory_id) < 0.3
    write(database, 181, "The port of staging is 5433")
    assert importance(database, memory_id) == 0.8
    decay(job_run_on(database, 181))
    assert importance(database, memory_id) > 0.8


def test_unused_workspace_does_not_decay(database):
    fact = write(database, 0, "The port of staging is 5433")
    decay(job_run_on(database, IDLE_DAYS))
    rested = importance(database, fact)
    for day in (30, 300, 800):
        decay(job_run_on(database, day))
        assert importance(database, fact) == rested
    # Who comes back finds it as it was left.
    write(database, 800, "Back at work on the gateway")
    decay(job_run_on(database, 801))
    assert importance(database, fact) == rested


def test_candidates_and_archived_memories_are_left_alone(database):
    write(database, 0, "The port of staging is 5433")
    write(database, 0, "The port of production is 5434")
    live_until(database, 100)
    with database.write() as db:
        db.execute("UPDATE memory SET candidate = 1 WHERE seq = 1")
        db.execute("UPDATE memory SET archived_at = updated_at WHERE seq = 2")
    before = state(database)[:2]
    decay(job_run_on(database, 100))
    assert state(database)[:2] == before


def test_decay_logs_only_changed_memories_and_keeps_updated_at(database):
    memory_id = write(database, 0, "Looked at the log of the worker", kind=Kind.ACTIVITY)
    fresh = write(database, 40, "The port of production is 5434", source=Source.USER)
    with database.read() as db:
        before = changes.generation(db)
    decay(job_run_on(database, 40))
    with database.read() as db:
        logged = db.execute("SELECT op, memory_id FROM change WHERE seq > ?", (before,)).fetchall()
    assert logged == [(changes.FADE, memory_id)]
    assert read(database, memory_id).updated_at == text_of(0)
    assert read(database, fresh).importance == 0.5


def test_edit_during_the_run_takes_precedence(database, monkeypatch):
    memory_id = write(database, 0, "The port of staging is 5433")
    live_until(database, 90)
    due_change = module.due_change

    def edited_meanwhile(usage, lived, today):
        if usage.id == memory_id:
            edit(database, memory_id, Revision(importance=0.95))
        return due_change(usage, lived, today)

    monkeypatch.setattr(module, "due_change", edited_meanwhile)
    decay(job_run_on(database, 90))
    assert importance(database, memory_id) == 0.95


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(module, "PAGE", 5)
    monkeypatch.setattr(module, "FADED_PER_TRANSACTION", 2)


def list_entries():
    return [(day, f"Looked at the board on day {day} and moved card {day}") for day in range(40)]


def undisturbed():
    with scratch_database() as database:
        for day, text in list_entries():
            write(database, day, text, kind=Kind.ACTIVITY)
        assert not decay(job_run_on(database, 40)).more
        return state(database)


@pytest.mark.parametrize("calls", [0, 1, 2, 5, 9])
def test_a_paused_run_comes_to_the_same_end(database, small_pieces, calls):
    for day, text in list_entries():
        write(database, day, text, kind=Kind.ACTIVITY)
    assert decay(job_run_on(database, 40, pausing=after(calls))).more
    assert not decay(job_run_on(database, 40)).more
    assert state(database) == undisturbed()


@pytest.mark.parametrize("writes", [0, 1, 3, 7])
def test_a_killed_run_comes_to_the_same_end(database, small_pieces, monkeypatch, writes):
    for day, text in list_entries():
        write(database, day, text, kind=Kind.ACTIVITY)
    left = iter(range(writes))
    set_importance = memory_usage.set_importance

    def killed(*args):
        if next(left, None) is None:
            raise Killed
        return set_importance(*args)

    with monkeypatch.context() as patch:
        patch.setattr(memory_usage, "set_importance", killed)
        with pytest.raises(Killed):
            decay(job_run_on(database, 40))
    decay(job_run_on(database, 40))
    assert state(database) == undisturbed()


def test_decay_reports_progress(database):
    live_until(database, 30)
    told = []
    decay(job_run_on(database, 30, progress=lambda done, total: told.append((done, total))))
    assert told == [(4, 4)]


usages = st.builds(
    Usage,
    seq=st.just(1),
    id=st.just("x"),
    kind=st.sampled_from([str(kind) for kind in Kind]),
    tier=st.sampled_from([str(tier) for tier in Tier]),
    lasting=st.booleans(),
    importance=st.floats(0, 1),
    given=st.floats(0, 1),
    recalls=st.integers(0, 10_000),
    repeats=st.integers(0, 10_000),
    used=st.just(0.0),
    written=st.just(0.0),
    updated_at=st.just(""),
)
ROUNDING = 1e-4


@given(usages, st.floats(0, 10_000), st.floats(0, 10_000), st.integers(0, 100))
def test_importance_stays_within_bounds_falls_with_time_and_rises_with_use(usage, days, more_days, more_uses):
    tier = module.tier_of(usage)
    now = importance_of(usage, tier, days)
    assert min(usage.given, FLOOR) - ROUNDING <= now <= 1
    assert importance_of(usage, tier, days + more_days) <= now + ROUNDING
    assert importance_of(usage._replace(recalls=usage.recalls + more_uses), tier, days) >= now - ROUNDING
    assert importance_of(usage, Tier.SEMANTIC, days) >= now - ROUNDING
    assert importance_of(usage._replace(lasting=True), tier, days) >= max(now, usage.given) - ROUNDING


@given(st.lists(st.integers(0, 2000), unique=True).map(sorted), st.floats(0, 2500), st.floats(0, 2500))
def test_lived_time_never_runs_backwards_nor_faster_than_the_calendar(days, one, other):
    lived = measure_lived_time([float(day) for day in days])
    begin, end = sorted((one, other))
    assert 0 <= lived.between(begin, end) <= end - begin + 1e-6
    assert lived.between(end, begin) == 0
    assert lived.between(begin, end) + lived.between(end, 3000) == pytest.approx(lived.between(begin, 3000))


def test_an_idle_stretch_counts_for_a_fortnight():
    lived = measure_lived_time([0.0, 10.0, 110.0, 111.0])
    assert lived.between(0, 10) == 10
    assert lived.between(10, 110) == IDLE_DAYS
    assert lived.between(0, 500) == 10 + IDLE_DAYS + 1 + IDLE_DAYS
