"""What the search over turns reads: their texts, their sessions, and the state of their lexical segment."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.records import EdgeKind, Sensitivity, Stage
from pipeline.store.turns import TURNS, Role, Turn
from pipeline.store.visibility import named_by_condition
from pipeline.times import utc_now


def list_after(db: Connection, seq: int, limit: int) -> list[tuple[int, str | None, str]]:
    """List (row number, session, role) of the turns after a row number, in row order."""
    return db.execute(
        "SELECT seq, session_id, role FROM turn WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)
    ).fetchall()


def list_texts_after(db: Connection, seq: int, limit: int) -> list[tuple[int, str]]:
    """List (row number, text) of the turns after a row number, in row order."""
    return db.execute("SELECT seq, content FROM turn WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)).fetchall()


def all_seqs(db: Connection) -> list[int]:
    """List the row numbers of all turns, in order."""
    return [seq for (seq,) in db.execute("SELECT seq FROM turn ORDER BY seq")]


def last_seq(db: Connection) -> int:
    """Return the highest row number, 0 without turns."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM turn").fetchone()[0])


def count_after(db: Connection, seq: int) -> int:
    """Count the turns after a row number."""
    return int(db.execute("SELECT count(*) FROM turn WHERE seq > ?", (seq,)).fetchone()[0])


def list_embedded_texts(db: Connection, seqs: Sequence[int]) -> dict[int, list[str]]:
    """Return the texts of turns to embed: what a person said, and the conclusions that come from a turn."""
    rows = db.execute(
        "SELECT t.seq, t.content FROM turn t WHERE t.role = ? AND t.seq IN "
        "(SELECT CAST(value AS BIGINT) FROM json_each(?)) UNION ALL "
        "SELECT c.turn_seq, c.content FROM conclusion c WHERE c.turn_seq IN "
        "(SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY 1",
        (Role.USER, json.dumps(list(seqs)), json.dumps(list(seqs))),
    )
    texts: dict[int, list[str]] = {}
    for seq, text in rows:
        texts.setdefault(int(seq), []).append(text)
    return texts


def list_embedded_seqs(db: Connection) -> set[int]:
    """List the turns that have something to embed."""
    rows = db.execute("SELECT seq FROM turn WHERE role = ? UNION SELECT turn_seq FROM conclusion", (Role.USER,))
    return {int(seq) for (seq,) in rows}


def list_queued_seqs(db: Connection) -> set[int]:
    """List the turns that are queued to be embedded, or failed permanently."""
    rows = db.execute("SELECT memory_seq FROM work WHERE stage = ?", (Stage.EMBED_TURNS,))
    return {int(seq) for (seq,) in rows}


def list_hidden_sessions(db: Connection) -> set[str]:
    """List the sessions that a search must not show: incognito sessions."""
    return {session_id for (session_id,) in db.execute("SELECT session_id FROM incognito")}


@dataclass(frozen=True, slots=True)
class FoundTurn(Turn):
    """A turn with its session's agent and title."""

    agent: str | None = None
    title: str | None = None


# A memory that must not be injected into a prompt was made of the turn.
_NOT_PRIVATE = f"""NOT EXISTS (SELECT 1 FROM memory m WHERE m.session_id = t.session_id
    AND m.sensitivity <> '{Sensitivity.NORMAL}'
    AND CAST(json_extract(m.metadata, '$.turn') AS BIGINT) = t.seq)"""  # noqa: S608 - constant text


def list_made(db: Connection, seqs: Iterable[int]) -> list[tuple[int, int, bool]]:
    """List (turn, memory, whether it is current) for the memories that were made of some turns, oldest first.

    A memory is not current if it waits for a decision, was archived or superseded, or if its time is over. A merged
    memory lives on in another one.
    """
    rows = db.execute(
        "SELECT t.seq, m.seq, m.candidate = 1 OR (m.archived_at IS NOT NULL AND m.merged_into IS NULL) "
        "OR m.valid_to IS NOT NULL OR coalesce(m.expires_at <= ?, false) "
        "OR EXISTS (SELECT 1 FROM edge e WHERE e.to_seq = m.seq AND e.kind = ?) "
        "FROM turn t JOIN memory m ON m.session_id = t.session_id "
        "AND CAST(json_extract(m.metadata, '$.turn') AS BIGINT) = t.seq "
        "WHERE t.seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY m.seq",
        (utc_now(), EdgeKind.SUPERSEDES, json.dumps(list(seqs))),
    )
    return [(int(turn), int(memory), not is_over) for turn, memory, is_over in rows]


def list_said_before(db: Connection, seq: int, limit: int) -> list[Turn]:
    """List the newest messages of people before a turn, latest first, without those of incognito sessions."""
    rows = db.execute(
        f"{TURNS.select} WHERE seq < ? AND role = ? "  # noqa: S608 - constant text
        "AND session_id NOT IN (SELECT session_id FROM incognito) ORDER BY seq DESC LIMIT ?",
        (seq, Role.USER, limit),
    )
    return TURNS.read_all(rows)


def list_not_current(db: Connection, seqs: Iterable[int]) -> set[int]:
    """Return those of some turns of which a memory was made that is not current."""
    return {turn for turn, _, is_current in list_made(db, seqs) if not is_current}


def list_found(
    db: Connection, seqs: Sequence[int], person: str | None, *, only_normal: bool = False
) -> dict[int, FoundTurn]:
    """Return turns by row number: those that exist and were not taken back, of sessions that are not incognito.

    With `only_normal`, turns that a private memory was made of are left out.
    """
    rows = db.execute(
        "SELECT t.session_id, t.role, t.content, t.at, t.seq, s.agent, s.name "  # noqa: S608 - constant text
        "FROM turn t LEFT JOIN agent_session s ON s.id = t.session_id "
        "WHERE t.seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) "
        f"AND t.role <> '{Role.TAKEN_BACK}' AND t.session_id NOT IN (SELECT session_id FROM incognito) "
        f"AND {named_by_condition('t.session_id', person)} AND {_NOT_PRIVATE if only_normal else 'true'}",
        (json.dumps(list(seqs)),),
    )
    return {
        int(seq): FoundTurn(session, Role(role), content, at, int(seq), agent, title)
        for session, role, content, at, seq, agent, title in rows
    }
