"""Items of sources that were read, and the memories that represent their texts.

Sources are read repeatedly: the digest shows whether an item changed, the links show its memories. A text is
identified by the name under which it was offered, since a person may have edited its memory.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import NamedTuple

from pipeline.kernel.records import Kind, Memory, Source, Trust
from pipeline.kernel.store import memories, meta
from pipeline.kernel.store.rows import Table, find_row, has_row, list_rows

# The start of the names of sources of native memories and rule files; the tool's name follows, then a colon.
NATIVE_PREFIX = "memory:"
# The tool of rule files, which people write.
RULES_TOOL = "rules"
# Ends the hash in a text's name if the hash alone does not distinguish two offers.
NAME_SEPARATOR = "@"


@dataclass(frozen=True, slots=True)
class KnownItem:
    """An item as it was read last, and its number of texts; an item without a digest is forgotten."""

    seq: int
    key: str
    digest: str
    texts: int = 0


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A source, its numbers of items and memories, and the time of the last read."""

    seq: int
    source: str
    items: int
    memories: int
    at: str


@dataclass(frozen=True, slots=True)
class Link:
    """A memory that represents a text, and when it was archived because no item contained the text any more."""

    memory_seq: int
    archived_at: str | None


def sources(db: Connection, limit: int, before: int | None) -> list[SourceSummary]:
    """List the sources with items, the newest first, below the first row of a source."""
    return list_rows(
        db,
        SourceSummary,
        """
        SELECT first, source, items, (
            SELECT count(DISTINCT l.memory_seq) FROM ingest_item i JOIN ingest_memory l ON l.item_seq = i.seq
            WHERE i.source = known.source AND l.given = 1
        ), at
        FROM (SELECT min(seq) AS first, source, count(*) AS items, max(at) AS at FROM ingest_item
            WHERE digest <> '' GROUP BY source) known
        WHERE first < ? ORDER BY first DESC LIMIT ?
        """,
        (before if before is not None else 2**62, limit),
    )


def items(db: Connection, source: str, limit: int, after: int | None) -> list[KnownItem]:
    """List the items of a source above a row number, in row order.

    An item has no digest if another machine's checkout hid one of its memories: it must be offered again.
    """
    return list_rows(
        db,
        KnownItem,
        f"SELECT seq, key, CASE WHEN EXISTS ({_HIDDEN}) THEN '' ELSE digest END, "  # noqa: S608 - constant text
        "(SELECT count(*) FROM ingest_memory WHERE item_seq = ingest_item.seq AND given = 1) "
        "FROM ingest_item WHERE source = ? AND digest <> '' AND seq > ? ORDER BY seq LIMIT ?",
        (source, after or 0, limit),
    )


def find(db: Connection, source: str, key: str) -> KnownItem | None:
    """Find an item, forgotten or not."""
    return find_row(
        db, KnownItem, "SELECT seq, key, digest FROM ingest_item WHERE source = ? AND key = ?", (source, key)
    )


def put(db: Connection, source: str, key: str, digest: str, at: str) -> int:
    """Record that an item was read; return its row number."""
    known = find(db, source, key)
    if known is None:
        new = "INSERT INTO ingest_item (source, key, digest, at) VALUES (?, ?, ?, ?) RETURNING seq"
        return int(db.execute(new, (source, key, digest, at)).fetchone()[0])
    db.execute("UPDATE ingest_item SET digest = ?, at = ? WHERE seq = ?", (digest, at, known.seq))
    return known.seq


def forget(db: Connection, item_seq: int, at: str) -> None:
    """Record that an item is gone; its memories stay linked in case it returns."""
    db.execute("UPDATE ingest_item SET digest = '', at = ? WHERE seq = ?", (at, item_seq))


def link(db: Connection, item_seq: int, name: str, memory_seq: int) -> None:
    """Link a memory to a text of an item."""
    db.execute(
        "INSERT INTO ingest_memory (item_seq, hash, memory_seq, given) VALUES (?, ?, ?, 1) "
        "ON CONFLICT (item_seq, hash) DO UPDATE SET memory_seq = excluded.memory_seq, given = 1",
        (item_seq, name, memory_seq),
    )


