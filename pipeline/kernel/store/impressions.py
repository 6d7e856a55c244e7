"""Impressions: each time that an agent was shown a memory, and whether it followed it; lessons by impressions."""

import json
import string
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from sqlite3 import Connection

from ulid import ULID

from pipeline.kernel.records import Filter, Kind, Memory, Viewer
from pipeline.kernel.store.memories import select, select_newest
from pipeline.kernel.store.rows import DELETE, Relation, Rows, Table, find_row, list_rows
from pipeline.kernel.store.visibility import condition
from pipeline.kernel.times import utc_now


@dataclass(frozen=True, slots=True)
class JudgedAct:
    """An act that kept or broke a rule after it was shown, with its tool and its target, a command or a file.

    `call_id` is the host's id of the call, by which its line in the transcript is found.
    """

    at: str
    tool: str
    target: str
    is_kept: bool
    call_id: str = ""
    transcript: str = ""


@dataclass(frozen=True, slots=True)
class Impression:
    """A memory that an agent was shown; `followed` is None until it is reported, possibly with a reason.

    `agent_id` names a subagent of the session; the main agent has none.
    """

    id: str
    memory_seq: int
    session_id: str | None
    at: str
    followed: bool | None = None
    agent_id: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a memory was shown, followed and ignored."""

    shown: int = 0
    followed: int = 0
    ignored: int = 0


_IMPRESSIONS = Rows(Impression, "impression")
# Acts that are recorded for each impression.
MOST_ACTS = 8


def add(db: Connection, impressions: Sequence[Impression]) -> None:
    """Store impressions."""
    db.executemany(
        "INSERT INTO impression (id, memory_seq, session_id, at, agent_id) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        [(s.id, s.memory_seq, s.session_id, s.at, s.agent_id) for s in impressions],
    )


def get(db: Connection, impression_id: str) -> Impression | None:
    """Return an impression by id."""
    return _IMPRESSIONS.fetch_one(db, "WHERE id = ?", (impression_id,))


def list_unanswered(db: Connection, session_id: str) -> list[Impression]:
    """List the impressions of a session without a report."""
    return _IMPRESSIONS.fetch(db, "WHERE session_id = ? AND followed IS NULL ORDER BY seq", (session_id,))


def list_of_agent(db: Connection, session_id: str, agent_id: str | None, until: str, limit: int) -> list[Impression]:
    """List the latest impressions of an agent in a session until a time, in order."""
    newest = _IMPRESSIONS.fetch(
        db,
        "WHERE session_id = ? AND coalesce(agent_id, '') = ? AND at <= ? AND withheld = 0 ORDER BY seq DESC LIMIT ?",
        (session_id, agent_id or "", until, limit),
    )
    return newest[::-1]


def add_act(db: Connection, impression_id: str, act: JudgedAct) -> None:
    """Record an act that kept or broke a shown rule, once if its host names the call; of many, the last ones."""
    known = list_acts(db, [impression_id]).get(impression_id, [])
    acts = [*(other for other in known if not act.call_id or other.call_id != act.call_id), act][-MOST_ACTS:]
    db.execute(
        "UPDATE impression SET acts = ? WHERE id = ?",
        (json.dumps(list(map(asdict, acts)), ensure_ascii=False), impression_id),
    )


def list_acts(db: Connection, impression_ids: Sequence[str]) -> dict[str, list[JudgedAct]]:
    """Return the acts that kept or broke shown rules, by impression."""
    rows = db.execute(
        "SELECT id, acts FROM impression WHERE acts IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(impression_ids)),),
    )
    return {impression_id: [JudgedAct(**act) for act in json.loads(acts)] for impression_id, acts in rows}


def forget_acts(db: Connection, session_id: str, since: str) -> None:
    """Delete the acts of a session and its subagents since a time."""
    shown = list_rows(db, str, "SELECT id FROM impression WHERE session_id = ? AND acts IS NOT NULL", (session_id,))
    for impression_id, acts in list_acts(db, shown).items():
        earlier = [asdict(act) for act in acts if act.at < since]
        if len(earlier) < len(acts):
            db.execute("UPDATE impression SET acts = ? WHERE id = ?", (json.dumps(earlier), impression_id))


def find_first_shown(db: Connection, session_id: str, memory_seq: int) -> str | None:
    """Return when a session was first shown a memory."""
    return find_row(
        db,
        str,
        "SELECT min(at) FROM impression WHERE memory_seq = ? AND session_id = ? AND withheld = 0",
        (memory_seq, session_id),
    )


def answer(db: Connection, impression_id: str, note: str | None, at: str, *, followed: bool) -> None:
    """Record whether a shown memory was followed; the last report counts."""
    db.execute(
        "UPDATE impression SET followed = ?, note = ?, answered_at = ? WHERE id = ?",
        (followed, note, at, impression_id),
    )


def withdraw(db: Connection, impression_id: str) -> None:
    """Withdraw the report about an impression."""
    db.execute("UPDATE impression SET followed = NULL, note = NULL, answered_at = NULL WHERE id = ?", (impression_id,))


# Commit d0a0c2d4 recorded lessons that it withheld from agents.
_TALLY = (
    "SELECT count(*), count(*) FILTER (WHERE followed = 1), count(*) FILTER (WHERE followed = 0) FROM impression "
    "WHERE withheld = 0 AND"
)


def tally(db: Connection, memory_seq: int) -> Tally:
    """Count a memory's impressions."""
    return Tally(*db.execute(f"{_TALLY} memory_seq = ?", (memory_seq,)).fetchone())


