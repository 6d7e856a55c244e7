"""The chart's periods: every memory in exactly one, few enough to be drawn, the last of them not cut short."""

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given, strategies as st

from pipeline.services.overview import MOST_PERIODS, GrowthUnit, chart_growth

days = st.dates()


def make_counter(happened):
    moments = [f"{day}T12:00:00.000Z" for day in happened]
    return lambda bounds: [sum(first <= at < last for at in moments) for first, last in pairwise(bounds)]


@given(st.lists(days, min_size=1, max_size=30))
def test_everything_is_counted_once(happened):
    found = chart_growth(min(happened), max(happened), make_counter(happened))
    assert 1 <= len(found.periods) <= MOST_PERIODS
    assert found.earlier + sum(period.count for period in found.periods) == len(happened) == found.total
    totals = [found.earlier, *(period.total for period in found.periods)]
    assert [later - before for before, later in pairwise(totals)] == [period.count for period in found.periods]
    assert found.periods[-1].count >= 1
    assert found.most == max(period.count for period in found.periods)


@given(days.filter(lambda day: day.year > 200), st.integers(0, 20_000))
def test_the_unit_fits_the_time_and_leaves_nothing_out_but_centuries(last, length):
    first = last - timedelta(days=min(length, (last - date.min).days))
    found = chart_growth(first, last, make_counter([first, last]))
    wanted = (
        GrowthUnit.DAY
        if length < 61
        else GrowthUnit.WEEK
        if length < 427
        else GrowthUnit.MONTH
        if length < 1830
        else GrowthUnit.YEAR
    )
    assert found.unit is wanted
    assert found.earlier == 0 or (found.unit is GrowthUnit.YEAR and length > 61 * 365)
    assert found.periods[0].count >= 1 or found.earlier


def test_periods_are_named_as_people_name_them():
    assert [p.label for p in chart_growth(date(2026, 3, 1), date(2026, 3, 2), make_counter([])).periods] == [
        "2026-03-01",
        "2026-03-02",
    ]
    weeks = chart_growth(date(2026, 1, 1), date(2026, 4, 1), make_counter([])).periods
    assert (weeks[0].label, weeks[-1].label) == ("week of 2025-12-29", "week of 2026-03-30")
    months = chart_growth(date(2024, 11, 30), date(2026, 4, 1), make_counter([])).periods
    assert (months[0].label, months[-1].label) == ("2024-11", "2026-04")
    assert chart_growth(date(2001, 5, 5), date(2026, 4, 1), make_counter([])).periods[0].label == "2001"
