"""Keyed facts as their owner looks through them: by subject, of every scope, however many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from pipeline.records import FactKey, Kind, Memory, Scope, ScopeKind
from pipeline.store.memories import select

_KNOWN = "archived_at IS NULL AND candidate = 0"
_OF_KEY = "subject = ? AND attribute = ? AND scope_kind = ? AND scope_id = ?"


@dataclass(frozen=True, slots=True)
class Subject:
    """What facts are about; `seq` is the row of one of them."""

    seq: int
    name: str


@dataclass(frozen=True, slots=True)
class ScopedKey:
    """A key within a scope; `seq` is the row of one of its values."""

    seq: int
    key: FactKey
    scope: Scope


def page(db: Connection, words: Sequence[str], limit: int, before: int | None) -> list[Subject]:
    """List subjects by name, all or those of which a fact holds each of the words, after the subject of a row."""
    holds_words = "".join(" AND content LIKE ? ESCAPE '\\'" for _ in words)
    rows = db.execute(
        # Steps from name to name on the index: a subject costs the same whether it has one value or ten thousand.
        "WITH RECURSIVE name (subject) AS ("  # noqa: S608 - constant text
        "SELECT min(subject) FROM memory WHERE subject > coalesce((SELECT subject FROM memory WHERE seq = ?), '') "
        "UNION ALL SELECT (SELECT min(subject) FROM memory WHERE subject > name.subject) FROM name "
        "WHERE name.subject IS NOT NULL) "
        f"SELECT (SELECT seq FROM memory m WHERE m.subject = name.subject AND {_KNOWN}{holds_words} LIMIT 1) AS found, "
        "subject FROM name WHERE subject IS NOT NULL AND found IS NOT NULL LIMIT ?",
        (before, *(f"%{_escaped(word)}%" for word in words), limit),
    )
    return [Subject(*row) for row in rows]


def current(db: Connection, subject: str, moment: str, limit: int) -> list[Memory]:
    """List what holds of a subject at a moment, by attribute."""
    return select(
        db,
        f"subject = ? AND {_KNOWN} AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?) "
        "ORDER BY attribute, valid_from DESC LIMIT ?",
        (subject, moment, moment, limit),
    )


def keys(db: Connection, subject: str, limit: int, before: int | None) -> list[ScopedKey]:
    """List the keys of a subject by attribute and scope, after the key of a row."""
    # An attribute of its own, and only then the scopes within it: the index knows attributes alone.
    rows = db.execute(
        "SELECT max(seq), attribute, scope_kind, scope_id FROM memory "  # noqa: S608 - constant text
        f"WHERE subject = ?1 AND {_KNOWN} AND attribute >= coalesce((SELECT attribute FROM memory WHERE seq = ?2), '') "
        "AND (?2 IS NULL OR (attribute, scope_kind, scope_id) > "
        "(SELECT attribute, scope_kind, scope_id FROM memory WHERE seq = ?2)) "
        "GROUP BY attribute, scope_kind, scope_id ORDER BY attribute, scope_kind, scope_id LIMIT ?3",
        (subject, before, limit),
    )
    return [
        ScopedKey(seq, FactKey(subject, attribute), Scope(ScopeKind(kind), owner or None))
        for seq, attribute, kind, owner in rows
    ]


def values(db: Connection, key: FactKey, scope: Scope, limit: int, before: int | None) -> list[Memory]:
    """List the values of a key, the last to begin first, from before the one of a row."""
    return select(
        db,
        f"{_OF_KEY} AND {_KNOWN} AND (? IS NULL OR (valid_from, seq) < "  # noqa: S608 - constant text
        "(SELECT valid_from, seq FROM memory WHERE seq = ?)) ORDER BY valid_from DESC, seq DESC LIMIT ?",
        (*_values(key, scope), before, before, limit),
    )


def waiting(db: Connection, key: FactKey, scope: Scope, limit: int) -> list[Memory]:
    """List the values of a key that wait for review, newest first."""
    return select(
        db,
        f"{_OF_KEY} AND archived_at IS NULL AND candidate = 1 ORDER BY seq DESC LIMIT ?",
        (*_values(key, scope), limit),
    )


def latest(db: Connection, limit: int) -> list[Memory]:
    """List the facts that were told last."""
    clause = f"kind = ? AND subject IS NOT NULL AND {_KNOWN}"
    return select(db, f"{clause} ORDER BY seq DESC LIMIT ?", (Kind.KEYED_FACT, limit))


def extent(db: Connection, subject: str, one: ScopedKey | None = None) -> tuple[str, str] | None:
    """Return when the first value of a subject, or of a key, began, and when the last one begins or ends."""
    which, given = _about(subject, one)
    first, last_from, last_to = db.execute(
        f"SELECT min(valid_from), max(valid_from), max(valid_to) FROM memory WHERE {which} AND {_KNOWN}",  # noqa: S608
        given,
    ).fetchone()
    return None if first is None else (first, max(last_from, last_to or ""))


def turns(db: Connection, subject: str, moment: str, one: ScopedKey | None = None) -> tuple[str | None, str | None]:
    """Return when a subject, or a key, last changed before a moment, and when it changes next."""
    which, given = _about(subject, one)
    found = []
    for choose, compare in (("max", "<"), ("min", ">")):
        row = db.execute(
            f"SELECT {choose}(at) FROM (SELECT {choose}(valid_from) AS at FROM memory WHERE {which} AND {_KNOWN} "  # noqa: S608
            f"AND valid_from {compare} ? UNION ALL SELECT {choose}(valid_to) FROM memory WHERE {which} AND {_KNOWN} "
            f"AND valid_to {compare} ?)",
            (*given, moment, *given, moment),
        ).fetchone()
        found.append(row[0])
    return found[0], found[1]


def _about(subject: str, one: ScopedKey | None) -> tuple[str, tuple[Any, ...]]:
    return ("subject = ?", (subject,)) if one is None else (_OF_KEY, _values(one.key, one.scope))


def _values(key: FactKey, scope: Scope) -> tuple[str, str, str, str]:
    return key.subject, key.attribute, scope.kind, scope.id or ""


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
