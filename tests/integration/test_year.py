"""A year of nightly jobs over 1,200 memories: what they promise, at a size that takes seconds."""

import pytest

from benchmarks.year import CHECKS, live

COUNT, SEED, ASKED = 1200, 7, 60


@pytest.fixture(scope="module")
def year():
    return live(COUNT, SEED, ASKED)


@pytest.mark.parametrize("promised", ["pinned", "keyed facts", "what matters"])
def test_protected_memories_are_never_archived_or_decayed(year, promised):
    covered, lost = year.kept[promised]
    assert covered > 0
    assert lost == 0


def test_the_working_set_stays_bounded(year):
    chatter = [month.tiers["working"] for month in year.months]
    unsettled = [month.working_set for month in year.months]
    assert len(unsettled) == 12
    assert max(chatter[6:]) <= 1.15 * max(chatter[:6])
    # Of what the second half-year brings, most goes again within it.
    assert unsettled[11] - unsettled[5] <= 0.2 * COUNT / 2


def test_jobs_archive_only_once_things_are_old(year):
    archived = [month.archived for month in year.months]
    assert archived[:2] == [0, 0]
    assert archived[-1] > 0.2 * COUNT


def test_recall_of_important_memories_does_not_decline_over_a_year(year):
    assert [check.day for check in year.checks] == list(CHECKS)
    for check in year.checks:
        slept, awake = check.mattering
        assert check.asked == ASKED
        assert slept >= awake - 1 / ASKED
        assert slept > 0.9


def test_few_memories_change_in_one_night(year):
    assert max(month.changes_a_night for month in year.months) < 0.1 * COUNT
