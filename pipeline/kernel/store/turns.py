"""Turns: messages of sessions, redacted, kept within the storage budget until the memory made from them is purged.

Also what the search over turns reads: their texts, their sessions, and the state of their lexical segment.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Connection

from pipeline.kernel.records import EdgeKind, Memory, Sensitivity, Stage
from pipeline.kernel.store import conclusions, index_state
from pipeline.kernel.store.memories import select, select_one
from pipeline.kernel.store.rows import Rows, Table, find_row, list_rows
from pipeline.kernel.store.visibility import named_by_condition
from pipeline.kernel.times import utc_now

_HASH_BYTES = 8


class Role(StrEnum):
    """The speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    # A message, of either side, that the person removed from the conversation.
    TAKEN_BACK = "taken back"


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a session."""

    session_id: str
    role: Role
    content: str
    at: str


@dataclass(frozen=True, slots=True)
class Turn(Message):
    """A stored message and its row number."""

    seq: int = 0


TURNS = Rows(Turn, "turn")


def hash_text(role: str, content: str) -> int:
    """Return a hash of a role and a text, by which copies of a message are recognized."""
    text = f"{role}\n{content}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=_HASH_BYTES).digest(), signed=True)


def add(db: Connection, messages: Iterable[Message]) -> list[int]:
    """Store messages in order; return their row numbers."""
    seqs = [
        db.execute(
            "INSERT INTO turn (session_id, role, content, at, text_hash) VALUES (?, ?, ?, ?, ?) RETURNING seq",
            (
                message.session_id,
                message.role,
                message.content,
                message.at,
                hash_text(message.role, message.content),
            ),
        ).fetchone()[0]
        for message in messages
    ]
    if seqs:
        index_state.note_turns_added(db, seqs[-1])
    return seqs


def find_copies(db: Connection, hashes: Iterable[int]) -> set[tuple[int, str]]:
    """Return the hashes and times of the stored messages with these hashes, of all sessions."""
    return set(
        db.execute(
            "SELECT text_hash, at FROM turn WHERE text_hash IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            (json.dumps(list(hashes)),),
        ).fetchall()
    )


def by_seqs(db: Connection, seqs: Sequence[int]) -> list[Turn]:
    """Return turns by row number, in order."""
    return TURNS.fetch(
        db, "WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY seq", (json.dumps(seqs),)
    )


def page(db: Connection, session_id: str, limit: int, before: int | None) -> list[Turn]:
    """List the turns of a session, the latest first, below a row number."""
    return TURNS.fetch(
        db,
        "WHERE session_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (session_id, 2**62 if before is None else before, limit),
    )


def find_before(db: Connection, turn: Turn) -> Turn | None:
    """Return the last turn of the other speaker before a turn."""
    return TURNS.fetch_one(
        db,
        "WHERE session_id = ? AND seq < ? AND role <> ? ORDER BY seq DESC LIMIT 1",
        (turn.session_id, turn.seq, turn.role),
    )


def find_answer(db: Connection, turn: Turn) -> Turn | None:
    """Return the agent's last message between a turn of the person and the next one."""
    return TURNS.fetch_one(
        db,
        "WHERE session_id = ? AND seq > ? AND role = ? AND seq < coalesce("
        "(SELECT min(seq) FROM turn WHERE session_id = ? AND seq > ? AND role = ?), seq + 1) ORDER BY seq DESC LIMIT 1",
        (turn.session_id, turn.seq, Role.ASSISTANT, turn.session_id, turn.seq, Role.USER),
    )


def find_times_around(db: Connection, turn: Turn) -> tuple[str, str]:
    """Return the times of the person's messages before and after a turn; texts before and after all times if none."""
    row = db.execute(
        "SELECT coalesce(max(at) FILTER (WHERE seq < ?1), ''), coalesce(min(at) FILTER (WHERE seq > ?1), '~') "
        "FROM turn WHERE session_id = ?2 AND role = ?3",
        (turn.seq, turn.session_id, Role.USER),
    ).fetchone()
    return str(row[0]), str(row[1])


def forget_all(db: Connection) -> None:
    """Delete all turns, their conclusions, and the session names taken from turns."""
    db.execute("DELETE FROM conclusion")
    db.execute("UPDATE agent_session SET name = NULL WHERE id IN (SELECT session_id FROM turn)")
    db.execute("DELETE FROM turn")
    index_state.request_turn_segment(db)


def forget(db: Connection, seqs: Iterable[int]) -> None:
    """Delete turns and the names of their sessions, and conclude what is left of the sessions again."""
    keys = [(seq,) for seq in seqs]
    sessions = conclusions.list_sessions_of(db, [seq for (seq,) in keys])
    conclusions.forget_of_sessions(db, sessions)
    # A session may be named by its first message.
    db.executemany("UPDATE agent_session SET name = NULL WHERE id = (SELECT session_id FROM turn WHERE seq = ?)", keys)
    db.executemany("DELETE FROM turn WHERE seq = ?", keys)
    conclusions.request(db, sessions, time.time())
    if keys:
        index_state.request_turn_segment(db)


