"""The operation log: each change of a record as fields and a stamp, so that any machine can apply it.

Only purges remove operations. The state of a record follows from its operations, in any order of arrival: for each
field the highest stamp wins. Each commit compares the rows that triggers noted with the log and appends the difference,
so that writers need no logging code and operations of peers are not logged again. `log_start` starts a log.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.records import ScopeKind
from pipeline.kernel.store import clock, meta, replicated_records
from pipeline.kernel.store.replicated_records import GONE, MEMORY, PURGE, Fields, Key
from pipeline.kernel.store.rows import Parameters, find_row, list_rows
from pipeline.kernel.store.visibility import named_by_condition

# In a purge: the operations of other memories that contained text of the purged one.
ERASED = "erased"
# The field of a memory that is set while it is shared.
SHARED_FROM = "shared_from"
# The scopes in a bundle; peers receive fewer.
ALL_SCOPES = tuple(ScopeKind)
# The most keys in one statement.
AT_ONCE = 1000
# Values of `meta.OPERATION_LOG`; without a value, nothing is logged.
STARTED, COMPLETE = "started", "complete"


_IDS_OF_RECORD = "SELECT id FROM operation WHERE kind = ? AND memory_id = ? AND other_id = ? AND name = ?"


@dataclass(frozen=True, slots=True)
class Operation:
    """A stamped change of some fields of a record; None removes a field.

    `after` lists the operations whose values it replaced. An operation of another machine has its author's signature,
    and `via` is the remote that delivered it.
    """

    hlc: str
    key: Key
    fields: Fields
    after: tuple[str, ...] = ()
    signature: str | None = None
    via: str | None = None

    @property
    def node(self) -> str:
        """Return the name of its author."""
        return self.hlc[22:]

    @property
    def id(self) -> str:
        """Return the hash of its content."""
        content = json.dumps([self.hlc, *self.key, self.fields, self.after], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def stamped_by(self, node: str, renamed: Mapping[str, str]) -> "Operation":
        """Return the same change, unsigned, as an operation of another node; `renamed` maps the ids of operations."""
        after = tuple(sorted(renamed.get(operation_id, operation_id) for operation_id in self.after))
        return Operation(clock.with_node(self.hlc, node), self.key, self.fields, after)


@dataclass(slots=True)
class Fold:
    """The state of a record by its operations: the value of each field, and its operations that none has replaced.

    Several of them with different values are a conflict: their machines did not know of each other.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    heads: dict[str, dict[str, tuple[str, Any]]] = field(default_factory=dict)

    def add(self, operation_id: str, hlc: str, fields: Fields, after: Iterable[str]) -> None:
        """Apply the operation with the next stamp."""
        replaced = set(after)
        for name, value in fields.items():
            heads = self.heads.setdefault(name, {})
            for known_id in replaced.intersection(heads):
                del heads[known_id]
            heads[operation_id] = (hlc, value)
            if value is None:
                self.fields.pop(name, None)
            else:
                self.fields[name] = value

    @property
    def says(self) -> Fields:
        """Return the fields of the record, or `GONE` for one that was deleted."""
        return GONE if self.fields.get("gone") else self.fields


def is_complete(db: Connection) -> bool:
    """Return whether the log covers every record of a store."""
    return meta.get(db, meta.OPERATION_LOG) == COMPLETE


def record(db: Connection) -> None:
    """Append the changes of a transaction to the log, before it commits."""
    touched = list_rows(
        db, Key, "SELECT kind, memory_id, other_id, name FROM touched ORDER BY kind, memory_id, other_id, name"
    )
    if not touched:
        return
    for start in range(0, len(touched), AT_ONCE):
        _record(db, touched[start : start + AT_ONCE])
    db.execute("DELETE FROM touched")


def ignore_outside_changes(db: Connection) -> None:
    """Do not log changes of another program before this transaction; the rows then differ from the log."""
    # Without a condition, SQLite clears the table's page and writes it, even if it is empty.
    db.execute("DELETE FROM touched WHERE true")


