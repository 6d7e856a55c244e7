"""How the fields of a memory are stored, and parts of memories that ranking reads in place of whole memories.

A field is stored in one column, or two, as text and numbers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.kernel.errors import StoreDamaged
from pipeline.kernel.records import (
    Anchor,
    FactKey,
    Filter,
    Kind,
    Memory,
    Scope,
    ScopeKind,
    Sensitivity,
    Source,
    Tier,
    Trust,
)
from pipeline.kernel.store.visibility import condition

# Memories of a workspace share few scopes.
MOST_SCOPES = 1024


@dataclass(frozen=True, slots=True)
class Codec:
    """Encoding of a field that is no plain value: its columns, and the conversions in both directions."""

    columns: tuple[str, ...]
    encode: Callable[[Any], tuple[Any, ...]]
    decode: Callable[..., Any]


def _enum(name: str, kind: type[Any]) -> Codec:
    # Looking a member up is much faster than calling its class.
    return Codec((name,), lambda member: (member,), {str(member): member for member in kind}.__getitem__)


def _flag(name: str) -> Codec:
    return Codec((name,), lambda flag: (int(flag),), bool)


def _object(name: str) -> Codec:
    # Most memories have none of these, and parsing would be a third of the work.
    return Codec(
        (name,),
        lambda value: (json.dumps(value, ensure_ascii=False) if value else "{}",),
        lambda text: {} if text == "{}" else json.loads(text),
    )


class typed_damage:  # noqa: N801 - a context manager, as a class because a generator would double the cost of a row
    """Report a value that no version of Reverie writes as a damaged store."""

    def __enter__(self) -> None:
        """Start to decode a row."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _traceback: object) -> None:
        """Raise StoreDamaged in place of an error of a decoder."""
        if kind is not None and issubclass(kind, ValueError | KeyError | TypeError):
            copies = "`reverie store snapshot list` shows the copies to restore"
            raise StoreDamaged(f"A row of the store contains an invalid value; {copies}") from error


# All other fields are stored unchanged in the column of their name.
CODECS: Mapping[str, Codec] = {
    "kind": _enum("kind", Kind),
    "scope": Codec(
        ("scope_kind", "scope_id"),
        lambda scope: (scope.kind, scope.id or ""),
        lru_cache(MOST_SCOPES)(lambda kind, owner: Scope(ScopeKind(kind), owner or None)),
    ),
    "tags": Codec(
        ("tags",),
        lambda tags: (json.dumps(tags) if tags else "[]",),
        lambda text: () if text == "[]" else tuple(json.loads(text)),
    ),
    "metadata": _object("metadata"),
    "source": _enum("source", Source),
    "trust": _enum("trust", Trust),
    "tier": _enum("tier", Tier),
    "sensitivity": Codec(
        ("sensitivity",),
        lambda value: (value or Sensitivity.NORMAL,),
        {str(member): member for member in Sensitivity}.__getitem__,
    ),
    "pinned": _flag("pinned"),
    "details": _object("details"),
    "anchor": Codec(
        ("anchor",),
        lambda anchor: (None if anchor is None else json.dumps(asdict(anchor), ensure_ascii=False),),
        lambda text: None if text is None else Anchor(**json.loads(text)),
    ),
    "candidate": _flag("candidate"),
    "instructs": _flag("instructs"),
    "key": Codec(
        ("subject", "attribute"),
        lambda key: (None, None) if key is None else (key.subject, key.attribute),
        lambda subject, attribute: None if subject is None else FactKey(subject, attribute),
    ),
}
FIELDS = tuple(field.name for field in fields(Memory))
NAMES = tuple(column for name in FIELDS for column in (CODECS[name].columns if name in CODECS else (name,)))
COLUMNS = ", ".join(NAMES)


_AMONG = "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"


class StatementRow(NamedTuple):
    """A memory's text, time, kind and source, and the columns that say how far its statement reaches.

    `statements` are what digestion found that the text states, None if it has not yet.
    """

    seq: int
    content: str
    occurred_at: str
    kind: str
    source: str
    scope_kind: str
    scope_id: str
    branch: str | None
    trust: str
    pinned: int
    instructs: int
    statements: str | None = None


class TextRow(NamedTuple):
    """The parts of a memory that its embedded text consists of."""

    content: str
    kind: str
    details: Mapping[str, Any]


class RenderedRow(NamedTuple):
    """The parts of a memory that the text that an agent reads consists of, and its scope."""

    seq: int
    content: str
    kind: Kind
    details: Mapping[str, Any]
    anchor: Anchor | None
    scope: Scope


def read_showable_texts(db: Connection, seqs: Sequence[int], criteria: Filter) -> dict[int, RenderedRow]:
    """Return the parts of texts of the memories that match a filter, by row number, in the given order."""
    clause, values = condition(criteria)
    rows = db.execute(
        f"SELECT seq, content, kind, details, anchor, scope_kind, scope_id FROM memory WHERE {_AMONG} AND {clause}",  # noqa: S608 - constant text
        (json.dumps(list(seqs)), *values),
    )
    kinds, fields, anchors, scopes = (CODECS[name].decode for name in ("kind", "details", "anchor", "scope"))
    with typed_damage():
        by_seq = {
            seq: RenderedRow(seq, content, kinds(kind), fields(details), anchors(anchor), scopes(scope_kind, scope_id))
            for seq, content, kind, details, anchor, scope_kind, scope_id in rows
        }
    return {seq: by_seq[seq] for seq in seqs if seq in by_seq}


def read_texts(db: Connection, seqs: Sequence[int]) -> dict[int, TextRow]:
    """Return the parts of memories' texts by row number, archived or not."""
    rows = db.execute(
        f"SELECT seq, content, kind, details FROM memory WHERE {_AMONG}",  # noqa: S608 - constant text
        (json.dumps(list(seqs)),),
    )
    with typed_damage():
        return {
            seq: TextRow(content, kind, {} if details == "{}" else json.loads(details))
            for seq, content, kind, details in rows
        }


def read_statements(db: Connection, seqs: Sequence[int]) -> dict[int, StatementRow]:
    """Return the statements of memories by row number, archived or not."""
    rows = db.execute(
        f"SELECT {', '.join(StatementRow._fields)} FROM memory "  # noqa: S608 - constant text
        f"LEFT JOIN embedding ON memory_seq = seq WHERE {_AMONG}",
        (json.dumps(list(seqs)),),
    )
    return {row[0]: StatementRow(*row) for row in rows}
