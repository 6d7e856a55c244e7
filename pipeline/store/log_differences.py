"""Differences between the rows of a store and its operation log.

Once a store has a log, every commit writes both, so a difference means that another program changed the file.
"""

from sqlite3 import Connection

from pipeline.store import oplog, replicated_records
from pipeline.store.oplog import Fold
from pipeline.store.replicated_records import GONE, MEMORY, Key

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
        for key in some:
            if key not in states or not (key in here or _can_exist(key, folds[key], here)):
                continue
            fold = folds.get(key)
            # The survivor of this merge may not have arrived yet, or may be gone.
            if fold is not None and replicated_records.find_seq(db, fold.fields.get("merged_into")) is None:
                fold.fields.pop("merged_into", None)
            if oplog.difference(states[key], fold)[0].keys() - _NOT_LOGGED_ALONE:
                differing.append(key)
    return differing


def _can_exist(key: Key, fold: Fold, here: set[Key]) -> bool:
    if fold.says == GONE:
        return False
    if key.kind == MEMORY:
        return fold.fields.keys() >= NEEDED
    return all(not memory_id or Key(MEMORY, memory_id) in here for memory_id in (key.memory_id, key.other_id))