def _record(db: Connection, keys: Sequence[Key]) -> None:
    states, known = replicated_records.read(db, keys), fold(db, keys)
    replicated_records.ignore_missing_survivors(db, states, {key: known[key].fields for key in known})
    gone = {key.memory_id for key, state in states.items() if key.kind == MEMORY and state == GONE}
    purged = _purge(db, gone)
    changes: list[tuple[Key, Fields, tuple[str, ...]]] = []
    erased: list[str] = []
    for key, state in states.items():
        fields, after = difference(state, known.get(key))
        if not fields or {key.memory_id, key.other_id} & gone:
            continue
        if purged and key.kind == MEMORY:
            # This memory may contain text of the purged one.
            erased += list_rows(db, str, _IDS_OF_RECORD, tuple(key))
            fields, after = dict(state), ()
        if key.kind != MEMORY or fields.get(SHARED_FROM):
            # All fields of a relation, and of a memory that became shared.
            fields |= state
        changes.append((key, fields, after))
    tombs: list[tuple[Key, Fields, tuple[str, ...]]] = [(Key(PURGE, memory_id), {}, ()) for memory_id in purged]
    if erased:
        erase_operations(db, erased)
        tombs[0] = (tombs[0][0], {ERASED: sorted(erased)}, ())
    stamps = clock.send(db, len(tombs) + len(changes), clock.wall_ms())
    insert(db, (Operation(stamp, *change) for stamp, change in zip(stamps, [*tombs, *changes], strict=True)))


def _purge(db: Connection, memory_ids: Collection[str]) -> list[str]:
    """Delete the operations of memories; return the memories that still need a tombstone."""
    known = list_purged(db, memory_ids)
    # While the log starts, it may contain text that was copied from a memory, and nothing of the memory yet.
    return [
        memory_id
        for memory_id in memory_ids
        if memory_id not in known and (erase(db, memory_id) or not is_complete(db))
    ]


def erase(db: Connection, memory_id: str) -> int:
    """Delete every operation about a memory; return their number."""
    return db.execute(
        "DELETE FROM operation WHERE (memory_id = ?1 AND kind <> 'purge') OR (other_id = ?1 AND kind <> 'memory')",
        (memory_id,),
    ).rowcount


def erase_operations(db: Connection, ids: Iterable[str]) -> set[Key]:
    """Delete some operations; return the keys of their records."""
    return set(
        list_rows(
            db,
            Key,
            "DELETE FROM operation WHERE kind <> 'purge' AND id IN (SELECT value FROM json_each(?)) "
            "RETURNING kind, memory_id, other_id, name",
            (json.dumps(list(ids)),),
        )
    )


def list_erased(db: Connection) -> set[str]:
    """Return the operations that purges removed from the log, so that they are not merged again."""
    return set(
        list_rows(
            db,
            str,
            "SELECT e.value FROM operation o, json_each(o.fields, '$.erased') e "
            "WHERE o.kind = 'purge' AND o.fields <> '{}'",
        )
    )


