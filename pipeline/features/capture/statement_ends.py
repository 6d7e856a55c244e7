"""Find the end or the start that a statement gives itself: "until the end of the month", "from Monday on".

The expressions of seven languages are in `lexicon/statement_ends.toml`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Final

from pipeline.kernel.times import parse, utc_text
from pipeline.text.lexicon import load_lexicon

_RELATIVE: Final = (
    "after_tomorrow",
    "tomorrow",
    "today",
    "next_week",
    "week",
    "next_month",
    "month",
    "next_year",
    "year",
)
_DAYS: Final = {"d": 1, "t": 1, "j": 1, "w": 7, "s": 7, "m": 30}
# Replaces the words of a start in a statement that will be true then.
FROM_NOW: Final = "from now on"
# A date further back was said of the year to come.
_LONGEST_BACK: Final = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class _Expressions:
    until: "re.Pattern[str]"
    # Each with the words that say the same on the day itself.
    starts: tuple[tuple["re.Pattern[str]", str], ...]
    span: tuple["re.Pattern[str]", ...]
    endless: "re.Pattern[str]"
    counts: Mapping[str, int]


def find_statement_end(sentence: str, said_at: str) -> str | None:
    """Return the time from which a statement is no longer valid, by its own words; None if it gives no end.

    The days are those of this machine's time zone.
    """
    known, text = _compile_expressions(), sentence.replace("’", "'")
    if known.endless.search(text):
        return None
    now = parse(said_at).astimezone()
    last = _find_last_day(known, text, now.date())
    if last is None:
        return None
    try:
        return utc_text(datetime.combine(last + timedelta(days=1), time()).astimezone())
    except (OverflowError, ValueError):
        return None


def find_statement_start(sentence: str, said_at: str) -> tuple[str, str] | None:
    """Return the later day from which a statement is valid, and the statement as a person will say it on that day.

    None if it names no later day. "On Friday we move" needs other words that say what changes.
    """
    known, today = _compile_expressions(), parse(said_at).astimezone().date()
    for expression, then in known.starts:
        for match in expression.finditer(sentence):
            first = _read_day(match, today, is_start=True)
            if first is not None and first > today:
                said = f"{sentence[: match.start()]}{then}{sentence[match.end() :]}"
                return utc_text(datetime.combine(first, time()).astimezone()), " ".join(said.split()).strip(" ,;:")
    return None


def _find_last_day(known: _Expressions, text: str, today: date) -> date | None:
    for match in known.until.finditer(text):
        if (last := _read_day(match, today)) is not None:
            return last
    for expression in known.span:
        if (spanned := expression.search(text)) is not None:
            word = (spanned["count"] or "1").lower()
            count = int(word) if word.isdecimal() and len(word) < 4 else known.counts.get(word)
            return None if count is None else today + timedelta(days=count * _DAYS[spanned["unit"][0].lower()])
    return None


def _read_day(match: "re.Match[str]", today: date, *, is_start: bool = False) -> date | None:
    named = {name: value for name, value in match.groupdict().items() if value is not None}
    if "iso" in named:
        return _make_date(*map(int, named["iso"].split("-")))
    if "numbered" in named:
        day, month, *year = re.findall(r"\d+", named["numbered"])
        return _date_in_year(today, int(month), int(day), next(iter(year), None))
    for number in range(7):
        if f"weekday{number}" in named:
            ahead = (number - today.weekday()) % 7 or 7 * is_start
            return today + timedelta(days=ahead + 7 * ("next" in named))
    for number in range(1, 13):
        if named.keys() & {f"month{number}", f"late_month{number}", f"only_month{number}"}:
            day = int(named.get("day") or named.get("late_day") or 1)
            return _date_in_year(today, number, day, named.get("year_number") or named.get("late_year"))
    name = next((name for name in _RELATIVE if name in named or f"away_{name}" in named), None)
    if name is None:
        return None
    return _first_day_of(name, today) if is_start else _last_day_of(name, today)


def _first_day_of(name: str, today: date) -> date:
    monday = today + timedelta(days=7 - today.weekday())
    first_of_next = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    later = {"next_week": monday, "next_month": first_of_next, "next_year": date(today.year + 1, 1, 1)}
    return later.get(name) or _last_day_of(name, today)


def _last_day_of(name: str, today: date) -> date:
    sunday = today + timedelta(days=6 - today.weekday())
    first_of_next = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
    days = {
        "today": today,
        "tomorrow": today + timedelta(days=1),
        "after_tomorrow": today + timedelta(days=2),
        "week": sunday,
        "next_week": sunday + timedelta(days=7),
        "month": first_of_next - timedelta(days=1),
        "next_month": (first_of_next + timedelta(days=32)).replace(day=1) - timedelta(days=1),
        "next_year": date(today.year + 1, 12, 31),
        "year": date(today.year, 12, 31),
    }
    return days[name]


def _date_in_year(today: date, month: int, day: int, year: str | None) -> date | None:
    if year is not None:
        return _make_date(int(year), month, day)
    this_year = _make_date(today.year, month, day)
    is_past = this_year is not None and this_year < today - _LONGEST_BACK
    return _make_date(today.year + 1, month, day) if is_past else this_year


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


@cache
def _compile_expressions() -> _Expressions:
    lexicon = load_lexicon("statement_ends")
    entries = lexicon.entries
    weekdays = "|".join(f"(?P<weekday{number}>{names})" for number, names in enumerate(entries["weekdays"]))
    months = "|".join(f"(?P<month{number}>{names})" for number, names in enumerate(entries["months"], 1))
    late_months, only_months = months.replace("<month", "<late_month"), months.replace("<month", "<only_month")
    relative = "|".join(f"(?P<{name}>{entries[name]})" for name in _RELATIVE)
    day_first = (
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|º)?\s(?:of\s|de\s)?(?:{months})\b(?:\s(?:de\s)?(?P<year_number>20\d\d))?"
    )
    month_first = rf"(?:{late_months})\s(?P<late_day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<late_year>20\d\d))?"
    times = (
        rf"(?P<iso>20\d\d-\d\d-\d\d)|(?P<numbered>\d{{1,2}}\.\s?\d{{1,2}}\.(?:20\d\d)?)|{day_first}|{month_first}|{relative}"
        rf"|{entries['weekday_before']}(?:{weekdays})\b"
    )
    start = rf"\s(?:the\s)?(?:{times}|(?:{only_months})\b)(?:\s(?:on|onwards?|an)(?!\w))?"
    short = "|".join(f"(?P<{name}>{entries[name]})" for name in ("away_today", "away_tomorrow", "away_week"))
    return _Expressions(
        until=re.compile(
            rf"\b{entries['until']}\s(?:the\s|on\s)?(?:{times})(?!\w)|\b(?:{entries['away']})\s(?:{short})(?!\w)",
            re.IGNORECASE,
        ),
        starts=tuple(
            (re.compile(rf"\b(?:{expression})(?!\w)", re.IGNORECASE), then)
            for expression, then in (
                (rf"(?:{entries['since']}){start}", FROM_NOW),
                (rf"(?:{entries['on']}){start}", ""),
                (relative, ""),
            )
        ),
        span=tuple(re.compile(rf"\b(?:{part})\b", re.IGNORECASE) for part in entries["span"]),
        endless=re.compile(entries["endless"], re.IGNORECASE),
        counts={word: int(line.split()[0]) for line in entries["counts"] for word in line.split()},
    )
