"""Keyed facts over time: each memory of a key is valid from `valid_from` until before `valid_to`; also by subject."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.records import FactKey, Kind, Memory, Scope, ScopeKind
from pipeline.kernel.store.memories import select, select_one, set_columns
from pipeline.kernel.store.rows import escape_like, join_conditions, list_rows
from pipeline.kernel.store.visibility import visible_to_condition

_KNOWN = "archived_at IS NULL AND candidate = 0"
_OF_ANY_KEY = "subject = ? AND attribute = ? AND scope_kind = ? AND scope_id = ?"
_OF_KEY = f"{_OF_ANY_KEY} AND {_KNOWN}"


def find_valid(db: Connection, key: FactKey, scope: Scope, moment: str) -> Memory | None:
    """Return the fact of a key that is valid at a time."""
    return select_one(
        db,
        f"{_OF_KEY} AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) "
        "ORDER BY valid_from DESC, seq DESC LIMIT 1",
        (*_values(key, scope), moment, moment),
    )


def after(db: Connection, key: FactKey, scope: Scope, moment: str) -> Memory | None:
    """Return the next fact of a key after a time."""
    return select_one(
        db, f"{_OF_KEY} AND valid_from > ? ORDER BY valid_from, seq LIMIT 1", (*_values(key, scope), moment)
    )


def find_other_valid(db: Connection, fact: Memory) -> Memory | None:
    """Return another fact of the same key that is valid at the start of a fact."""
    assert fact.key is not None
    return select_one(
        db,
        f"{_OF_KEY} AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) AND seq <> ? "
        "ORDER BY valid_from DESC, seq DESC LIMIT 1",
        (*_values(fact.key, fact.scope), fact.valid_from, fact.valid_from, fact.seq),
    )


def by_id(db: Connection, memory_id: str) -> Memory | None:
    """Return a keyed fact by its memory's id."""
    return select_one(db, "id = ? AND subject IS NOT NULL", (memory_id,))


def history(db: Connection, key: FactKey, scope: Scope) -> list[Memory]:
    """List all values of a key in order of time."""
    return select(db, f"{_OF_KEY} ORDER BY valid_from, seq", _values(key, scope))


def page(
    db: Connection, scope: Scope, subject: str | None, as_of: str | None, limit: int, before_seq: int | None
) -> list[Memory]:
    """List facts newest first, of one subject or all; with `as_of`, only facts that were valid then."""
    chosen, values = join_conditions(
        {
            "scope_kind = ?": scope.kind,
            "scope_id = ?": scope.id or "",
            "subject = ?": subject,
            "valid_from <= ?": as_of,
            "(valid_to IS NULL OR valid_to > ?)": as_of,
            "seq < ?": before_seq,
        }
    )
    return select(db, f"subject IS NOT NULL AND {_KNOWN} AND {chosen} ORDER BY seq DESC LIMIT ?", (*values, limit))


def close(db: Connection, seq: int, valid_to: str | None, at: str) -> None:
    """Set the end of a fact's validity; None means no end."""
    set_columns(db, seq, "valid_to = ?, updated_at = ?", (valid_to, at))


def repeats(db: Connection, fact: Memory, after: str) -> list[tuple[str, str]]:
    """List (time, source) of the repetitions of a fact after a time and before its end, in time order."""
    return db.execute(
        "SELECT told, source FROM (SELECT json_extract(detail, '$.occurred_at') AS told, "
        "json_extract(detail, '$.source') AS source, seq FROM history WHERE memory_seq = ?1 AND event = 'merged') said "
        "WHERE told > ?2 AND (CAST(?3 AS TEXT) IS NULL OR told < ?3) ORDER BY told, seq",
        (fact.seq, after, fact.valid_to),
    ).fetchall()


def move_repeats(db: Connection, seq: int, to_seq: int, after: str) -> None:
    """Move the repetitions of a fact after a time to another fact."""
    db.execute(
        "UPDATE history SET memory_seq = ? WHERE memory_seq = ? AND event = 'merged' "
        "AND json_extract(detail, '$.occurred_at') > ?",
        (to_seq, seq, after),
    )


