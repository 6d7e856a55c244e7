"""Single values of a workspace, for example its node id, current segment and index generations."""

from sqlite3 import Connection

from pipeline.kernel.store.rows import find_row, list_rows

# The node id of this copy of the store, and the last stamp of its clock.
NODE = "node"
CLOCK = "clock"
# The first node id, if sync has replaced it: the key of the marks of purged texts.
MARK_KEY = "mark_key"
# Set once the store logs operations; see `log_start`.
OPERATION_LOG = "operation_log"
# Set in a store that a snapshot replaced, until the next exchange: remotes have later operations of this device.
RESTORED = "restored"
# The checkout in which the workspace's code was last seen on this machine.
CHECKOUT = "checkout"
# The commit that was checked out when the check job was last requested, and what the job found.
SEEN_HEAD = "seen_head"
BROKEN_CITATIONS = "broken_citations"
SEGMENT = "segment"
# The change number up to which the segment covers the tail.
SEGMENT_COVERS = "segment_covers"
# The change number that the next segment must cover; set by a purge, or 0 if the segment is broken.
SEGMENT_WANTED = "segment_wanted"
# The same for the segment of turns: the last covered row number, and a text that differs between requests.
TURN_SEGMENT = "turn_segment"
TURN_SEGMENT_COVERS = "turn_segment_covers"
TURN_SEGMENT_WANTED = "turn_segment_wanted"
# The model of the turns' vectors, and the same two numbers for them as for the memories' vectors.
TURN_VECTORS_MODEL = "turn_vectors_model"
TURN_VECTORS_GENERATION = "turn_vectors_generation"
TURN_VECTORS_EPOCH = "turn_vectors_epoch"
# The model whose vectors are used in searches, while another model may be embedding.
SERVING_MODEL = "serving_model"
# The evidence that a workspace is not only in English; the numbers of foreign and of all queries.
OTHER_LANGUAGES = "other_languages"
QUESTIONS_SEEN = "questions_seen"
QUESTIONS_FOREIGN = "questions_foreign"
# The sentences that capture considered and did not store; see `near_statements`.
NEAR_STATEMENTS = "near_statements"
# Before the id of a rule: the time of the offer to block what the rule forbids.
GUARD_OFFER = "guard_offer:"
# The session that was shown the history of imported sessions; no other session is.
HISTORY_SHOWN_TO = "history_shown_to"
# A number that grows with each change of the vocabulary bridges.
BRIDGES_GENERATION = "bridges_generation"
VECTORS_GENERATION = "vectors_generation"
VECTORS_EPOCH = "vectors_epoch"


def get(db: Connection, key: str) -> str | None:
    """Return a value, None if it was never set."""
    return find_row(db, str, "SELECT value FROM meta WHERE key = ?", (key,))


def put(db: Connection, key: str, value: str) -> None:
    """Set a value."""
    db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value))


def put_if_absent(db: Connection, key: str, value: str) -> bool:
    """Set a value that was never set; return False if it was."""
    return db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", (key, value)).rowcount == 1


def put_node(db: Connection, node: str) -> None:
    """Replace the node id. Texts that were purged before are still recognized by the first one."""
    put_if_absent(db, MARK_KEY, str(get(db, NODE)))
    put(db, NODE, node)


def note(db: Connection, key: str, value: str) -> None:
    """Set a value that rarely changes: write only if it differs."""
    if get(db, key) != value:
        put(db, key, value)


def drop(db: Connection, key: str) -> None:
    """Delete a value."""
    db.execute("DELETE FROM meta WHERE key = ?", (key,))


def get_int(db: Connection, key: str) -> int:
    """Return a counter, 0 if it was never set."""
    return int(get(db, key) or 0)


def increment(db: Connection, key: str) -> int:
    """Add one to a counter and return it."""
    value = get_int(db, key) + 1
    put(db, key, str(value))
    return value


def list_keys(db: Connection, prefix: str) -> list[str]:
    """List the keys that start with a text."""
    # The first text after all texts with the prefix: both engines compare by code points.
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return list_rows(db, str, "SELECT key FROM meta WHERE key >= ? AND key < ? ORDER BY key", (prefix, end))
