"""Memories as an agent is shown them: which may be shown, the records of lessons, and the text of each memory."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from sqlite3 import Connection
from typing import Final, TypeVar

from pipeline.kernel.enums import UNFINISHED
from pipeline.kernel.kinds import render_rule, render_text
from pipeline.kernel.records import HEADER, RULES_HEADER, SAID_HEADER, SHORT_ID, TEAM_HEADER, Kind, Memory, Trust
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import NOTHING, Annotations, Hit
from pipeline.kernel.store import agent_sessions, impressions, ingested, memories
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.impressions import Tally
from pipeline.kernel.times import age, due_age, parse
from pipeline.recall.relevance import RELEVANT
from pipeline.text.quoting import Speaker, find_speaker, quote
from pipeline.text.similarity.pair_classifier import MERGE_COSINE, Relation, classify_pair
from pipeline.text.tokens import search_tokens
from pipeline.write.fields import Severity

T = TypeVar("T")

LONGEST_LINE = 600
# In a list of many, a line says its age from then on.
OLD = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory to show, its annotations, the id of its impression, and the part of its text to show.

    An entry with a `record` is a rule. One `of_person` is from the personal store, one with a `team` from that team.
    """

    memory: Memory
    remarks: Annotations = NOTHING
    impression_id: str | None = None
    excerpt: str | None = None
    record: str | None = None
    of_person: bool = False
    team: str | None = None

    @property
    def header(self) -> str:
        """Return the header of the part of a block to which the memory belongs."""
        if self.record is not None:
            return RULES_HEADER
        if self.team is not None:
            return TEAM_HEADER
        is_said = self.memory.said_by is not None and not self.memory.instructs
        return SAID_HEADER if is_said and self.memory.trust is not Trust.TRUSTED else HEADER


class SectionRoom:
    """Lines in sections, as many as fit; each line and each header takes its length and a line break."""

    def __init__(self, most_chars: int) -> None:
        self.lines: list[str] = []
        self._headers: set[str] = set()
        self._left = most_chars

    def add(self, header: str, records: Sequence[T], lines: Sequence[str]) -> list[T]:
        """Add the lines of a section that fit, and return their records."""
        added: list[T] = []
        for record, line in zip(records, lines, strict=True):
            new = [line] if header in self._headers else [header, line]
            size = sum(1 + len(text) for text in new)
            if size <= self._left:
                self.lines += new
                self._headers.add(header)
                self._left -= size
                added.append(record)
        return added


def render_block(
    entries: Sequence[Entry],
    max_chars: int,
    now: datetime,
    render: Callable[[Entry, datetime], str] | None = None,
) -> tuple[str | None, list[Entry]]:
    """Render memories that fit, rules and statements first; return the text and the rendered entries.

    Skip entries that are too long. The text is None if no entry fits.
    `render` makes a line of an entry, by default `render_line`.
    """
    room = SectionRoom(max_chars + 1)
    rendered: list[Entry] = []
    for header in (RULES_HEADER, SAID_HEADER, HEADER, TEAM_HEADER):
        part = [entry for entry in entries if entry.header == header]
        rendered += room.add(header, part, [(render or render_line)(entry, now) for entry in part])
    return ("\n".join(room.lines) if rendered else None), rendered


def render_line(entry: Entry, now: datetime) -> str:
    """Render one memory: its short id, kind and age, its text, and the remarks on it."""
    memory = entry.memory
    when = f"{age(memory.occurred_at, now)}{_due(memory, now)}"
    marks = [memory.id[-SHORT_ID:], memory.kind, *(["about the user"] if memory.is_of_person else []), when]
    marks += [] if entry.record is None else [entry.record]
    marks += [] if entry.team is None else [f"team {entry.team}"]
    return f"- [{' · '.join(marks)}] {_find_speaker(entry).say(_text_of(entry))}{_notes(entry)}"


