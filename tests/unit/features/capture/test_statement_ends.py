"""The end and the start that a statement gives itself."""

from datetime import timedelta

import pytest

from pipeline.features.capture.statement_ends import find_statement_end, find_statement_start
from pipeline.kernel.times import parse

# A Monday.
SAID_AT = "2026-11-02T12:00:00.000Z"


@pytest.mark.parametrize(
    ("said", "last_day"),
    [
        ("The freeze starts tomorrow and ends on Friday, so merge nothing.", "2026-11-06"),
        ("Until the end of the month the shop is closed.", "2026-11-30"),
        ("the freeze is on til next friday", "2026-11-13"),
        ("Staging is down tomorrow.", "2026-11-03"),
        ("Only today: use the backup bucket.", "2026-11-02"),
        ("For the next two weeks Priya reviews everything.", "2026-11-16"),
        ("The licence expires on 2027-01-31.", "2027-01-31"),
        ("The contract ends December 24th", "2026-12-24"),
        ("We keep the old API until 1 March.", "2027-03-01"),
        ("Der Freeze endet am 4. Dezember.", "2026-12-04"),
        ("Bis Freitag ist der Shop zu.", "2026-11-06"),
        ("Hasta fin de mes no tocamos el esquema.", "2026-11-30"),
        ("Jusqu'à vendredi la boutique est fermée.", "2026-11-06"),
        ("Fino a venerdì il negozio è chiuso.", "2026-11-06"),
        ("Até sexta-feira a loja fica fechada.", "2026-11-06"),
        ("Tot vrijdag is de winkel dicht.", "2026-11-06"),
        ("We never deploy on Fridays.", None),
        ("Every Friday we freeze until Monday.", None),
        ("From tomorrow on we use pnpm.", None),
        ("Today we decided to use pnpm.", None),
        ("Wait until the tests pass.", None),
        ("We used Heroku until Friday.", None),
        ("Until 30 February it works.", None),
    ],
)
def test_a_statement_is_valid_to_the_last_day_that_it_names(said, last_day):
    end = find_statement_end(said, SAID_AT)
    before = None if end is None else parse(end).astimezone() - timedelta(minutes=1)
    assert (before and f"{before:%Y-%m-%d %H:%M}") == (last_day and f"{last_day} 23:59")


@pytest.mark.parametrize(
    ("said", "first_day", "then"),
    [
        ("from thursday on 2 approvals per PR", "2026-11-05", "from now on 2 approvals per PR"),
        ("From Monday on we use pnpm", "2026-11-09", "from now on we use pnpm"),
        ("as of 2027-01-01 vat is 17", "2027-01-01", "from now on vat is 17"),
        ("starting tomorrow standup is at 9:30", "2026-11-03", "from now on standup is at 9:30"),
        ("from june on it's 16", "2027-06-01", "from now on it's 16"),
        ("in january we move to render", "2027-01-01", "we move to render"),
        ("next week the api port changes to 5050", "2026-11-09", "the api port changes to 5050"),
        ("it goes to 17 next year", "2027-01-01", "it goes to 17"),
        ("ab dem 1. 4. siebenstellig", "2027-04-01", "from now on siebenstellig"),
        ("ab Freitag zwei Reviews", "2026-11-06", "from now on zwei Reviews"),
        ("zeus wird im dezember abgeschaltet", "2026-12-01", "zeus wird abgeschaltet"),
        ("à partir de vendredi, on déploie avec argo", "2026-11-06", "from now on, on déploie avec argo"),
        ("desde el viernes desplegamos con argo", "2026-11-06", "from now on desplegamos con argo"),
    ],
)
def test_a_statement_for_later_starts_on_the_first_day_that_it_names(said, first_day, then):
    starts, stated = find_statement_start(said, SAID_AT)
    assert (f"{parse(starts).astimezone():%Y-%m-%d %H:%M}", stated) == (f"{first_day} 00:00", then)


@pytest.mark.parametrize(
    "said",
    [
        "From today on we use pnpm",
        "We never deploy on Fridays",
        "friday ban is lifted",
        "on 2 March 2020 we moved",
        "it may be so",
    ],
)
def test_a_statement_that_names_no_later_day_is_true_now(said):
    assert find_statement_start(said, SAID_AT) is None