def latest(db: Connection, memory_seq: int, limit: int, among: str = "true") -> list[Impression]:
    """List a memory's last impressions that meet a condition, the latest first."""
    return _IMPRESSIONS.fetch(db, f"WHERE memory_seq = ? AND {among} ORDER BY seq DESC LIMIT ?", (memory_seq, limit))


_LESSON_TEXT = (
    "content || ' ' || coalesce(json_extract(details, '$.rule'), '') || ' ' || "
    "coalesce(json_extract(details, '$.applies_when'), '')"
)

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

# The text of a lesson including its rule and anchor.
_WHOLE_LESSON = "lower(content || details || coalesce(anchor, ''))"


def page_lessons(db: Connection, viewer: Viewer, words: Sequence[str], limit: int, before: int | None) -> list[Memory]:
    """List lessons that contain each of the words, newest first, below a row number."""
    clause, values = _select_containing(words)
    return select_newest(db, Filter(kinds=(Kind.LESSON,), viewer=viewer), limit, before, clause, values)


def tally_lessons(db: Connection, viewer: Viewer, words: Sequence[str], among: str = "true") -> list[tuple[int, Tally]]:
    """Return the counts of shown lessons that contain each of the words, by row number.

    `among` is the condition for the impressions that are counted.
    """
    # Counted in row order: in index order each row would be fetched separately.
    counts = {
        seq: Tally(shown, followed, ignored)
        for seq, shown, followed, ignored in db.execute(
            "SELECT memory_seq, count(*), count(*) FILTER (WHERE followed = 1), count(*) FILTER (WHERE followed = 0) "  # noqa: S608
            f"FROM impression NOT INDEXED WHERE withheld = 0 AND {among} GROUP BY memory_seq"
        )
    }
    clause, values = condition(Filter(kinds=(Kind.LESSON,), viewer=viewer))
    containing, words_sought = _select_containing(words)
    seqs = list_rows(
        db,
        int,
        "SELECT seq FROM memory WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "  # noqa: S608
        f"AND {clause} AND {containing}",
        (json.dumps(list(counts)), *values, *words_sought),
    )
    return [(seq, counts[seq]) for seq in seqs]


def list_lessons_mentioning(db: Connection, viewer: Viewer, words: Sequence[str], limit: int) -> list[Memory]:
    """List the newest visible lessons that contain any of some lower-case words."""
    clause, values = condition(Filter(kinds=(Kind.LESSON,), viewer=viewer))
    # SQLite folds ASCII only.
    if words and all(word.isascii() for word in words):
        clause = f"{clause} AND ({' OR '.join([f'instr({_WHOLE_LESSON}, ?) > 0'] * len(words))})"
        values = [*values, *words]
    return select(db, f"{clause} ORDER BY seq DESC LIMIT ?", (*values, limit))


def _select_containing(words: Sequence[str]) -> tuple[str, list[str]]:
    # Unlike LIKE, instr has no wildcards; lower() folds ASCII only, and so does this code.
    contains = f" AND instr(lower({_LESSON_TEXT}), ?) > 0"
    return f"true{contains * len(words)}", [word.translate(_LOWER) for word in words]


def make_impressions(
    shown: Sequence[Memory], session_id: str | None, agent_id: str | None = None
) -> tuple[Impression, ...]:
    """Give an id to each memory that is about to be put before an agent of a session, or a subagent of it."""
    now = utc_now()
    return tuple(Impression(str(ULID()), memory.seq, session_id, now, agent_id=agent_id) for memory in shown)


TABLES = (
    Table(
        "impression",
        text=("note", "acts"),
        quoting={"acts": "acts = NULL"},
        memory=("memory_seq",),
        erasure=DELETE,
        replicated=Relation(
            "answer",
            fields=("session_id", "agent_id", "at", "followed", "note", "answered_at", "withheld"),
            key="a.id, '', r.id",
            source="impression r JOIN memory a ON a.seq = r.memory_seq WHERE r.followed IS NOT NULL",
            chosen="r.id IN (SELECT value FROM json_each(?))",
            put=(
                (
                    "INSERT INTO impression "
                    "(id, memory_seq, session_id, agent_id, at, followed, note, answered_at, withheld) VALUES "
                    "(:name, :seq, :session_id, :agent_id, :at, :followed, :note, :answered_at, "
                    "coalesce(:withheld, 0)) "
                    "ON CONFLICT (id) DO UPDATE SET session_id = excluded.session_id, agent_id = excluded.agent_id, "
                    "at = excluded.at, followed = excluded.followed, note = excluded.note, "
                    "answered_at = excluded.answered_at, withheld = excluded.withheld"
                ),
            ),
            drop="UPDATE impression SET followed = NULL, note = NULL, answered_at = NULL WHERE id = :name",
        ),
        orphans="impressions",
    ),
)
