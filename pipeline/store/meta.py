"""Single values of a workspace: its node id, its current segment, its index generations."""

from sqlite3 import Connection

# The name of this copy of the store among others, and the last stamp of its clock.
NODE = "node"
CLOCK = "clock"
# Set once the store logs operations; see `log_start`.
OPERATION_LOG = "operation_log"
# Where the code of the workspace was last seen on this machine: the root of a git checkout.
CHECKOUT = "checkout"
SEGMENT = "segment"
# The change number up to which the segment holds what the tail held.
SEGMENT_COVERS = "segment_covers"
# The change number that the next segment must cover; set by a purge, or 0 when the segment is broken.
SEGMENT_WANTED = "segment_wanted"
# The model whose vectors answer; those of another are made beside them.
SERVING_MODEL = "serving_model"
# What showed that a workspace is not in English alone, in words; and of how many questions how many were not.
OTHER_LANGUAGES = "other_languages"
QUESTIONS_SEEN = "questions_seen"
QUESTIONS_FOREIGN = "questions_foreign"
VECTORS_GENERATION = "vectors_generation"
VECTORS_EPOCH = "vectors_epoch"


def get(db: Connection, key: str) -> str | None:
    """Return a value, None when it was never set."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def put(db: Connection, key: str, value: str) -> None:
    """Set a value."""
    db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value))


def put_new(db: Connection, key: str, value: str) -> bool:
    """Set a value that was never set; return False where it was."""
    return db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (key, value)).rowcount == 1


def replace(db: Connection, key: str, before: str, value: str) -> bool:
    """Set a value in the place of another; return False where it is not that any more."""
    return db.execute("UPDATE meta SET value = ? WHERE key = ? AND value = ?", (value, key, before)).rowcount == 1


def note(db: Connection, key: str, value: str) -> None:
    """Set a value that mostly is what it was."""
    if get(db, key) != value:
        put(db, key, value)


def drop(db: Connection, key: str) -> None:
    """Forget a value."""
    db.execute("DELETE FROM meta WHERE key = ?", (key,))


def get_int(db: Connection, key: str) -> int:
    """Return a counter, 0 when it was never set."""
    return int(get(db, key) or 0)


def increment(db: Connection, key: str) -> int:
    """Add one to a counter and return it."""
    value = get_int(db, key) + 1
    put(db, key, str(value))
    return value


def list_keys(db: Connection, prefix: str) -> list[str]:
    """List the keys that start with a text."""
    # The first text that is later than every one with the prefix: both engines compare by code points.
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    rows = db.execute("SELECT key FROM meta WHERE key >= ? AND key < ? ORDER BY key", (prefix, end))
    return [str(key) for (key,) in rows.fetchall()]
