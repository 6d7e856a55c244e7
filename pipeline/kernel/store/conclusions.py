"""Conclusions of sessions: what each session decided, which later decision replaces it, and the requests to extract it.

Conclusions are derived from turns: they can be extracted again, and they are deleted with the turns they come from.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.kernel.records import Stage
from pipeline.kernel.store import work
from pipeline.kernel.store.rows import Rows, Table, list_rows
from pipeline.kernel.store.visibility import named_by_condition, visible_sessions_condition


class ConclusionKind(StrEnum):
    """The kind of a conclusion."""

    DECISION = "decision"
    RULE = "rule"
    REJECTED = "rejected"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class NewConclusion:
    """A conclusion of a session in the words of a turn, and the topic of the session: names first, then words."""

    session_id: str
    turn_seq: int
    kind: ConclusionKind
    content: str
    topic: tuple[str, ...]
    at: str


@dataclass(frozen=True, slots=True)
class Conclusion(NewConclusion):
    """A stored conclusion, and the row number of the later one that replaces it, if there is one.

    Of one session, the most important conclusion has the lowest row number. `is_of_agent`: the agent said it, not the
    user.
    """

    seq: int = 0
    superseded_by: int | None = None
    is_of_agent: bool = False

    @property
    def is_current(self) -> bool:
        """Return whether no later conclusion replaces this one."""
        return self.superseded_by is None


# The words are those of a turn: its role shows whose they are.
IS_OF_AGENT = "(SELECT CASE WHEN role = 'assistant' THEN 1 ELSE 0 END FROM turn WHERE turn.seq = conclusion.turn_seq)"
_CONCLUSIONS = Rows(Conclusion, "conclusion", is_of_agent=IS_OF_AGENT)


def replace(db: Connection, session_id: str, conclusions: Iterable[NewConclusion]) -> list[Conclusion]:
    """Replace the conclusions of a session, the most important first; return the stored ones."""
    forget_of_sessions(db, [session_id])
    return [_insert(db, conclusion) for conclusion in conclusions]


def _insert(db: Connection, new: NewConclusion) -> Conclusion:
    topic = json.dumps(new.topic, ensure_ascii=False)
    (seq,) = db.execute(
        "INSERT INTO conclusion (session_id, turn_seq, kind, content, topic, at) VALUES (?, ?, ?, ?, ?, ?) "
        "RETURNING seq",
        (new.session_id, new.turn_seq, new.kind, new.content, topic, new.at),
    ).fetchone()
    return Conclusion(new.session_id, new.turn_seq, new.kind, new.content, new.topic, new.at, int(seq))


def list_of_sessions(db: Connection, session_ids: Collection[str]) -> list[Conclusion]:
    """List the conclusions of sessions, the most important of each session first."""
    return _CONCLUSIONS.fetch(
        db, "WHERE session_id IN (SELECT value FROM json_each(?)) ORDER BY seq", (json.dumps(list(session_ids)),)
    )


def group_by_session(conclusions: Iterable[Conclusion]) -> dict[str, list[Conclusion]]:
    """Return the conclusions of each session, the most important first."""
    by_session: dict[str, list[Conclusion]] = {}
    for conclusion in sorted(conclusions, key=lambda one: one.seq):
        by_session.setdefault(conclusion.session_id, []).append(conclusion)
    return by_session


def by_seqs(db: Connection, seqs: Collection[int]) -> list[Conclusion]:
    """Return conclusions by row number, in order."""
    return _CONCLUSIONS.fetch(
        db, "WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY seq", (json.dumps(list(seqs)),)
    )


def list_mains(db: Connection, limit: int) -> list[Conclusion]:
    """List the most important conclusion of each of the newest sessions."""
    return _CONCLUSIONS.fetch(
        db, "WHERE seq IN (SELECT min(seq) FROM conclusion GROUP BY session_id) ORDER BY at DESC LIMIT ?", (limit,)
    )


def list_current(db: Connection, limit: int, person: str | None = None) -> list[Conclusion]:
    """List the conclusions of a person's sessions that are current, newest first."""
    whose = named_by_condition("session_id", person)
    return _CONCLUSIONS.fetch(
        db, f"WHERE superseded_by IS NULL AND {whose} ORDER BY at DESC, seq DESC LIMIT ?", (limit,)
    )


def list_current_of_sessions(db: Connection, session_ids: Collection[str]) -> list[Conclusion]:
    """List the current conclusions of sessions, newest first."""
    return _CONCLUSIONS.fetch(
        db,
        "WHERE session_id IN (SELECT value FROM json_each(?)) AND superseded_by IS NULL ORDER BY at DESC, seq DESC",
        (json.dumps(list(session_ids)),),
    )


def list_current_about(db: Connection, name: str, person: str | None, limit: int) -> list[Conclusion]:
    """List the current conclusions of sessions that are not incognito whose topic contains a name, newest first."""
    return _CONCLUSIONS.fetch(
        db,
        "WHERE superseded_by IS NULL AND EXISTS "  # noqa: S608
        "(SELECT 1 FROM json_each(topic) WHERE lower(value) = ? OR lower(value) LIKE ?) "
        f"AND {visible_sessions_condition(person)} ORDER BY at DESC, seq DESC LIMIT ?",
        (name.lower(), f"%/{name.lower()}", limit),
    )


def list_titles(db: Connection, session_ids: Collection[str]) -> dict[str, str]:
    """Return the titles of sessions that have one."""
    return dict(
        db.execute(
            "SELECT id, name FROM agent_session WHERE name IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(session_ids)),),
        ).fetchall()
    )


def supersede(db: Connection, pairs: Iterable[tuple[int, int]]) -> None:
    """Record which conclusions later ones replace: pairs of the earlier and the later row number."""
    db.executemany("UPDATE conclusion SET superseded_by = ? WHERE seq = ?", [(later, seq) for seq, later in pairs])


def forget_of_sessions(db: Connection, session_ids: Collection[str]) -> None:
    """Delete the conclusions of sessions; what they replaced counts as current again."""
    named = json.dumps(list(session_ids))
    own = "session_id IN (SELECT value FROM json_each(?))"
    db.execute(
        "UPDATE conclusion SET superseded_by = NULL "  # noqa: S608 - constant text
        f"WHERE superseded_by IN (SELECT seq FROM conclusion WHERE {own})",
        (named,),
    )
    db.execute(f"DELETE FROM conclusion WHERE {own}", (named,))  # noqa: S608 - constant text


def request(db: Connection, session_ids: Collection[str], now: float) -> None:
    """Queue sessions to be concluded, again if they were before; each is one item, under its first turn."""
    rows = db.execute(
        "SELECT min(seq) FROM turn WHERE session_id IN (SELECT value FROM json_each(?)) GROUP BY session_id",
        (json.dumps(list(session_ids)),),
    ).fetchall()
    if rows:
        work.add(db, [seq for (seq,) in rows], [Stage.CONCLUDE], now)


def list_sessions_of(db: Connection, turn_seqs: Iterable[int]) -> list[str]:
    """List the sessions of turns. A conclusion may quote several turns of its session."""
    return list_rows(
        db,
        str,
        "SELECT DISTINCT session_id FROM turn WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (json.dumps(list(turn_seqs)),),
    )


# Conclusions are deleted with any turn of their session.
TABLES = (Table("conclusion", text=("content", "topic")),)