def render_brief_line(entry: Entry, now: datetime) -> str:
    """Render one memory of a long list below its header: its short id, its age if it is old, and its text."""
    memory = entry.memory
    is_old = now - parse(memory.occurred_at) >= OLD
    marks = [
        memory.id[-SHORT_ID:],
        "about the user" if memory.is_of_person else "",
        age(memory.occurred_at, now) if is_old else "",
        _due(memory, now).removeprefix(", "),
    ]
    text = quote(_text_of(entry)) if entry.header == SAID_HEADER else _find_speaker(entry).say(_text_of(entry))
    return f"- [{' · '.join(filter(None, marks))}] {text}{_notes(entry)}"


def _text_of(entry: Entry) -> str:
    render = render_text if entry.record is None else render_rule
    text = " ".join((entry.excerpt or render(entry.memory)).split())
    is_cut = entry.excerpt is None and len(text) > LONGEST_LINE
    return text[: LONGEST_LINE - 1].rstrip() + "…" if is_cut else text


def _find_speaker(entry: Entry) -> Speaker:
    memory = entry.memory
    said_by = memory.said_by if entry.team is None else None
    return find_speaker(memory.source, memory.trust, instructs=memory.instructs, said_by=said_by)


def _due(memory: Memory, now: datetime) -> str:
    due = memory.details.get("due_at")
    if memory.kind is not Kind.GOAL or not due or memory.details.get("status", UNFINISHED[0]) not in UNFINISHED:
        return ""
    return f", due {due_age(due, now)}"


def _notes(entry: Entry) -> str:
    notes = []
    if entry.remarks.stale:
        notes.append("stale")
    notes += entry.remarks.broken
    if entry.remarks.contradicted_by:
        short = ", ".join(f"[{memory_id[-SHORT_ID:]}]" for memory_id in entry.remarks.contradicted_by)
        notes.append(f"contradicted by {short}")
    if entry.remarks.superseded_by:
        notes.append(f"superseded by [{entry.remarks.superseded_by[-SHORT_ID:]}]")
    if entry.impression_id is not None:
        notes.append(f"surface {entry.impression_id}")
    return f" ({'; '.join(notes)})" if notes else ""


# Which memories may be shown, and the record of a lesson: how often it was shown and followed

# Minimum number of answers for a conclusion.
ENOUGH = 5


# The author of answers from the journal.
BY_JOURNAL = "by the journal"


# Of the normal distribution, for 95 %.
Z = 1.959964


class Usefulness(StrEnum):
    """The usefulness of a lesson, from the answers to its impressions."""

    USEFUL = "useful"
    UNPROVEN = "unproven"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson and its record; `low` and `high` bound the share of times that it is followed."""

    memory: Memory
    tally: Tally
    low: float
    high: float
    usefulness: Usefulness


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson, "Probable Inference", JASA 22, 1927)."""
    if not trials:
        return 0.0, 1.0
    share, square = successes / trials, Z * Z
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = Z / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


def usefulness(tally: Tally) -> Usefulness:
    """Return whether a record proves that agents mostly follow or mostly ignore the lesson, or nothing yet."""
    answered = tally.followed + tally.ignored
    low, high = wilson_interval(tally.followed, answered)
    if answered < ENOUGH or low <= 0.5 <= high:
        return Usefulness.UNPROVEN
    return Usefulness.USEFUL if low > 0.5 else Usefulness.DEAD


def with_records(db: Connection, lessons: Sequence[Memory]) -> list[Lesson]:
    """Return lessons with their records, in their order."""
    tallies = ((memory, impressions.tally(db, memory.seq)) for memory in lessons)
    return [
        Lesson(memory, tally, *wilson_interval(tally.followed, tally.followed + tally.ignored), usefulness(tally))
        for memory, tally in tallies
    ]


def describe_record(lesson: Lesson) -> str:
    """Return a lesson's record in a few words."""
    answered = lesson.tally.followed + lesson.tally.ignored
    return f"followed {lesson.tally.followed} of {answered}" if answered else "no record yet"


def is_rule(memory: Memory) -> bool:
    """Return whether a memory is a confirmed lesson."""
    # An unconfirmed lesson is evidence, not a rule.
    return memory.kind is Kind.LESSON and memory.trust is Trust.TRUSTED and not memory.instructs


