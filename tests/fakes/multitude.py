"""A workspace of many memories, written row by row in the state that digestion leaves."""

import hashlib
import random
from datetime import UTC, datetime, timedelta
from sqlite3 import Connection

from ulid import ULID

from benchmarks.corpus import memories as corpus
from pipeline.kernel.kinds import TRAITS
from pipeline.kernel.records import UNSTORED, EntityKind, FactKey, Kind, Memory, Scope, Source, Tier, Trust
from pipeline.kernel.store import changes, history, impressions, index_state, memories
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.impressions import Impression
from pipeline.kernel.times import utc_text
from pipeline.text.tokens import memory_tokens

ENTITIES = 6000
MENTIONS = 4
FACTS = 500
KINDS = (EntityKind.FILE, EntityKind.IDENTIFIER, EntityKind.PACKAGE, EntityKind.PERSON, EntityKind.TICKET)
SEED = 11
# What the present moment is to the youngest memory: they all lie behind it.
YOUNGEST = timedelta(minutes=5)


def fill(database: Database, count: int, seed: int = SEED) -> None:
    """Write so many memories with entities, histories, facts and surfacings, none of them embedded."""
    chance = random.Random(seed)
    written = [_memory(number, count, body, chance) for number, body in enumerate(corpus(count, seed))]
    with database.write() as db:
        seqs = [memories.insert(db, memory) for memory in written]
        first = changes.append(db, changes.CREATE, [memory.id for memory in written])
        for number, (seq, memory) in enumerate(zip(seqs, written, strict=True), start=first):
            # A segment is built of everything; the tail need not hold what it covers.
            if number > first + count - 100:
                index_state.put_tokens(db, seq, memory_tokens(memory.content, memory.occurred_at), number)
        _mention(db, seqs, chance)
        for seq, memory in zip(seqs[:: count // 500 or 1], written[:: count // 500 or 1], strict=True):
            history.add(db, seq, memory.created_at, "edited", f"Before: {memory.content}", {})
        shown = [
            Impression(str(ULID()), seq, memory.session_id, memory.created_at)
            for seq, memory in zip(seqs, written, strict=True)
            if memory.kind is Kind.LESSON
        ][:2000]
        impressions.add(db, shown)


def _memory(number: int, count: int, body: dict[str, str], chance: random.Random) -> Memory:
    kind = Kind(body["kind"])
    at = utc_text(datetime.now(UTC) - YOUNGEST - timedelta(minutes=5 * (count - number)))
    content, key = body["content"], None
    if number % (count // FACTS or 1) == 0:
        kind, key = Kind.KEYED_FACT, FactKey(f"service {number}", "port")
    return Memory(
        seq=UNSTORED,
        id=str(ULID()),
        content=content,
        kind=kind,
        scope=Scope(),
        tags=(f"team-{number % 40}",),
        metadata={},
        source=Source(body["source"]),
        trust=Trust.TRUSTED,
        importance=chance.random(),
        tier=Tier(TRAITS[kind].tier),
        pinned=False,
        session_id=body["session_id"],
        created_at=at,
        occurred_at=at,
        updated_at=at,
        archived_at=None,
        content_hash=hashlib.sha256(content.encode()).hexdigest(),
        key=key,
        valid_from=at if key is not None else None,
    )


def _mention(db: Connection, seqs: list[int], chance: random.Random) -> None:
    kept = min(ENTITIES, len(seqs))
    rows = [
        (number, str(ULID()), KINDS[number % len(KINDS)], f"{KINDS[number % len(KINDS)]}-{number}.py")
        for number in range(1, kept + 1)
    ]
    db.executemany("INSERT INTO entity (seq, id, kind, name) VALUES (?, ?, ?, ?)", rows)
    mentions: list[tuple[int, int, str]] = []
    for seq in seqs:
        # Neighbours in number are mentioned together, so that the graph has parts.
        centre = int(kept * chance.random() ** 2)
        named = {1 + (centre + int(chance.gauss(0, 12))) % kept for _ in range(MENTIONS)}
        mentions += [(seq, one, rows[one - 1][3]) for one in named]
    db.executemany("INSERT INTO mention VALUES (?, ?, ?)", mentions)
