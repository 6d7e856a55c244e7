"""The end that a statement gives itself."""

from datetime import timedelta

import pytest

from pipeline.capture.statement_ends import find_statement_end
from pipeline.times import parse

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