def difference(state: Fields, known: Fold | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields that differ from the log, and the operations whose values they replace."""
    if known is None:
        return ({}, ()) if state == GONE else (dict(state), ())
    if state == GONE:
        changed: dict[str, Any] = {} if known.says == GONE else dict(GONE)
    else:
        logged = known.fields
        changed = {name: value for name, value in state.items() if name not in logged or logged[name] != value}
        changed |= {name: None for name in logged if name not in state}
    after = {operation_id for name in changed for operation_id in known.heads.get(name, ())}
    return changed, tuple(sorted(after))


def fold(db: Connection, keys: Iterable[Key]) -> dict[Key, Fold]:
    """Return the state of each record that has operations."""
    keys_to_fold = set(keys)
    owners = json.dumps(sorted({key.memory_id for key in keys_to_fold}))
    rows = db.execute(
        "SELECT id, hlc, kind, memory_id, other_id, name, fields, after FROM operation "
        "WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY hlc, id",
        (owners,),
    )
    folds: dict[Key, Fold] = {}
    for operation_id, hlc, kind, memory_id, other_id, name, fields, after in rows:
        key = Key(kind, memory_id, other_id, name)
        if key in keys_to_fold:
            folds.setdefault(key, Fold()).add(operation_id, hlc, json.loads(fields), json.loads(after))
    return folds


def insert(db: Connection, operations: Iterable[Operation]) -> None:
    """Append operations without a change."""
    db.executemany(
        "INSERT INTO operation (id, hlc, kind, memory_id, other_id, name, fields, after, signature, via) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (
                operation.id,
                operation.hlc,
                *operation.key,
                json.dumps(operation.fields, ensure_ascii=False),
                json.dumps(operation.after),
                operation.signature,
                operation.via,
            )
            for operation in operations
        ],
    )


def list_known(db: Connection, ids: Iterable[str]) -> set[str]:
    """Return the operations that are in the log."""
    return set(
        list_rows(
            db, str, "SELECT id FROM operation WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
        )
    )


def list_purged(db: Connection, memory_ids: Iterable[str]) -> set[str]:
    """Return the memories that were purged, on this machine or another."""
    return set(
        list_rows(
            db,
            str,
            "SELECT memory_id FROM operation WHERE kind = 'purge' AND memory_id IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(set(memory_ids))),),
        )
    )


def list_keys_about(db: Connection, memory_ids: Iterable[str]) -> set[Key]:
    """Return the keys of memories and of every relation that names them."""
    ids = json.dumps(sorted(set(memory_ids)))
    rows = db.execute(
        "SELECT kind, memory_id, other_id, name FROM operation WHERE memory_id IN (SELECT value FROM json_each(?1)) "
        "UNION SELECT kind, memory_id, other_id, name FROM operation "
        "WHERE other_id <> '' AND other_id IN (SELECT value FROM json_each(?1))",
        (ids,),
    )
    return {Key(*row) for row in rows if row[0] != PURGE}


def list_merged_into(db: Connection, memory_ids: Iterable[str]) -> set[Key]:
    """Return the keys of the memories that were merged into some others, according to the log."""
    rows = db.execute(
        "SELECT DISTINCT memory_id FROM operation "
        "WHERE json_extract(fields, '$.merged_into') IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(set(memory_ids))),),
    )
    return {Key(MEMORY, row[0]) for row in rows}


def list_all_keys(db: Connection) -> set[Key]:
    """Return the key of every record in the log."""
    return set(
        list_rows(db, Key, "SELECT DISTINCT kind, memory_id, other_id, name FROM operation WHERE kind <> 'purge'")
    )


_COLUMNS = "o.hlc, o.kind, o.memory_id, o.other_id, o.name, o.fields, o.after, o.signature, o.via"
# Which operations travel: those of memories of some scopes and of relations between them, every tombstone, and the end
# of a share, so that its receivers learn of it. Operations of a peer go on to others even if their memory is incomplete
# on this machine.
_TRAVELS = """
    (o.kind = 'purge' OR o.signature IS NOT NULL OR (o.kind = 'memory' AND o.fields LIKE :withdrawn) OR (
        EXISTS (SELECT 1 FROM memory m WHERE m.scope_kind IN (SELECT value FROM json_each(:scopes))
            AND m.id = o.memory_id AND {whose})
        AND (o.other_id = '' OR EXISTS (SELECT 1 FROM memory m WHERE m.id = o.other_id
            AND m.scope_kind IN (SELECT value FROM json_each(:scopes)) AND {whose}))))
    AND (:remote = '' OR coalesce(o.via, '') <> :remote)
"""
# Private memories stay on the machine where they were written; a copy of a data directory includes them.
_SHARED = _TRAVELS.format(whose=named_by_condition("m.scope_id", None))
_ALL = _TRAVELS.format(whose="true")


def after(
    db: Connection, seq: int, limit: int, scopes: Sequence[str], remote: str = "", *, is_copy: bool = False
) -> list[tuple[int, Operation]]:
    """List (number, operation) of the operations to send after a number, without those that came from a remote."""
    values = {"after": seq, "limit": limit, **_travel_values(scopes, remote)}
    return _select(db, f"o.seq > :after AND {_ALL if is_copy else _SHARED} ORDER BY o.seq LIMIT :limit", values)


def _travel_values(scopes: Sequence[str], remote: str) -> dict[str, str]:
    return {"scopes": json.dumps(list(scopes)), "remote": remote, "withdrawn": f'%"{SHARED_FROM}": null%'}


def at(db: Connection, seqs: Sequence[int]) -> list[tuple[int, Operation]]:
    """List (number, operation) for the numbers that are still in the log."""
    chosen = "o.seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) ORDER BY o.seq"
    return _select(db, chosen, (json.dumps(list(seqs)),))


def count_after(db: Connection, seq: int, scopes: Sequence[str], remote: str = "") -> int:
    """Count the operations to send after a number."""
    return (
        find_row(
            db,
            int,
            f"SELECT count(*) FROM operation o WHERE o.seq > :after AND {_SHARED}",  # noqa: S608
            {"after": seq, **_travel_values(scopes, remote)},
        )
        or 0
    )


def last_seq(db: Connection) -> int:
    """Return the number of the last operation, 0 without any."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM operation").fetchone()[0])


