"""Parts of memories that ranking reads, in place of whole memories."""

import json
from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from pipeline.records import Anchor, Filter, Kind, Scope
from pipeline.store.memory_columns import CODECS, typed_damage
from pipeline.store.visibility import condition

_AMONG = "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"


class StatementRow(NamedTuple):
    """A memory's text, time, kind and source, and the columns that say how far its statement reaches."""

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
        f"SELECT {', '.join(StatementRow._fields)} FROM memory WHERE {_AMONG}",  # noqa: S608 - constant text
        (json.dumps(list(seqs)),),
    )
    return {row[0]: StatementRow(*row) for row in rows}