def keys(db: Connection, scope: Scope) -> list[FactKey]:
    """List the keys of a scope."""
    return list_rows(
        db,
        FactKey,
        "SELECT DISTINCT subject, attribute FROM memory WHERE subject IS NOT NULL "
        "AND scope_kind = ? AND scope_id = ? AND archived_at IS NULL AND candidate = 0",
        (scope.kind, scope.id or ""),
    )


def find_named_in(db: Connection, text: str, moment: str) -> list[Memory]:
    """List the workspace's facts that are valid at a time and whose attribute occurs literally in a text."""
    return select(
        db,
        "subject IS NOT NULL AND archived_at IS NULL AND candidate = 0 AND scope_kind = 'workspace' "
        "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) AND instr(?, replace(attribute, '_', ' ')) > 0",
        (moment, moment, text),
    )


def list_attributes(db: Connection, subject: str, moment: str, limit: int) -> list[tuple[int, str]]:
    """List the row numbers and attributes of a subject's facts that are valid at a time, newest first."""
    return db.execute(
        f"SELECT seq, attribute FROM memory WHERE subject = ? AND {_KNOWN} "  # noqa: S608 - constant text
        "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) ORDER BY seq DESC LIMIT ?",
        (subject, moment, moment, limit),
    ).fetchall()


def find_replaced_by(db: Connection, fact: Memory) -> Memory | None:
    """Return the fact that a fact ended at its start, if it still ends there."""
    assert fact.key is not None
    return select_one(
        db,
        f"{_OF_KEY} AND valid_to = ? "  # noqa: S608 - constant text
        "AND seq IN (SELECT to_seq FROM edge WHERE from_seq = ? AND kind = 'supersedes') "
        "ORDER BY valid_from DESC, seq DESC LIMIT 1",
        (*_values(fact.key, fact.scope), fact.valid_from, fact.seq),
    )


def find_last_validity_change(db: Connection, moment: str) -> str:
    """Return when a memory last became valid or invalid before a time; "" if none did."""
    row: Sequence[str] = db.execute(
        "SELECT max(coalesce((SELECT max(valid_from) FROM memory WHERE valid_from <= ?), ''), "
        "coalesce((SELECT max(valid_to) FROM memory WHERE valid_to <= ?), ''), "
        "coalesce((SELECT max(expires_at) FROM memory WHERE expires_at <= ?), ''))",
        (moment, moment, moment),
    ).fetchone()
    return row[0]


@dataclass(frozen=True, slots=True)
class FactSubject:
    """The subject of facts; `seq` is the row of one of them."""

    seq: int
    name: str


@dataclass(frozen=True, slots=True)
class ScopedKey:
    """A key in a scope; `seq` is the row of one of its values."""

    seq: int
    key: FactKey
    scope: Scope


def page_subjects(
    db: Connection, words: Sequence[str], limit: int, before: int | None, person: str | None = None
) -> list[FactSubject]:
    """List subjects by name, all or those with a fact that contains each of the words, after the subject of a row.

    Facts that are private to other people are left out.
    """
    holds_words = "".join(" AND content LIKE ? ESCAPE '\\'" for _ in words)
    return list_rows(
        db,
        FactSubject,
        "WITH RECURSIVE name (subject) AS ("  # noqa: S608 - constant text
        "SELECT min(subject) FROM memory WHERE subject > coalesce((SELECT subject FROM memory WHERE seq = ?), '') "
        "UNION ALL SELECT (SELECT min(subject) FROM memory WHERE subject > name.subject) FROM name "
        "WHERE name.subject IS NOT NULL) "
        "SELECT found, subject FROM (SELECT subject, "
        f"(SELECT seq FROM memory m WHERE m.subject = name.subject AND {_KNOWN} AND {visible_to_condition(person)}"
        f"{holds_words} LIMIT 1) AS found "
        "FROM name WHERE subject IS NOT NULL) named WHERE found IS NOT NULL LIMIT ?",
        (before, *(f"%{escape_like(word)}%" for word in words), limit),
    )


def list_current(db: Connection, subject: str, moment: str, limit: int, person: str | None = None) -> list[Memory]:
    """List the current facts about a subject at a time, by attribute."""
    return select(
        db,
        f"subject = ? AND {_KNOWN} AND {visible_to_condition(person)} "
        "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) ORDER BY attribute, valid_from DESC LIMIT ?",
        (subject, moment, moment, limit),
    )