def link_as(db: Connection, item_seq: int, name: str, memory_id: str, content_hash: str) -> bool:
    """Link the memory with an id to a text of an item if it has that text; return whether it does."""
    return (
        db.execute(
            "INSERT INTO ingest_memory (item_seq, hash, memory_seq, given) "
            "SELECT ?, ?, seq, 1 FROM memory WHERE id = ? AND content_hash = ? "
            "ON CONFLICT (item_seq, hash) DO UPDATE SET memory_seq = excluded.memory_seq, given = 1",
            (item_seq, name, memory_id, content_hash),
        ).rowcount
        == 1
    )


def release(db: Connection, item_seq: int, but: Collection[str]) -> list[int]:
    """Drop an item's links except for some texts; return the row numbers of the unlinked memories."""
    kept_names = json.dumps(list(but))
    return list_rows(
        db,
        int,
        "UPDATE ingest_memory SET given = 0 WHERE item_seq = ? AND given = 1 "
        "AND hash NOT IN (SELECT value FROM json_each(?)) RETURNING memory_seq",
        (item_seq, kept_names),
    )


def find_known(db: Connection, names: Iterable[str]) -> set[str]:
    """Return which of some texts have, or had, a memory."""
    return set(
        list_rows(
            db,
            str,
            "SELECT DISTINCT hash FROM ingest_memory WHERE hash IN (SELECT value FROM json_each(?))",
            (json.dumps(list(names)),),
        )
    )


def of_text(db: Connection, name: str) -> list[Link]:
    """List the memories that represent, or represented, a text of any item."""
    return list_rows(db, Link, "SELECT DISTINCT memory_seq, archived_at FROM ingest_memory WHERE hash = ?", (name,))


def is_hidden_by_another(db: Connection, item_seq: int, memory_seq: int | None = None) -> bool:
    """Return whether another machine archived an item's memories because its checkout lacks the item.

    Memories that a person archived stay archived on every machine.
    """
    return has_row(
        db,
        "SELECT 1 FROM ingest_item WHERE seq = ?1 "  # noqa: S608 - constant text
        f"AND EXISTS ({_HIDDEN} AND (CAST(?2 AS BIGINT) IS NULL OR m.seq = ?2))",
        (item_seq, memory_seq),
    )


def list_unwanted(db: Connection, seqs: Iterable[int]) -> list[Memory]:
    """List which of some memories came only from an import and are in no item any more.

    Memories that a person or an agent wrote, pinned, edited, confirmed or repeated are kept.
    """
    return memories.select(
        db,
        "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND archived_at IS NULL "  # noqa: S608 - constant text
        "AND source = ? AND pinned = 0 AND trust = ? "
        f"AND NOT EXISTS (SELECT 1 FROM ingest_memory l WHERE l.memory_seq = memory.seq AND l.given = 1) "
        f"AND {_UNTOUCHED} ORDER BY seq",
        (json.dumps(list(seqs)), Source.IMPORT, Trust.EVIDENCE),
    )


def list_left_behind(db: Connection, source: str) -> list[tuple[int, str]]:
    """List the active documents of a source that are in no item any more, each with the name of its text."""
    return db.execute(
        "SELECT m.seq, max(l.hash) FROM ingest_item i JOIN ingest_memory l ON l.item_seq = i.seq "
        "JOIN memory m ON m.seq = l.memory_seq WHERE i.source = ? AND m.archived_at IS NULL AND m.kind = ? "
        "AND m.source = ? AND NOT EXISTS (SELECT 1 FROM ingest_memory g WHERE g.memory_seq = m.seq AND g.given = 1) "
        "GROUP BY m.seq ORDER BY m.seq",
        (source, Kind.DOCUMENT, Source.IMPORT),
    ).fetchall()


