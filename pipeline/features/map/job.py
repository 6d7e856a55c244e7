"""The layout job: compute the map of entities, so that the dashboard only has to draw it.

It selects the most mentioned entities, ties them, groups them in communities and positions them. It starts from the
last map, so that entities hardly move. A run that finds enough changes computes everything again, writes the new map in
pieces next to the shown one, and then switches. An interrupted run leaves the old map.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.features.map import store as maps
from pipeline.features.map.graph import Ids, MapGraph, Numbers, build_graph, find_communities, measure_change
from pipeline.features.map.placement import Before, entity_radii, place_entities
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.records import EntityKind
from pipeline.kernel.store import changes

MOST_ENTITIES = 5_000
MOST_TIES = 50_000
READ = 5_000
# Rows that are written or deleted in one transaction.
PIECE = 250
# A map is kept until more than this share of its entities or of its ties has changed.
ENOUGH = 0.02
# Dates are mentioned everywhere and are not things.
UNMAPPED = (EntityKind.DATE,)


@dataclass(frozen=True, slots=True)
class _Known:
    """The map that is shown."""

    places: Sequence[maps.MapPosition]
    ties: Sequence[tuple[int, int]]


def layout(job: JobRun, most: int = MOST_ENTITIES, most_ties: int = MOST_TIES) -> Report:
    """Compute the map again if the graph has changed enough."""
    if not _delete_leftovers(job):
        return Report(more=True)
    with job.database.read() as db:
        generation = changes.generation(db)
        known = _Known(maps.list_positions(db), maps.list_ties(db))
    mentions = _read_mentions(job)
    if mentions is None:
        return Report(more=True)
    graph = build_graph(*mentions, most, most_ties)
    counts = {"entities": graph.size, "ties": len(graph.low), "redrawn": 0}
    drawn = np.array([shown.entity_seq for shown in known.places], np.int64)
    if measure_change(graph, drawn, known.ties) <= ENOUGH:
        return Report(counts)
    drawing = _draw(job, graph, known.places)
    if drawing is None:
        return Report(counts, more=True)
    if not _write(job, graph, *drawing, generation):
        return Report(counts, more=True)
    return Report(counts | {"redrawn": 1}, more=not _delete_leftovers(job))


def _delete_leftovers(job: JobRun) -> bool:
    """Delete earlier and unfinished maps; return False when asked to pause."""
    deleted = PIECE
    while deleted == PIECE:
        if job.pausing():
            return False
        with job.database.read() as db:
            if not maps.has_leftovers(db):
                return True
        with job.database.write() as db:
            deleted = maps.discard(db, PIECE)
    return True


def _read_mentions(job: JobRun) -> tuple[Ids, Ids] | None:
    """Return the (memory, entity) mentions in order; None when asked to pause."""
    rows: list[Ids] = [np.empty((0, 2), np.int64)]
    after = (0, 0)
    while True:
        if job.pausing():
            return None
        with job.database.read() as db:
            page = maps.mentions(db, job.at, UNMAPPED, after, READ)
        rows.append(np.array(page, np.int64).reshape(-1, 2))
        if len(page) < READ:
            break
        after = page[-1]
    whole = np.concatenate(rows)
    return whole[:, 0], whole[:, 1]


def _draw(job: JobRun, graph: MapGraph, places: Sequence[maps.MapPosition]) -> tuple[Ids, Numbers] | None:
    """Return the community and the position of every entity; None when asked to pause."""
    if not graph.size:
        return np.empty(0, np.int64), np.empty((0, 2))
    stood = {shown.entity_seq: shown for shown in places}
    spots = np.full((graph.size, 2), np.nan)
    numbers = np.full(graph.size, maps.NO_COMMUNITY, np.int64)
    for at, seq in enumerate(graph.seqs.tolist()):
        if seq in stood:
            spots[at] = stood[seq].x, stood[seq].y
            numbers[at] = stood[seq].community
    community = find_communities(graph, numbers, job.pausing)
    if community is None:
        return None
    spots_now = place_entities(graph, community, Before(spots, numbers), job.pausing)
    return None if spots_now is None else (community, spots_now)


def _write(job: JobRun, graph: MapGraph, community: Ids, spots: Numbers, generation: int) -> bool:
    """Write a map and show it; return False when asked to pause, or if a memory was purged during the run."""
    with job.database.read() as db:
        ids = maps.ids(db, graph.seqs.tolist())
        number = maps.get_shown_drawing(db).number + 1
    places = _places(graph, community, spots)
    named = [(ids[row.entity_seq], row) for row in places if row.entity_seq in ids]
    ties = _ties(graph)
    total = len(named) + len(ties)
    for start in range(0, len(named), PIECE):
        if job.pausing():
            return False
        with job.database.write() as db:
            maps.add_positions(db, number, named[start : start + PIECE])
        job.progress(start, total)
    for start in range(0, len(ties), PIECE):
        if job.pausing():
            return False
        with job.database.write() as db:
            maps.add_ties(db, number, ties[start : start + PIECE])
        job.progress(len(named) + start, total)
    with job.database.write() as db:
        if changes.has_erased(db, generation):
            return False
        maps.show(db, number, job.at)
    return True


def _places(graph: MapGraph, community: Ids, spots: Numbers) -> list[maps.MapPosition]:
    """Return the rows. An entity is central if it is well known and most of its ties are within its community."""
    inside = np.where(community[graph.low] == community[graph.high], graph.weight, 0)
    ends = np.concatenate((graph.low, graph.high))
    own = np.bincount(ends, np.concatenate((inside, inside)), graph.size)
    central = own**2 / np.maximum(graph.strength(), 1e-9) * np.log2(1 + graph.mentions)
    spot = np.round(np.column_stack((spots, entity_radii(graph.mentions))), 1)
    columns = (graph.seqs, *spot.T, community, np.round(central, 4), graph.mentions)
    return [maps.MapPosition(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _ties(graph: MapGraph) -> list[maps.MapTie]:
    columns = (np.arange(len(graph.low)), graph.seqs[graph.low], graph.seqs[graph.high], graph.memories)
    return [maps.MapTie(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
