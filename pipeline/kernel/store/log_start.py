"""Start the operation log of a store: only a store that exchanges with other machines pays for one.

The rows that exist are logged with the time at which they last changed, so that a start that is repeated makes the same
operations, and later changes of other machines win over them. Once a store has a log, every commit writes both, so a
difference means that another program changed the file.
"""

from collections.abc import Sequence
from sqlite3 import Connection

from pipeline.kernel.store import clock, meta, oplog, replicated_records
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.oplog import Fold
from pipeline.kernel.store.replicated_records import GONE, MEMORY, PURGE, Fields, Key
from pipeline.kernel.store.scripts import run_script
from pipeline.kernel.times import parse

# The fields that say when a record last changed, the most precise one first.
_TIMES = ("updated_at", "settled_at", "answered_at", "at")


def never_synced() -> bool:
    """Return false, for stores that exchange with no other machine."""
    return False


def start_log(database: Database) -> None:
    """Log the rows of a store, and from now on each change; do nothing if its log is complete.

    Other writers wait for one batch at most. A start that was interrupted is finished by the next one.
    """
    with database.read() as db:
        if oplog.is_complete(db):
            return
    with database.write() as db:
        if meta.put_if_absent(db, meta.OPERATION_LOG, oplog.STARTED):
            database.install_log_triggers(db)
    with database.read() as db:
        keys = sorted(set(replicated_records.list_keys(db)) - oplog.list_all_keys(db))
    for start in range(0, len(keys), oplog.AT_ONCE):
        with database.write() as db:
            _log_rows(db, keys[start : start + oplog.AT_ONCE])
    with database.write() as db:
        _log_purges(db)
        meta.put(db, meta.OPERATION_LOG, oplog.COMPLETE)


def install_triggers(db: Connection) -> None:
    """Create the triggers of a SQLite file that note which records a transaction changes, if it keeps a log."""
    if meta.get(db, meta.OPERATION_LOG) is not None:
        run_script(db, "log_triggers.sql")


def _log_rows(db: Connection, keys: Sequence[Key]) -> None:
    """Log the state of records that no operation describes yet."""
    logged, now_ms, node = oplog.fold(db, keys), clock.wall_ms(), str(meta.get(db, meta.NODE))
    states = {
        key: fields for key, fields in replicated_records.read(db, keys).items() if fields != GONE and key not in logged
    }
    _insert(db, [oplog.Operation(_stamp(fields, node, now_ms), key, fields) for key, fields in states.items()])


def _log_purges(db: Connection) -> None:
    """Log a tombstone for each memory that was purged before the log could say so."""
    rows = db.execute(
        "SELECT memory_id, max(hlc) FROM change WHERE op = 'purge' AND memory_id NOT IN (SELECT id FROM memory) "
        "AND memory_id NOT IN (SELECT memory_id FROM operation WHERE kind = 'purge') GROUP BY memory_id"
    ).fetchall()
    node = str(meta.get(db, meta.NODE))
    _insert(db, [oplog.Operation(clock.with_node(hlc, node), Key(PURGE, memory_id), {}) for memory_id, hlc in rows])


def _insert(db: Connection, operations: Sequence[oplog.Operation]) -> None:
    oplog.insert(db, operations)
    if operations:
        clock.receive(db, max(operation.hlc for operation in operations))


def _stamp(fields: Fields, node: str, now_ms: int) -> str:
    """Return the stamp of a record that last changed when its fields say so, or now if they do not."""
    try:
        changed_at = next((str(fields[name]) for name in _TIMES if name in fields), "")
        changed_ms = round(parse(changed_at).timestamp() * 1000)
    except ValueError:
        changed_ms = now_ms
    return clock.stamp(min(changed_ms, now_ms), node)


# Without these fields, a memory has not completely arrived yet.
NEEDED = frozenset({"content", "kind", "source", "trust", "created_at", "occurred_at", "updated_at", "importance"})
# Changes that only concern this machine do not update the log's time.
_NOT_LOGGED_ALONE = frozenset({"updated_at"})


def list_differences(db: Connection) -> list[Key]:
    """List the keys whose rows differ from the log; empty for a valid store, and without a complete log."""
    if not oplog.is_complete(db):
        return []
    differing, here = [], set(replicated_records.list_keys(db))
    keys = sorted(here | oplog.list_all_keys(db))
    for start in range(0, len(keys), oplog.AT_ONCE):
        some = keys[start : start + oplog.AT_ONCE]
        states, folds = replicated_records.read(db, some), oplog.fold(db, some)
        replicated_records.ignore_missing_survivors(db, states, {key: folds[key].fields for key in folds})
        for key in some:
            if key not in states or not (key in here or _can_exist(key, folds[key], here)):
                continue
            if oplog.difference(states[key], folds.get(key))[0].keys() - _NOT_LOGGED_ALONE:
                differing.append(key)
    return differing


def _can_exist(key: Key, fold: Fold, here: set[Key]) -> bool:
    if fold.says == GONE:
        return False
    if key.kind == MEMORY:
        return fold.fields.keys() >= NEEDED
    return all(not memory_id or Key(MEMORY, memory_id) in here for memory_id in (key.memory_id, key.other_id))