def is_critical(lesson: Memory) -> bool:
    """Return whether a lesson is critical."""
    return lesson.details.get("severity") == Severity.CRITICAL


# Which memories may be shown without a request, and which ones an agent has seen

SHOWN_EACH: Final = 5


def list_shown_unasked(candidates: Iterable[Memory]) -> list[Memory]:
    """Return the memories that may be shown without a request."""
    return [memory for memory in candidates if memory.may_be_injected]


def drop_seen(db: Connection, session: AgentSession, candidates: Sequence[Memory]) -> list[Memory]:
    """Return the memories whose current version the agent has not seen in its session."""
    if session.id is None or not candidates:
        return list(candidates)
    seen = agent_sessions.list_seen_versions(
        db, session.id, session.agent_id or "", [memory.seq for memory in candidates]
    )
    return [memory for memory in candidates if seen.get(memory.seq) != version_of(memory)]


def version_of(memory: Memory) -> str:
    """Return a fingerprint of the text of a memory as an agent reads it."""
    return hashlib.sha256(render_text(memory).encode()).hexdigest()[:16]


def drop_dead(db: Connection, candidates: Sequence[Memory]) -> list[Memory]:
    """Drop the lessons that agents never follow."""
    records = with_records(db, [memory for memory in candidates if is_rule(memory)])
    dead = {record.memory.seq for record in records if record.usefulness is Usefulness.DEAD}
    return [memory for memory in candidates if memory.seq not in dead]


def once(candidates: Iterable[Memory]) -> list[Memory]:
    """Return distinct memories in their order."""
    return list({memory.seq: memory for memory in candidates}.values())


# Memories that repeat a rule file, which the agent's host loads itself, are left out

# Enough for long rule files; each is compared with the few memories that may be shown.
MAX_STATEMENTS = 1000
# A longer text says more than one statement.
LONGEST_STATEMENT: Final = 600
# The share of a statement's words that the other must contain before both are compared closely.
LEAST_SHARED: Final = 0.7
_CONTAINED: Final = ("one contains more",)


def list_rules(*databases: Database | None) -> list[str]:
    """Return the statements of the indexed rule files of the project and the user."""
    rules: list[str] = []
    for database in databases:
        if database is not None:
            with database.read() as db:
                seqs = ingested.list_rule_statements(db, MAX_STATEMENTS)
                rules += memories.contents(db, seqs).values() if seqs else ()
    return rules


def leave_out_rules(databases: Sequence[Database], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the results that may be injected and do not repeat a rule file."""
    shown = tuple(hit for hit in hits if hit.memory.may_be_injected)
    # The others are not shown, and outlines of code repeat no rule.
    certain = [hit for hit in shown if hit.relevance >= RELEVANT and hit.memory.kind is not Kind.CODE]
    rules = list_rules(*databases) if certain else []
    repeated = {hit.memory.id for hit in certain if repeats_rule(hit.memory, rules)}
    return tuple(hit for hit in shown if hit.memory.id not in repeated)


def leave_out_rules_of_groups(databases: Sequence[Database], groups: Sequence[Sequence[Hit]]) -> list[tuple[Hit, ...]]:
    """Leave out the results of each group as `leave_out_rules` does, but read the rules once."""
    shown = frozenset(map(id, leave_out_rules(databases, [hit for hits in groups for hit in hits])))
    return [tuple(hit for hit in hits if id(hit) in shown) for hits in groups]


def repeats_rule(memory: Memory, rules: Sequence[str]) -> bool:
    """Return whether a rule file says what a memory says."""
    return any(is_repeated(memory.content, rule) for rule in rules)


def is_repeated(statement: str, other: str) -> bool:
    """Return whether another statement says the same, or the same and more."""
    if max(len(statement), len(other)) > LONGEST_STATEMENT:
        return False
    words, others = _words_of(statement), _words_of(other)
    if not words or len(words & others) < LEAST_SHARED * len(words):
        return False
    judgement = classify_pair(statement, other, MERGE_COSINE)
    return judgement.relation is Relation.SAME or (judgement.reasons == _CONTAINED and words <= others)


@lru_cache(maxsize=4000)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(search_tokens(text))
