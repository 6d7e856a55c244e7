"""Start the operation log of a store: only a store that exchanges with other machines pays for one.

The rows that exist are logged with the time at which they last changed, so that a start that is repeated makes the same
operations, and later changes of other machines win over them.
"""

from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection

from pipeline.store import clock, meta, oplog, replicated_records
from pipeline.store.database import Database
from pipeline.store.replicated_records import GONE, PURGE, Fields, Key
from pipeline.store.scripts import run_script
from pipeline.times import parse

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
    logged, now_ms, node = oplog.fold(db, keys), clock.wall_ms(), _node(db)
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
    node = _node(db)
    _insert(db, [oplog.Operation(clock.with_node(hlc, node), Key(PURGE, memory_id), {}) for memory_id, hlc in rows])


def _insert(db: Connection, operations: Sequence[oplog.Operation]) -> None:
    oplog.insert(db, operations)
    if operations:
        clock.receive(db, max(operation.hlc for operation in operations))


def _node(db: Connection) -> str:
    return str(meta.get(db, meta.NODE))


def _stamp(fields: Fields, node: str, now_ms: int) -> str:
    """Return the stamp of a record that last changed when its fields say so, or now if they do not."""
    try:
        changed_ms = round(parse(_find_time(fields, _TIMES)).timestamp() * 1000)
    except ValueError:
        changed_ms = now_ms
    return clock.stamp(min(changed_ms, now_ms), node)


def _find_time(fields: Mapping[str, object], names: Iterable[str]) -> str:
    return next((str(fields[name]) for name in names if name in fields), "")