def page_keys(
    db: Connection, subject: str, limit: int, before: int | None, person: str | None = None
) -> list[ScopedKey]:
    """List the keys of a subject by attribute and scope, after the key of a row."""
    # Attributes first, then the scopes of each: the index only has attributes.
    rows = db.execute(
        "SELECT max(seq), attribute, scope_kind, scope_id FROM memory "  # noqa: S608 - constant text
        f"WHERE subject = ?1 AND {_KNOWN} AND {visible_to_condition(person)} "
        "AND attribute >= coalesce((SELECT attribute FROM memory WHERE seq = ?2), '') "
        "AND (CAST(?2 AS BIGINT) IS NULL OR (attribute, scope_kind, scope_id) > "
        "(SELECT attribute, scope_kind, scope_id FROM memory WHERE seq = ?2)) "
        "GROUP BY attribute, scope_kind, scope_id ORDER BY attribute, scope_kind, scope_id LIMIT ?3",
        (subject, before, limit),
    )
    return [
        ScopedKey(seq, FactKey(subject, attribute), Scope(ScopeKind(kind), owner or None))
        for seq, attribute, kind, owner in rows
    ]


def page_values(db: Connection, key: FactKey, scope: Scope, limit: int, before: int | None) -> list[Memory]:
    """List the values of a key, the last start first, before the value of a row."""
    return select(
        db,
        f"{_OF_ANY_KEY} AND {_KNOWN} AND (CAST(? AS BIGINT) IS NULL OR (valid_from, seq) < "  # noqa: S608 - constant text
        "(SELECT valid_from, seq FROM memory WHERE seq = ?)) ORDER BY valid_from DESC, seq DESC LIMIT ?",
        (*_values(key, scope), before, before, limit),
    )


def list_waiting(db: Connection, key: FactKey, scope: Scope, limit: int) -> list[Memory]:
    """List the values of a key that await review, newest first."""
    return select(
        db,
        f"{_OF_ANY_KEY} AND archived_at IS NULL AND candidate = 1 ORDER BY seq DESC LIMIT ?",
        (*_values(key, scope), limit),
    )


def list_latest(db: Connection, moment: str, limit: int, person: str | None = None) -> list[Memory]:
    """List the facts that are valid at a time and were set last."""
    return select(
        db,
        f"kind = ? AND subject IS NOT NULL AND {_KNOWN} AND {visible_to_condition(person)} "
        "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) ORDER BY seq DESC LIMIT ?",
        (Kind.KEYED_FACT, moment, moment, limit),
    )


def find_extent(
    db: Connection, subject: str, key: ScopedKey | None = None, person: str | None = None
) -> tuple[str, str] | None:
    """Return the first start and the last start or end of the values of a subject or a key."""
    which, values = _about(subject, key, person)
    first, last_from, last_to = db.execute(
        f"SELECT min(valid_from), max(valid_from), max(valid_to) FROM memory WHERE {which} AND {_KNOWN}",  # noqa: S608
        values,
    ).fetchone()
    return None if first is None else (first, max(last_from, last_to or ""))


def find_turns(
    db: Connection, subject: str, moment: str, key: ScopedKey | None = None, person: str | None = None
) -> tuple[str | None, str | None]:
    """Return the last change of a subject or a key before a time, and the next change."""
    which, values = _about(subject, key, person)
    turns = []
    for choose, compare in (("max", "<"), ("min", ">")):
        row = db.execute(
            f"SELECT {choose}(at) FROM (SELECT {choose}(valid_from) AS at FROM memory WHERE {which} AND {_KNOWN} "  # noqa: S608
            f"AND valid_from {compare} ? UNION ALL SELECT {choose}(valid_to) FROM memory WHERE {which} AND {_KNOWN} "
            f"AND valid_to {compare} ?) turns",
            (*values, moment, *values, moment),
        ).fetchone()
        turns.append(row[0])
    return turns[0], turns[1]


def _about(subject: str, key: ScopedKey | None, person: str | None) -> tuple[str, tuple[Any, ...]]:
    return (
        (f"subject = ? AND {visible_to_condition(person)}", (subject,))
        if key is None
        else (_OF_ANY_KEY, _values(key.key, key.scope))
    )


def _values(key: FactKey, scope: Scope) -> tuple[str, str, str, str]:
    return key.subject, key.attribute, scope.kind, scope.id or ""