def is_fresh(db: Connection, seq: int, source: str) -> bool:
    """Return whether a memory is an unchanged document that a single item of a source contains."""
    rows = db.execute(
        "SELECT i.seq FROM ingest_memory l JOIN ingest_item i ON i.seq = l.item_seq JOIN memory m "
        "ON m.seq = l.memory_seq WHERE m.seq = ? AND i.source = ? AND l.given = 1 AND m.kind = ? "
        "AND m.pinned = 0 AND m.trust = ?",
        (seq, source, Kind.DOCUMENT, Trust.EVIDENCE),
    ).fetchall()
    return len(rows) == 1 and is_own(db, seq, rows[0][0])


def is_own(db: Connection, seq: int, item_seq: int) -> bool:
    """Return whether a memory represents only texts of one item."""
    return has_row(
        db,
        f"SELECT 1 FROM memory WHERE seq = ?1 AND source = ?3 AND {_UNTOUCHED} AND NOT EXISTS "  # noqa: S608 - constant text
        "(SELECT 1 FROM ingest_memory l WHERE l.memory_seq = ?1 AND l.given = 1 AND l.item_seq <> ?2)",
        (seq, item_seq, Source.IMPORT),
    )


def record_archived(db: Connection, seqs: Iterable[int], at: str) -> None:
    """Record that memories were archived because no item contains them, so that they can return."""
    db.executemany("UPDATE ingest_memory SET archived_at = ? WHERE memory_seq = ?", [(at, seq) for seq in seqs])


def list_file_memories(db: Connection, file: str, limit: int) -> list[list[int]]:
    """List the memories of project files whose path ends with a path, one list per file, the shortest path first."""
    rows = db.execute(
        "SELECT i.key, m.memory_seq FROM ingest_item i JOIN ingest_memory m ON m.item_seq = i.seq AND m.given = 1 "
        "WHERE i.source >= 'project:' AND i.source < 'project;' "
        "AND (i.key = :file OR substr(i.key, -length(:file) - 1) = '/' || :file "
        "OR substr(:file, -length(i.key) - 1) = '/' || i.key) ORDER BY length(i.key), i.key, m.memory_seq",
        {"file": file},
    )
    seqs_by_file: dict[str, list[int]] = {}
    for key, seq in rows:
        seqs_by_file.setdefault(key, []).append(seq)
    return list(seqs_by_file.values())[:limit]


def move_links(db: Connection, from_seq: int, to_seq: int) -> None:
    """Move the links of a memory to another memory with the same text."""
    db.execute("UPDATE ingest_memory SET memory_seq = ? WHERE memory_seq = ?", (to_seq, from_seq))


def record_restored(db: Connection, seq: int) -> None:
    """Record that a memory is restored: a later archival is deliberate."""
    db.execute("UPDATE ingest_memory SET archived_at = NULL WHERE memory_seq = ?", (seq,))


def list_synced(db: Connection, seqs: Sequence[int]) -> set[int]:
    """Return which of some memories are kept in sync with an item."""
    return set(
        list_rows(
            db,
            int,
            "SELECT memory_seq FROM ingest_memory WHERE given = 1 "
            "AND memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
            (json.dumps(list(seqs)),),
        )
    )


class NativeOrigin(NamedTuple):
    """The tool and the item of a native memory: a note, a rule file, a row of a database."""

    tool: str
    item_seq: int


def list_native_origins(db: Connection, seqs: Sequence[int]) -> dict[int, set[NativeOrigin]]:
    """Return the tools and items of those of some memories that other tools keep, by row number."""
    rows = db.execute(
        "SELECT l.memory_seq, i.source, i.seq FROM ingest_memory l JOIN ingest_item i ON i.seq = l.item_seq "
        "WHERE l.given = 1 AND i.source >= ? AND i.source < ? "
        "AND l.memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (*_range_of(NATIVE_PREFIX), json.dumps(list(seqs))),
    )
    origins: dict[int, set[NativeOrigin]] = {}
    for seq, source, item_seq in rows:
        origins.setdefault(seq, set()).add(NativeOrigin(source.split(":")[1], item_seq))
    return origins


