"""Parse a query: its words, and time expressions such as "yesterday", "last Tuesday", "since March"."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Final

from pipeline.text.personal_facts import list_asked_attributes
from pipeline.text.tokens import MONTHS, WEEKDAYS, identifiers, list_compounds, search_tokens

DAY: Final = timedelta(days=1)
JULIAN_DAY_OF_YEAR_1: Final = 1721424.5
MOST_PARSED: Final = 32

_NUMBERS: Final = {
    word: number
    for number, words in enumerate(
        ("", "a an one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    )
    for word in words.split()
}
_COUNT: Final = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT: Final = r"(?P<unit>day|week|month|year)s?"
_WEEKDAY: Final = "|".join(WEEKDAYS)
_MONTH: Final = "|".join(MONTHS)
_BEFORE_NAME: Final = "last|this|since|before|until|after"

# First person singular in the supported languages.
_PERSONAL = re.compile(
    r"\b(i|i'm|i've|my|mine|me|myself|ich|mein\w{0,2}|mir|mich|je|j'|mon|ma|mes|moi|yo|mi|mis|mío|eu|meus?|minhas?|"
    r"я|мой|моя|моё|мои|моего|моей|мне|меня|мій|моє|мої|мого|моєї|мені|мене)\b|我|私|僕|俺",
    re.IGNORECASE,
)
# Only a quotation, or the message of an error.
_QUOTED = re.compile(r"""\s*(?:"[^"]+"|'[^']+'|`[^`]+`|“[^”]+”|„[^“”]+[“”]|«[^»]+»|‘[^’]+’)\s*""")
_ERROR = re.compile(
    r"\s*(?:(?:[\w.]+\.)?\w*(?:Error|Exception|Warning)(?::\s.*)?|(?:error|fatal)(?:\[\w+\])?:\s.*)", re.DOTALL
)
# Questions about recent and next work, in the languages of the relevance gate.
_ASKS_PROGRESS = re.compile(
    r"\b(left off|where (are|were|did) we\b|where was i\b|catch me up|next steps?|what'?s? (is |comes )?next\b(?!\.)|"
    r"what (have|had|did|were|was) (we|i|you) (do(ne|ing)?|get done|work(ing|ed)?|been|changed?|finish(ed)?)\b|"
    r"what'?s? (is )?(still )?(left to do|to be done|open|pending|unfinished|under way)\b|"
    r"(our|open|unfinished|remaining|pending) (goals?|tasks?|to-?dos?|work)|project('s)? (status|progress)|"
    r"(status|progress|state) of (the|this|our) (project|work)|"
    r"wo (waren|sind) (wir|ich)|wo (haben wir|hab(e)? ich) .{0,20}aufgehört|was steht an|"
    r"wor?an (haben wir|hab(e)? ich|waren wir|war ich)|was (haben wir|hab(e)? ich) .{0,30}(gemacht|geschafft)|"
    r"was (ist|war|blieb) (\w+ )?(noch )?(offen|als nächstes|liegen geblieben|liegengeblieben)|nächste schritte|"
    r"stand der dinge|offene\w* (ziele|aufgaben)|d[óo]nde (lo )?(quedamos|dejamos)|por d[óo]nde (íbamos|ibamos)|"
    r"en qu[ée] (quedamos|estábamos|andábamos)|qu[ée] (hicimos|hice)\b|qu[ée] (falta|sigue|queda) por|próximos pasos|"
    r"qu[ée] qued[óa] (pendiente|abierto)|où en (étions|sommes)[- ]nous|où (on|nous) en (était|étions|est|sommes)|"
    r"on en (était|est) où|(qu'est-ce qu'on|qu'avons-nous|qu'a-t-on|on) (a )?"
    r"(déjà )?fait (hier|avant-hier|cette semaine)|"
    r"qu'est-ce qui reste|que reste-t-il|prochaines étapes|onde (paramos|ficamos)|o que (falta|resta)|próximos passos|"
    r"на ч[её]м мы остановились|что осталось|на чому ми зупинились|що залишилось)|"
    r"上次.{0,4}哪|接下来做|前回の続き|次は何",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time range; None means open."""

    since: datetime | None
    until: datetime | None

    @property
    def days(self) -> tuple[float, float]:
        """Return the range as Julian days."""
        since = -float("inf") if self.since is None else _julian(self.since)
        return since, float("inf") if self.until is None else _julian(self.until)


def asks_progress(text: str) -> bool:
    """Return whether a text asks about recent or pending work."""
    return _ASKS_PROGRESS.search(text) is not None


def is_personal(text: str) -> bool:
    """Return whether a text speaks of its author in the first person singular."""
    return _PERSONAL.search(text) is not None


def parse_time_range(text: str, now: datetime) -> TimeRange | None:
    """Return the range (UTC) of the first time expression in a text, relative to a time; None without one.

    Days are those of the local time zone.
    """
    for pattern, read in _EXPRESSIONS:
        if match := pattern.search(text):
            try:
                days = read(match, datetime.combine(now.astimezone().date(), time()))
                since, until = (day.astimezone(UTC) for day in days)
            except (ValueError, OverflowError):
                # A date that does not exist: words that only look like a date.
                continue
            # A preposition may belong to the expression: "since Tuesday".
            name = match.groupdict().keys() & {"weekday", "named"}
            return _open_range(text[: match.start(*name)], since, until)
    return None


def _open_range(before: str, since: datetime, until: datetime) -> TimeRange:
    preposition = re.search(r"\b(since|after|until|till|before)\s+((the|on|in|last|this)\s+)?$", before, re.IGNORECASE)
    word = preposition[1].lower() if preposition else ""
    if word == "since":
        return TimeRange(since, None)
    if word == "after":
        return TimeRange(until, None)
    return TimeRange(None, since) if word else TimeRange(since, until)


Read = Callable[["re.Match[str]", datetime], tuple[datetime, datetime]]


def _iso(match: "re.Match[str]", today: datetime) -> tuple[datetime, datetime]:
    day = today.replace(year=int(match["year"]), month=int(match["month"]), day=int(match["day"]))
    return day, day + DAY


def _days_back(days: int) -> Read:
    return lambda _found, today: (today - days * DAY, today - (days - 1) * DAY)


def _ago(match: "re.Match[str]", today: datetime) -> tuple[datetime, datetime]:
    start = _back(today, _count(match), match["unit"])
    width = {"day": 1, "week": 7, "month": 31, "year": 366}[match["unit"].lower()]
    # "Three weeks ago" is approximate: include half a unit on either side.
    slack = timedelta(days=width // 2)
    return start - slack, start + slack + DAY


def _within(match: "re.Match[str]", today: datetime) -> tuple[datetime, datetime]:
    return _back(today, _count(match), match["unit"]), today + DAY


def _calendar(match: "re.Match[str]", today: datetime) -> tuple[datetime, datetime]:
    unit, back = match["unit"].lower(), match["which"].lower() != "this"
    if unit == "week":
        start = today - today.weekday() * DAY - (7 * DAY if back else timedelta())
        return start, start + 7 * DAY
    if unit == "month":
        this = today.replace(day=1)
        start = _back(this, 1, "month") if back else this
        return start, _back(start, -1, "month")
    start = today.replace(year=today.year - back, month=1, day=1)
    return start, start.replace(year=start.year + 1)


def _weekday(match: "re.Match[str]", today: datetime) -> tuple[datetime, datetime]:
    weekday = [day.lower() for day in WEEKDAYS].index(match["weekday"].lower())
    day = today - ((today.weekday() - weekday - 1) % 7 + 1) * DAY
    return day, day + DAY


def _month(match: "re.Match[str]", today: datetime) -> tuple[datetime, datetime]:
    month = [name.lower() for name in MONTHS].index(match["named"].lower()) + 1
    year = int(match["year"]) if match["year"] else today.year - (month > today.month)
    start = today.replace(year=year, month=month, day=1)
    return start, _back(start, -1, "month")


def _back(day: datetime, count: int, unit: str) -> datetime:
    if unit.lower() in ("day", "week"):
        return day - count * (7 if unit.lower() == "week" else 1) * DAY
    months = day.year * 12 + day.month - 1 - count * (12 if unit.lower() == "year" else 1)
    return day.replace(year=months // 12, month=months % 12 + 1, day=min(day.day, 28))


def _count(match: "re.Match[str]") -> int:
    count = match["count"].lower()
    return _NUMBERS[count] if count in _NUMBERS else int(count)


def _julian(moment: datetime) -> float:
    return moment.toordinal() + JULIAN_DAY_OF_YEAR_1 + moment.hour / 24


_EXPRESSIONS: Final[tuple[tuple["re.Pattern[str]", Read], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b", _iso),
        (
            r"\b(the day before yesterday|vorgestern|anteayer|avant-hier|anteontem|позавчера|позавчора)\b|前天|一昨日",
            _days_back(2),
        ),
        # French "hier" is also a German word.
        (
            r"\b(yesterday|gestern|ayer|ontem|вчера|вчора|hier (soir|matin)|(on|nous)\b.{0,30}\bhier)\b|昨天|昨日",
            _days_back(1),
        ),
        (r"\b(today|this morning|heute|hoy|aujourd'hui|hoje|сегодня|сьогодні)\b|今天|今日", _days_back(0)),
        (rf"\b{_COUNT}\s+{_UNIT}\s+ago\b", _ago),
        (rf"\b(?:in|over|within)\s+the\s+(?:last|past)\s+{_COUNT}\s+{_UNIT}\b", _within),
        (r"\b(?P<which>last|past|previous|this)\s+(?P<unit>week|month|year)\b", _calendar),
        (rf"\b(?:{_BEFORE_NAME}|on)\s+(?P<weekday>{_WEEKDAY})\b", _weekday),
        (
            rf"\b(?:{_BEFORE_NAME}|in|during)\s+(?P<named>{_MONTH})(?:\s+(?P<year>(?:19|20)\d\d))?\b",
            _month,
        ),
    )
)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query: text, tokens, identifiers, words, time range, and whether it is about the asker.

    `is_literal`: it is nothing but identifiers, a quotation or an error's message. `asked_attributes` are the
    attributes of the user that it asks for.
    """

    text: str
    tokens: tuple[str, ...]
    identifiers: tuple[str, ...]
    time_range: TimeRange | None
    personal: bool
    is_literal: bool = False
    asked_attributes: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


def parse_query(text: str, now: datetime) -> ParsedQuery:
    """Parse a query at a time (UTC), to which relative times refer."""
    return _parse_on_day(text, datetime.combine(now.astimezone().date(), time()).astimezone(UTC))


# A message is searched among memories, lessons, sessions and the memories about the person.
@lru_cache(MOST_PARSED)
def _parse_on_day(text: str, midnight: datetime) -> ParsedQuery:
    return ParsedQuery(
        text,
        tuple(search_tokens(text)),
        tuple(identifiers(text)),
        parse_time_range(text, midnight),
        is_personal(text),
        is_literal(text),
        list_asked_attributes(text),
        frozenset(word.casefold() for word in list_compounds(text)),
    )


def is_literal(text: str) -> bool:
    """Return whether a text is nothing but identifiers, a quotation or an error's message."""
    if _QUOTED.fullmatch(text) or _ERROR.fullmatch(text):
        return True
    compounds = list_compounds(text)
    return bool(compounds) and all(identifiers(compound) for compound in compounds)
