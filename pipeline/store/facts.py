"""Keyed facts in time: the memories of one key, each from `valid_from` to before `valid_to`."""

from collections.abc import Sequence
from sqlite3 import Connection

from pipeline.records import FactKey, Memory, Scope
from pipeline.store.memories import select

_OF_KEY = "subject = ? AND attribute = ? AND scope_kind = ? AND scope_id = ? AND archived_at IS NULL AND candidate = 0"


def find_holding(db: Connection, key: FactKey, scope: Scope, moment: str) -> Memory | None:
    """Return the fact of a key that holds at a moment."""
    found = select(
        db,
        f"{_OF_KEY} AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) "
        "ORDER BY valid_from DESC, seq DESC LIMIT 1",
        (*_values(key, scope), moment, moment),
    )
    return found[0] if found else None


def after(db: Connection, key: FactKey, scope: Scope, moment: str) -> Memory | None:
    """Return the fact of a key that begins next after a moment."""
    found = select(db, f"{_OF_KEY} AND valid_from > ? ORDER BY valid_from, seq LIMIT 1", (*_values(key, scope), moment))
    return found[0] if found else None


def find_other_holding(db: Connection, fact: Memory) -> Memory | None:
    """Return another fact of the same key that holds where a fact begins."""
    assert fact.key is not None
    found = select(
        db,
        f"{_OF_KEY} AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) AND seq <> ? "
        "ORDER BY valid_from DESC, seq DESC LIMIT 1",
        (*_values(fact.key, fact.scope), fact.valid_from, fact.valid_from, fact.seq),
    )
    return found[0] if found else None


def by_id(db: Connection, memory_id: str) -> Memory | None:
    """Return a keyed fact by its memory's id."""
    found = select(db, "id = ? AND subject IS NOT NULL", (memory_id,))
    return found[0] if found else None


def history(db: Connection, key: FactKey, scope: Scope) -> list[Memory]:
    """List all values of a key, the first first."""
    return select(db, f"{_OF_KEY} ORDER BY valid_from, seq", _values(key, scope))


def page(
    db: Connection, scope: Scope, subject: str | None, as_of: str | None, limit: int, before_seq: int | None
) -> list[Memory]:
    """List facts newest first, of one subject or all, and with `as_of` only what held then."""
    clauses = ["subject IS NOT NULL", "scope_kind = ?", "scope_id = ?", "archived_at IS NULL", "candidate = 0"]
    values: list[str | int] = [scope.kind, scope.id or ""]
    if subject is not None:
        clauses.append("subject = ?")
        values.append(subject)
    if as_of is not None:
        clauses.append("valid_from <= ? AND (valid_to IS NULL OR valid_to > ?)")
        values.extend((as_of, as_of))
    if before_seq is not None:
        clauses.append("seq < ?")
        values.append(before_seq)
    return select(db, f"{' AND '.join(clauses)} ORDER BY seq DESC LIMIT ?", (*values, limit))


def close(db: Connection, seq: int, valid_to: str | None, at: str) -> None:
    """Let a fact hold until a moment, or for good."""
    db.execute("UPDATE memory SET valid_to = ?, updated_at = ? WHERE seq = ?", (valid_to, at, seq))


def repeats(db: Connection, fact: Memory, after: str) -> list[tuple[str, str]]:
    """List (time, source) of the writes that told a fact again after a moment and before its end, in time order."""
    return db.execute(
        "SELECT json_extract(detail, '$.occurred_at') AS told, json_extract(detail, '$.source') FROM history "
        "WHERE memory_seq = ?1 AND event = 'merged' AND told > ?2 AND (?3 IS NULL OR told < ?3) ORDER BY told, seq",
        (fact.seq, after, fact.valid_to),
    ).fetchall()


def move_repeats(db: Connection, seq: int, to_seq: int, after: str) -> None:
    """Let what told a fact again after a moment tell of another row."""
    db.execute(
        "UPDATE history SET memory_seq = ? WHERE memory_seq = ? AND event = 'merged' "
        "AND json_extract(detail, '$.occurred_at') > ?",
        (to_seq, seq, after),
    )


def keys(db: Connection, scope: Scope) -> list[FactKey]:
    """List the keys that have values."""
    rows = db.execute(
        "SELECT DISTINCT subject, attribute FROM memory WHERE subject IS NOT NULL "
        "AND scope_kind = ? AND scope_id = ? AND archived_at IS NULL AND candidate = 0",
        (scope.kind, scope.id or ""),
    )
    return [FactKey(*row) for row in rows]


def find_named_in(db: Connection, text: str, moment: str) -> list[Memory]:
    """List the workspace's facts that hold at a moment and whose attribute stands in a text, letter for letter."""
    return select(
        db,
        "subject IS NOT NULL AND archived_at IS NULL AND candidate = 0 AND scope_kind = 'workspace' "
        "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) AND instr(?, replace(attribute, '_', ' ')) > 0",
        (moment, moment, text),
    )


def find_replaced_by(db: Connection, fact: Memory) -> Memory | None:
    """Return the fact that another one ended where it began, if it still ends there."""
    assert fact.key is not None
    found = select(
        db,
        f"{_OF_KEY} AND valid_to = ? "  # noqa: S608 - constant text
        "AND seq IN (SELECT to_seq FROM edge WHERE from_seq = ? AND kind = 'supersedes') "
        "ORDER BY valid_from DESC, seq DESC LIMIT 1",
        (*_values(fact.key, fact.scope), fact.valid_from, fact.seq),
    )
    return found[0] if found else None


def last_turn(db: Connection, moment: str) -> str:
    """Return when a fact last began or ended before a moment; "" when none did."""
    row: Sequence[str] = db.execute(
        "SELECT max(coalesce((SELECT max(valid_from) FROM memory WHERE valid_from <= ?), ''), "
        "coalesce((SELECT max(valid_to) FROM memory WHERE valid_to <= ?), ''))",
        (moment, moment),
    ).fetchone()
    return row[0]


def _values(key: FactKey, scope: Scope) -> tuple[str, str, str, str]:
    return key.subject, key.attribute, scope.kind, scope.id or ""