def list_rule_statements(db: Connection, limit: int) -> list[int]:
    """List the active memories of the indexed rule files."""
    return list_rows(
        db,
        int,
        "SELECT DISTINCT m.seq FROM ingest_item i JOIN ingest_memory l ON l.item_seq = i.seq AND l.given = 1 "
        "JOIN memory m ON m.seq = l.memory_seq WHERE i.source >= ? AND i.source < ? AND i.digest <> '' "
        "AND m.archived_at IS NULL ORDER BY m.seq LIMIT ?",
        (*_range_of(f"{NATIVE_PREFIX}{RULES_TOOL}:"), limit),
    )


def _range_of(prefix: str) -> tuple[str, str]:
    """Return the limits of the texts with a prefix that ends in a colon."""
    return prefix, f"{prefix[:-1]};"


def find_purged(db: Connection, names: Iterable[str]) -> set[str]:
    """Return which of some texts were purged."""
    if db.execute("SELECT 1 FROM ingest_purged LIMIT 1").fetchone() is None:
        return set()
    marks = {mark(db, name): name for name in names}
    rows = db.execute(
        "SELECT mark FROM ingest_purged WHERE mark IN (SELECT value FROM json_each(?))", (json.dumps(list(marks)),)
    )
    return {marks[row[0]] for row in rows}


def _prevent_return(db: Connection, memory: Memory) -> None:
    """Delete all links of a memory, and prevent items from bringing its texts back."""
    rows = db.execute("DELETE FROM ingest_memory WHERE memory_seq = ? RETURNING hash", (memory.seq,)).fetchall()
    db.executemany(
        "INSERT INTO ingest_purged VALUES (?) ON CONFLICT DO NOTHING", [(mark(db, name),) for (name,) in rows]
    )


# A peer's archival for this reason is a signed operation; a person's archival or a merge has an entry in addition.
_HIDDEN = """
    SELECT 1 FROM ingest_memory l JOIN memory m ON m.seq = l.memory_seq
    WHERE l.item_seq = ingest_item.seq AND l.given = 1 AND l.archived_at IS NULL
        AND m.archived_at IS NOT NULL AND m.merged_into IS NULL
        AND NOT EXISTS (SELECT 1 FROM refusal r WHERE r.memory_id = m.id)
        AND EXISTS (SELECT 1 FROM operation o WHERE o.memory_id = m.id AND o.kind = 'memory'
            AND o.signature IS NOT NULL AND json_extract(o.fields, '$.archived_at') = m.archived_at)
"""
# A repetition by another source, and merges into the memory, are in its history. The same text from another reader,
# here or on another machine, does not count.
_UNTOUCHED = """
    NOT EXISTS (SELECT 1 FROM history h LEFT JOIN memory a ON a.seq = h.about_seq WHERE h.memory_seq = memory.seq
        AND (h.event = 'edited' OR (h.event = 'merged' AND coalesce(json_extract(h.detail, '$.source'),
            CASE WHEN json_extract(h.detail, '$.by') = 'sync' THEN a.source END, '') <> 'import')))
"""


def mark_key(db: Connection) -> str:
    """Return the key of hashes of texts: the first node id, because sync replaces the node id."""
    return meta.get(db, meta.MARK_KEY) or str(meta.get(db, meta.NODE))


def mark(db: Connection, name: str) -> str:
    """Return a hash that identifies a purged text; it cannot be looked up elsewhere."""
    text = f"{mark_key(db)}:{name.partition(NAME_SEPARATOR)[0]}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


TABLES = (
    Table("ingest_item"),
    Table(
        "ingest_memory",
        ("item_seq", "hash"),
        memory=("memory_seq",),
        erasure=_prevent_return,
        orphans="ingest_memories",
    ),
    Table("ingest_purged", ("mark",)),
)
