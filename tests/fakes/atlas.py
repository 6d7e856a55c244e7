"""Entities that memories mention together, written row by row, and a drawn map of them without any layout."""

import random
from collections.abc import Iterable

import numpy as np
from ulid import ULID

from pipeline.features.entities import store as entities
from pipeline.features.map import store as maps
from pipeline.features.map.store import MapPosition, MapTie
from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store.database import Database
from tests.fakes.job_runs import write

COMMUNITIES = 30
KINDS = (EntityKind.FILE, EntityKind.PERSON, EntityKind.TICKET, EntityKind.PACKAGE)


def note(database: Database, day: float, names: Iterable[str], kind: EntityKind = EntityKind.PRODUCT) -> str:
    """Write a memory that mentions just these."""
    listed = list(names)
    memory_id = write(database, day, f"{ULID()} {' '.join(name[:40] for name in listed)}")
    with database.write() as db:
        (seq,) = db.execute("SELECT seq FROM memory WHERE id = ?", (memory_id,)).fetchone()
        entities.link(db, seq, [EntityMention(kind, name, name, 0, len(name)) for name in listed])
    return memory_id


def chart(database: Database, count: int, ties: int, seed: int = 5) -> list[str]:
    """Draw so many entities and ties; return the names of the entities."""
    chance = np.random.default_rng(seed)
    pick = random.Random(seed)
    memory = write(database, 0, "Everything that is on the map is mentioned here")
    names = [f"{pick.choice(('core', 'web', 'data'))}/thing_{number}.py" for number in range(count)]
    home = chance.integers(0, COMMUNITIES, count)
    angle = home * 2 * np.pi / COMMUNITIES
    spot = 1500 * np.column_stack((np.cos(angle), np.sin(angle))) + chance.normal(0, 90, (count, 2))
    mentions = 1 + chance.zipf(2.0, count).clip(max=300)
    low = chance.integers(0, count, 2 * ties)
    high = (low + 1 + COMMUNITIES * chance.integers(0, 40, 2 * ties)) % count
    pairs = sorted({(int(min(a, b)), int(max(a, b))) for a, b in zip(low, high, strict=True) if a != b})
    pairs = sorted(pick.sample(pairs, ties))
    with database.write() as db:
        (seq,) = db.execute("SELECT seq FROM memory WHERE id = ?", (memory,)).fetchone()
        first = db.execute("SELECT coalesce(max(seq), 0) + 1 FROM entity").fetchone()[0]
        ids = [str(ULID()) for _ in names]
        rows = [(first + at, ids[at], KINDS[at % len(KINDS)], name) for at, name in enumerate(names)]
        db.executemany("INSERT INTO entity (seq, id, kind, name) VALUES (?, ?, ?, ?)", rows)
        db.executemany("INSERT INTO mention VALUES (?, ?, ?)", [(seq, row[0], row[3]) for row in rows])
        number = maps.get_shown_drawing(db).number + 1
        places = [
            MapPosition(first + at, *map(float, spot[at]), 4.0, int(home[at]), float(mentions[at]), int(mentions[at]))
            for at in range(count)
        ]
        maps.add_positions(db, number, list(zip(ids, places, strict=True)))
        pick.shuffle(pairs)
        maps.add_ties(db, number, [MapTie(rank, first + a, first + b, 2) for rank, (a, b) in enumerate(pairs)])
        maps.show(db, number, "2026-06-01T03:00:00.000Z")
    return names
