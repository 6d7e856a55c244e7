"""What was taken from which item of a source, and which memories stand for its texts.

A source is read again and again: the digest tells whether an item changed, the links which memories it brought. A text
is known by the name under which it was offered, since a person may have edited its memory.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.records import Memory, Source, Trust
from pipeline.store import memories, meta

# Ends the hash in a text's name where a hash alone does not tell two offers apart.
NAME_JOINT = "@"


@dataclass(frozen=True, slots=True)
class KnownItem:
    """An item as it was read last, and how many texts it gives; one without a digest is forgotten."""

    seq: int
    key: str
    digest: str
    texts: int = 0


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A source, how many items it is known by, how many memories they give, and when one was taken last."""

    seq: int
    source: str
    items: int
    memories: int
    at: str


@dataclass(frozen=True, slots=True)
class Link:
    """A memory that stands for a text, and when it was archived because no item held the text any more."""

    memory_seq: int
    archived_at: str | None


def sources(db: Connection, limit: int, before: int | None) -> list[SourceSummary]:
    """List the sources that are known by anything, the newest first, from below the first row of one."""
    rows = db.execute(
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
    return [SourceSummary(*row) for row in rows]


def items(db: Connection, source: str, limit: int, after: int | None) -> list[KnownItem]:
    """List the items that a source is known by, from above a row number, in row order.

    One of which another machine's checkout hid a memory has no digest: it is to be offered again.
    """
    rows = db.execute(
        f"SELECT seq, key, CASE WHEN EXISTS ({_HIDDEN}) THEN '' ELSE digest END, "  # noqa: S608 - constant text
        "(SELECT count(*) FROM ingest_memory WHERE item_seq = ingest_item.seq AND given = 1) "
        "FROM ingest_item WHERE source = ? AND digest <> '' AND seq > ? ORDER BY seq LIMIT ?",
        (source, after or 0, limit),
    )
    return [KnownItem(*row) for row in rows]


def find(db: Connection, source: str, key: str) -> KnownItem | None:
    """Return an item, forgotten or not."""
    row = db.execute("SELECT seq, key, digest FROM ingest_item WHERE source = ? AND key = ?", (source, key)).fetchone()
    return None if row is None else KnownItem(*row)


def put(db: Connection, source: str, key: str, digest: str, at: str) -> int:
    """Note that an item was read as it is now; return its row number."""
    known = find(db, source, key)
    if known is None:
        new = "INSERT INTO ingest_item (source, key, digest, at) VALUES (?, ?, ?, ?) RETURNING seq"
        return int(db.execute(new, (source, key, digest, at)).fetchone()[0])
    db.execute("UPDATE ingest_item SET digest = ?, at = ? WHERE seq = ?", (digest, at, known.seq))
    return known.seq


def forget(db: Connection, item_seq: int, at: str) -> None:
    """Note that an item is there no more; what it brought stays linked to it, should it come back."""
    db.execute("UPDATE ingest_item SET digest = '', at = ? WHERE seq = ?", (at, item_seq))


def link(db: Connection, item_seq: int, name: str, memory_seq: int) -> None:
    """Let a memory stand for a text of an item."""
    db.execute(
        "INSERT INTO ingest_memory (item_seq, hash, memory_seq, given) VALUES (?, ?, ?, 1) "
        "ON CONFLICT (item_seq, hash) DO UPDATE SET memory_seq = excluded.memory_seq, given = 1",
        (item_seq, name, memory_seq),
    )


def link_as(db: Connection, item_seq: int, name: str, memory_id: str, content_hash: str) -> bool:
    """Let the memory with an id stand for a text of an item if it says that text; return whether it does."""
    cursor = db.execute(
        "INSERT INTO ingest_memory (item_seq, hash, memory_seq, given) "
        "SELECT ?, ?, seq, 1 FROM memory WHERE id = ? AND content_hash = ? "
        "ON CONFLICT (item_seq, hash) DO UPDATE SET memory_seq = excluded.memory_seq, given = 1",
        (item_seq, name, memory_id, content_hash),
    )
    return cursor.rowcount == 1


def release(db: Connection, item_seq: int, but: Collection[str]) -> list[int]:
    """Note that an item gives none but these texts any more; return the row numbers of what stood for the others."""
    kept = json.dumps(list(but))
    rows = db.execute(
        "UPDATE ingest_memory SET given = 0 WHERE item_seq = ? AND given = 1 "
        "AND hash NOT IN (SELECT value FROM json_each(?)) RETURNING memory_seq",
        (item_seq, kept),
    ).fetchall()
    return [row[0] for row in rows]


def find_known(db: Connection, names: Iterable[str]) -> set[str]:
    """Return those of some texts for which any memory stands, or stood."""
    rows = db.execute(
        "SELECT DISTINCT hash FROM ingest_memory WHERE hash IN (SELECT value FROM json_each(?))",
        (json.dumps(list(names)),),
    )
    return {row[0] for row in rows}


def of_text(db: Connection, name: str) -> list[Link]:
    """List the memories that stand, or stood, for a text of any item."""
    rows = db.execute("SELECT DISTINCT memory_seq, archived_at FROM ingest_memory WHERE hash = ?", (name,))
    return [Link(*row) for row in rows]


def is_hidden_by_another(db: Connection, item_seq: int, memory_seq: int | None = None) -> bool:
    """Tell whether another machine archived what an item gives here, or one memory of it, since its checkout lacks it.

    What a person archived stays so on every machine.
    """
    row = db.execute(
        "SELECT 1 FROM ingest_item WHERE seq = ?1 "  # noqa: S608 - constant text
        f"AND EXISTS ({_HIDDEN} AND (CAST(?2 AS BIGINT) IS NULL OR m.seq = ?2))",
        (item_seq, memory_seq),
    ).fetchone()
    return row is not None


def list_unwanted(db: Connection, seqs: Iterable[int]) -> list[Memory]:
    """List those of some memories that only an import held, and no item holds any more.

    What a person or an agent wrote, pinned, edited, vouched for or said again is theirs by now.
    """
    return memories.select(
        db,
        "seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND archived_at IS NULL "  # noqa: S608 - constant text
        "AND source = ? AND pinned = 0 AND trust = ? "
        f"AND NOT EXISTS (SELECT 1 FROM ingest_memory l WHERE l.memory_seq = memory.seq AND l.given = 1) "
        f"AND {_UNTOUCHED} ORDER BY seq",
        (json.dumps(list(seqs)), Source.IMPORT, Trust.EVIDENCE),
    )


def is_own(db: Connection, seq: int, item_seq: int) -> bool:
    """Return whether a memory says what one item brought and nothing else."""
    row = db.execute(
        f"SELECT 1 FROM memory WHERE seq = ?1 AND source = ?3 AND {_UNTOUCHED} AND NOT EXISTS "  # noqa: S608 - constant text
        "(SELECT 1 FROM ingest_memory l WHERE l.memory_seq = ?1 AND l.given = 1 AND l.item_seq <> ?2)",
        (seq, item_seq, Source.IMPORT),
    ).fetchone()
    return row is not None


def note_archived(db: Connection, seqs: Iterable[int], at: str) -> None:
    """Note that memories went because no item holds them, so that they come back when one does."""
    db.executemany("UPDATE ingest_memory SET archived_at = ? WHERE memory_seq = ?", [(at, seq) for seq in seqs])


def list_file_memories(db: Connection, file: str, limit: int) -> list[list[int]]:
    """List the memories of the project files that a path or the end of one means, a list a file, the shortest first."""
    rows = db.execute(
        "SELECT i.key, m.memory_seq FROM ingest_item i JOIN ingest_memory m ON m.item_seq = i.seq AND m.given = 1 "
        "WHERE i.source >= 'project:' AND i.source < 'project;' "
        "AND (i.key = :file OR substr(i.key, -length(:file) - 1) = '/' || :file "
        "OR substr(:file, -length(i.key) - 1) = '/' || i.key) ORDER BY length(i.key), i.key, m.memory_seq",
        {"file": file},
    )
    found: dict[str, list[int]] = {}
    for key, seq in rows:
        found.setdefault(key, []).append(seq)
    return list(found.values())[:limit]


def move_links(db: Connection, from_seq: int, to_seq: int) -> None:
    """Let one memory stand for the texts of items for which another one stood that says the same."""
    db.execute("UPDATE ingest_memory SET memory_seq = ? WHERE memory_seq = ?", (to_seq, from_seq))


def note_restored(db: Connection, seq: int) -> None:
    """Note that a memory is back: whoever archives it from now on means it."""
    db.execute("UPDATE ingest_memory SET archived_at = NULL WHERE memory_seq = ?", (seq,))


def in_step(db: Connection, seqs: Sequence[int]) -> set[int]:
    """Return those of some memories that an item gives: they are kept as their source has them."""
    rows = db.execute(
        "SELECT memory_seq FROM ingest_memory WHERE given = 1 "
        "AND memory_seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )
    return {row[0] for row in rows}


def find_purged(db: Connection, names: Iterable[str]) -> set[str]:
    """Return those of some texts that were purged."""
    if db.execute("SELECT 1 FROM ingest_purged LIMIT 1").fetchone() is None:
        return set()
    marks = {mark(db, name): name for name in names}
    rows = db.execute(
        "SELECT mark FROM ingest_purged WHERE mark IN (SELECT value FROM json_each(?))", (json.dumps(list(marks)),)
    )
    return {marks[row[0]] for row in rows}


def purge(db: Connection, memory_seq: int) -> None:
    """Let no item know of a memory any more, and no item bring its texts back."""
    rows = db.execute("DELETE FROM ingest_memory WHERE memory_seq = ? RETURNING hash", (memory_seq,)).fetchall()
    db.executemany(
        "INSERT INTO ingest_purged VALUES (?) ON CONFLICT DO NOTHING", [(mark(db, name),) for (name,) in rows]
    )


# The operation by which a peer archived it is signed; a person's archive, or a merge, is told beside it.
_HIDDEN = """
    SELECT 1 FROM ingest_memory l JOIN memory m ON m.seq = l.memory_seq
    WHERE l.item_seq = ingest_item.seq AND l.given = 1 AND l.archived_at IS NULL
        AND m.archived_at IS NOT NULL AND m.merged_into IS NULL
        AND NOT EXISTS (SELECT 1 FROM refusal r WHERE r.memory_id = m.id)
        AND EXISTS (SELECT 1 FROM operation o WHERE o.memory_id = m.id AND o.kind = 'memory'
            AND o.signature IS NOT NULL AND json_extract(o.fields, '$.archived_at') = m.archived_at)
"""
# An exact repetition by anybody else, and whatever was merged into a memory, stands in its history. That another reader
# took the same text, here or on another machine, makes it nobody's own.
_UNTOUCHED = """
    NOT EXISTS (SELECT 1 FROM history h LEFT JOIN memory a ON a.seq = h.about_seq WHERE h.memory_seq = memory.seq
        AND (h.event = 'edited' OR (h.event = 'merged' AND coalesce(json_extract(h.detail, '$.source'),
            CASE WHEN json_extract(h.detail, '$.by') = 'sync' THEN a.source END, '') <> 'import')))
"""


def mark(db: Connection, name: str) -> str:
    """Return by what a purged text is known again: nothing that could be looked up elsewhere."""
    text = f"{meta.get(db, 'node')}:{name.partition(NAME_JOINT)[0]}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