def take_back(db: Connection, messages: Iterable[Message]) -> list[int]:
    """Mark stored messages as taken back, and conclude their sessions again; return their row numbers."""
    keys = [(hash_text(message.role, message.content), message.session_id, message.at) for message in messages]
    rows = db.execute(
        "SELECT t.seq FROM turn t JOIN json_each(?) k ON t.text_hash = CAST(json_extract(k.value, '$[0]') AS BIGINT) "
        "AND t.session_id = json_extract(k.value, '$[1]') AND t.at = json_extract(k.value, '$[2]') WHERE t.role <> ?",
        (json.dumps(keys), Role.TAKEN_BACK),
    )
    seqs = [int(seq) for (seq,) in rows.fetchall()]
    if seqs:
        sessions = conclusions.list_sessions_of(db, seqs)
        conclusions.forget_of_sessions(db, sessions)
        db.executemany("UPDATE turn SET role = ? WHERE seq = ?", [(Role.TAKEN_BACK, seq) for seq in seqs])
        conclusions.request(db, sessions, time.time())
        index_state.request_turn_segment(db)
    return seqs


def find_last_memory_of_session(db: Connection, session_id: str) -> Memory | None:
    """Return the last active memory from a session's own messages and actions."""
    return select_one(
        db, "session_id = ? AND archived_at IS NULL AND candidate = 0 ORDER BY seq DESC LIMIT 1", (session_id,)
    )


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The last message of a person in a session, and the time of the message before it."""

    seq: int
    after: str


def find_last_of_person(db: Connection, session_id: str) -> LastTurn | None:
    """Return the start of a session's last turn."""
    return find_row(
        db,
        LastTurn,
        "SELECT seq, coalesce((SELECT max(at) FROM turn b WHERE b.session_id = t.session_id AND b.seq < t.seq), '') "
        "FROM turn t WHERE session_id = ? AND role = ? ORDER BY seq DESC LIMIT 1",
        (session_id, Role.USER),
    )


def find_first_of_person(db: Connection, session_id: str, since: str, until: str) -> Turn | None:
    """Return the first message of a person in a time of a session, `until` exclusive."""
    return TURNS.fetch_one(
        db,
        "WHERE session_id = ? AND role = ? AND at >= ? AND at < ? ORDER BY at, seq LIMIT 1",
        (session_id, Role.USER, since, until),
    )


def list_since(db: Connection, session_id: str, last: LastTurn) -> list[Turn]:
    """List the messages of a session's last turn, and those of the subagents that it started."""
    # A host reports the end of a subagent before the prompt is stored.
    return TURNS.fetch(
        db,
        "WHERE (session_id = ? AND seq >= ?) OR "
        "(at > ? AND session_id IN (SELECT id FROM agent_session WHERE parent = ?)) ORDER BY seq",
        (session_id, last.seq, last.after, session_id),
    )


def list_unstored(db: Connection, session_id: str, since: str, until: str, limit: int) -> list[Turn]:
    """List a person's last messages in a time of a session, without those that memories were made of, in order.

    The memories also count after they were archived or superseded.
    """
    turns = TURNS.fetch(
        db,
        "WHERE session_id = ? AND role = ? AND at >= ? AND at < ? ORDER BY seq DESC LIMIT ?",
        (session_id, Role.USER, since, until, limit),
    )
    stored = {memory.metadata.get("turn") for memory in select(db, "session_id = ?", (session_id,))} if turns else set()
    return [turn for turn in reversed(turns) if turn.seq not in stored]


def list_memories_since(db: Connection, session_id: str, last: LastTurn) -> list[Memory]:
    """List the memories that were captured from a turn of a session, or stored otherwise during it."""
    stored = select(db, "session_id = ? ORDER BY seq", (session_id,))
    return [memory for memory in stored if _is_since(memory, last)]


def _is_since(memory: Memory, last: LastTurn) -> bool:
    turn = memory.metadata.get("turn")
    return turn >= last.seq if isinstance(turn, int) else memory.created_at > last.after


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
    return set(
        list_rows(db, int, "SELECT seq FROM turn WHERE role = ? UNION SELECT turn_seq FROM conclusion", (Role.USER,))
    )


def list_queued_seqs(db: Connection) -> set[int]:
    """List the turns that are queued to be embedded, or failed permanently."""
    return set(list_rows(db, int, "SELECT memory_seq FROM work WHERE stage = ?", (Stage.EMBED_TURNS,)))


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
    # The turn is read once from each memory of the sessions: a session has many turns and many memories.
    rows = db.execute(
        "WITH m AS MATERIALIZED (SELECT seq, session_id, candidate, archived_at, merged_into, valid_to, expires_at, "
        "CAST(json_extract(metadata, '$.turn') AS BIGINT) AS turn_seq FROM memory "
        "WHERE session_id IN (SELECT session_id FROM turn WHERE seq IN "
        "(SELECT CAST(value AS BIGINT) FROM json_each(?1)))) "
        "SELECT t.seq, m.seq, m.candidate = 1 OR (m.archived_at IS NOT NULL AND m.merged_into IS NULL) "
        "OR m.valid_to IS NOT NULL OR coalesce(m.expires_at <= ?2, false) "
        "OR EXISTS (SELECT 1 FROM edge e WHERE e.to_seq = m.seq AND e.kind = ?3) "
        "FROM m JOIN turn t ON t.seq = m.turn_seq AND t.session_id = m.session_id "
        "WHERE t.seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) ORDER BY m.seq",
        (json.dumps(list(seqs)), utc_now(), EdgeKind.SUPERSEDES),
    )
    return [(int(turn), int(memory), not is_over) for turn, memory, is_over in rows]


def list_said_before(db: Connection, seq: int, limit: int) -> list[Turn]:
    """List the newest messages of people before a turn, latest first, without those of incognito sessions."""
    return TURNS.fetch(
        db,
        "WHERE seq < ? AND role = ? AND session_id NOT IN (SELECT session_id FROM incognito) ORDER BY seq DESC LIMIT ?",
        (seq, Role.USER, limit),
    )


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


TABLES = (Table("turn", text=("content",), quoting={"content": forget}),)