def take_node(db: Connection, node: str, mine: Collection[str]) -> None:
    """Stamp new operations with a node, and rename the unsigned ones of any node that is not in `mine`."""
    if meta.get(db, meta.NODE) == node:
        return
    renamed: dict[str, str] = {}
    for seq, old in _select(db, "o.signature IS NULL ORDER BY o.hlc, o.id"):
        if old.node in mine:
            continue
        again = old.stamped_by(node, renamed)
        renamed[old.id] = again.id
        # Stamped so before, it says the same.
        db.execute("DELETE FROM operation WHERE id = ? AND seq <> ?", (again.id, seq))
        db.execute(
            "UPDATE operation SET id = ?, hlc = ?, after = ? WHERE seq = ?",
            (again.id, again.hlc, json.dumps(again.after), seq),
        )
    meta.put_node(db, node)


def adopt(db: Connection, node: str) -> None:
    """Renumber the operations of a node, so that they are sent as if they had not come from a remote."""
    db.execute(
        "UPDATE operation SET via = NULL, seq = seq + (SELECT max(seq) FROM operation) WHERE substr(hlc, 23) = ?",
        (node,),
    )


def is_node(db: Connection, node: str) -> bool:
    """Return whether a store stamps new operations with a node."""
    return meta.get(db, meta.NODE) == node


def count_purges(db: Connection) -> int:
    """Count the tombstones."""
    return int(db.execute("SELECT count(*) FROM operation WHERE kind = 'purge'").fetchone()[0])


def list_forked(db: Connection, limit: int) -> Iterator[tuple[Key, Fold]]:
    """Iterate over the memories that several machines changed, the last changed first."""
    rows = db.execute(
        "SELECT memory_id FROM operation WHERE kind = 'memory' GROUP BY memory_id "
        "HAVING count(DISTINCT substr(hlc, 23)) > 1 ORDER BY max(seq) DESC LIMIT ?",
        (limit,),
    ).fetchall()
    keys = [Key(MEMORY, row[0]) for row in rows]
    folds = fold(db, keys)
    return ((key, folds[key]) for key in keys)


def _select(db: Connection, rest: str, values: Parameters = ()) -> list[tuple[int, Operation]]:
    """List (number, operation) by the rest of a statement after WHERE."""
    rows = db.execute(f"SELECT o.seq, {_COLUMNS} FROM operation o WHERE {rest}", values)  # noqa: S608 - constant text
    return [
        (seq, Operation(hlc, Key(*key), json.loads(fields), tuple(json.loads(behind)), signature, via))
        for seq, hlc, *key, fields, behind, signature, via in rows.fetchall()
    ]
