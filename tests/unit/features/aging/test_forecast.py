"""What is told of a memory's future, held against what the jobs do."""

import pytest
from hypothesis import example, given, strategies as st

from pipeline.features.aging.job import UNIMPORTANT, decay, forecast, importance_of, may_go, measure_lived_time, tier_of
from pipeline.kernel.kinds import TRAITS
from pipeline.kernel.records import Kind, Revision, Tier
from pipeline.kernel.store import memory_usage
from pipeline.kernel.store.memory_usage import Usage
from pipeline.write.revise import edit
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import count_accesses, job_run_on, moment, read, text_of, write

DAY_ONE = 2_460_000.0
# A workspace in which something happens every day.
BUSY = measure_lived_time([DAY_ONE + day for day in range(4000)])


def usage(**changes):
    usual = {"seq": 1, "id": "m", "kind": "fact", "tier": "episodic", "lasting": False, "importance": 0.5}
    usual |= {"given": 0.5, "recalls": 0, "repeats": 0, "used": DAY_ONE, "written": DAY_ONE, "updated_at": ""}
    return Usage(**usual | changes)


usages = st.builds(
    usage,
    kind=st.sampled_from([str(kind) for kind in Kind]),
    tier=st.sampled_from([str(tier) for tier in Tier]),
    given=st.floats(0, 1),
    recalls=st.integers(0, 50),
    repeats=st.integers(0, 50),
)


def test_unused_fact_halves_in_ninety_days():
    told = forecast(usage(), BUSY, DAY_ONE)
    assert (told.now, dict(told.later)[90.0], told.half_life_days) == (0.5, 0.25, 90)
    assert told.unused_days == 0


def test_forecast_shows_use_and_its_effect():
    told = forecast(usage(recalls=3), BUSY, DAY_ONE + 10)
    assert (told.uses, told.risen, told.unused_days) == (3, 0, 10)
    assert told.half_life_days == 90 * 3
    assert told.raised > told.given


def test_lasting_memory_is_forecast_constant():
    told = forecast(usage(lasting=True), BUSY, DAY_ONE + 500)
    assert {told.now, *dict(told.later).values()} == {0.5}
    assert told.leaves_in_days is None


@given(usages, st.floats(0, 800), st.floats(0, 800))
def test_forecast_equals_the_decay_formula(one, unused, ahead):
    told = forecast(one, BUSY, DAY_ONE + unused, ahead=[ahead])
    assert told.now == importance_of(one, tier_of(one), unused)
    assert told.later == ((ahead, importance_of(one, tier_of(one), unused + ahead)),)
    assert told.kind_days == TRAITS[Kind(one.kind)].half_life_days


# Its importance rounds to what may not go yet on the last step before it may.
@example(usage(kind="keyed_fact", given=0.013941517233132972, recalls=3, repeats=35), 0.0)
@given(usages, st.floats(0, 800))
def test_forecast_leave_date_equals_the_archive_rule(one, unused):
    today = DAY_ONE + unused
    told = forecast(one, BUSY, today)
    ample = measure_lived_time([DAY_ONE + day for day in range(0, 60_000, 10)])
    assert may_go(one, ample, today + told.leaves_in_days + 1)
    if told.leaves_in_days > 1:
        assert not may_go(one, ample, today + told.leaves_in_days - 1)


def test_the_jobs_agree():
    with scratch_database() as database:
        memory_id = write(database, 0, "The port of staging is 5433")
        for day in range(0, 61, 10):
            write(database, day, f"Looked at the board on day {day}", kind=Kind.ACTIVITY)
        seq = read(database, memory_id).seq
        count_accesses(database, {seq: 2}, text_of(20))
        with database.read() as db:
            one, lived = memory_usage.of(db, text_of(60), seq), measure_lived_time(memory_usage.active_days(db))
            assert memory_usage.get_recalled_at(db, seq) == text_of(20)
        julian = moment(60).timestamp() / 86_400 + 2_440_587.5
        foreseen = forecast(one, lived, julian).now
        decay(job_run_on(database, 60))
        assert read(database, memory_id).importance == foreseen
        edit(database, memory_id, Revision(pinned=True))
        with database.read() as db:
            assert memory_usage.of(db, text_of(60), seq).lasting


def test_unknown_memory_has_no_usage():
    with scratch_database() as database, database.read() as db:
        assert memory_usage.of(db, text_of(0), 99) is None
        assert memory_usage.get_recalled_at(db, 99) is None


@pytest.mark.parametrize("given_importance", [0.0, UNIMPORTANT - 0.01])
def test_unimportant_memory_leaves_as_soon_as_it_is_cold_and_old(given_importance):
    assert forecast(usage(given=given_importance), BUSY, DAY_ONE).leaves_in_days == 180
