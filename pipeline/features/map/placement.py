"""Position entities on the map: within the disc of their community, near the entities that they are tied to.

Ties attract, all entities repel each other, and the centre of the community attracts its members (Fruchterman and
Reingold, "Graph drawing by force-directed placement", 1991). The repulsion is computed on a grid, by convolution
(Linderman and others, "Fast interpolation-based t-SNE", 2019), so that the cost of a round grows with the size of the
map and not with its square. Communities are discs that do not overlap; tied ones are close together. Units are the
pixels of a map without zoom.
"""

from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from pipeline.features.map.graph import Ids, MapGraph, Numbers, Pausing


@dataclass(frozen=True, slots=True)
class Ties:
    """Weighted ties between points, each in both directions."""

    first: Ids
    second: Ids
    weight: Numbers
    size: int

    @classmethod
    def between(cls, low: Ids, high: Ids, weight: Numbers, size: int) -> Self:
        """Return ties for pairs that are listed once."""
        ends = np.concatenate((low, high)), np.concatenate((high, low))
        return cls(*ends, np.concatenate((weight, weight)), size)

    def totals(self) -> Numbers:
        """Return the weight of each point's ties; shape (size,)."""
        return cast(Numbers, np.bincount(self.first, self.weight, self.size).astype(np.float64))

    def sum_over(self, spots: Numbers) -> Numbers:
        """Return the weighted sum of the coordinates of each point's neighbors; shape (size, 2)."""
        weighted = (self.weight * spots[self.second, axis] for axis in (0, 1))
        return np.column_stack([np.bincount(self.first, values, self.size) for values in weighted])


def find_close_pairs(points: Numbers, reach: float) -> tuple[Ids, Ids]:
    """Return all pairs of points within a distance, each once, and some that are up to three times as far apart."""
    cell = np.floor(points / reach).astype(np.int64)
    cell -= cell.min(axis=0, initial=np.iinfo(np.int64).max)
    # Two spare columns separate the ends of rows.
    columns = int(cell[:, 0].max(initial=0)) + 3
    number = cell[:, 1] * columns + cell[:, 0]
    order = np.argsort(number, kind="stable")
    number = number[order]
    place = np.arange(len(points))
    firsts, seconds = [], []
    # A cell with itself and with the half of its neighbors that come after it.
    for offset in (0, 1, columns - 1, columns, columns + 1):
        start = place + 1 if offset == 0 else np.searchsorted(number, number + offset, "left")
        count = np.searchsorted(number, number + offset, "right") - start
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        firsts.append(order[np.repeat(place, count)])
        seconds.append(order[np.repeat(start, count) + within])
    return np.concatenate(firsts), np.concatenate(seconds)


def find_fast_length(least: int) -> int:
    """Return the smallest even length from `least` on whose Fourier transform is fast: a product of 2, 3 and 5."""
    length = least + least % 2
    while not _is_fast(length):
        length += 2
    return length


def _is_fast(length: int) -> bool:
    for factor in (2, 3, 5):
        while length % factor == 0:
            length //= factor
    return length == 1


SEED = 7
LEAST_RADIUS, MOST_RADIUS, GROWTH = 2.5, 16.0, 0.8
GAP = 3.0
# The share of a community's disc that its members fill.
FILLED = 0.45
COLD_ROUNDS, WARM_ROUNDS = 200, 80
# In this share of the rounds entities may overlap; afterwards they are pushed apart.
BODILESS = 0.4
SETTLING = 60
PULL, PUSH, GRAVITY, WALL, LOYALTY = 0.06, 12.0, 0.005, 0.3, 0.3
# Largest pull of an entity's ties to other communities.
LEANING = 3.0
FASTEST, SLOWEST, HASTE = 20.0, 1.0, 0.8
CELL = 10.0
REACH = 90.0
# Communities, as discs.
DISC_ROUNDS = 300
DISC_SETTLING = 200
DISC_PULL, DISC_GRAVITY, DISC_LOYALTY, DISC_DRIFT = 0.25, 0.03, 0.3, 0.05
# Gap between discs, as a share of their mean radius.
SHORE = 0.25
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
# An entity that several others push moves by this share of the mean push.
YIELDING = 0.7


@dataclass(frozen=True, slots=True)
class Before:
    """The last map, by position in the graph: coordinates, NaN for new entities, and community."""

    place: Numbers
    community: Ids


def entity_radii(mentions: Ids) -> Numbers:
    """Return the radii with which entities are drawn."""
    return np.minimum(LEAST_RADIUS + GROWTH * np.sqrt(mentions - 1), MOST_RADIUS)


def place_entities(graph: MapGraph, community: Ids, before: Before, pausing: Pausing) -> Numbers | None:
    """Return the coordinates of entities, close to those before; None when asked to pause."""
    names, home = np.unique(community, return_inverse=True)
    radius = entity_radii(graph.mentions)
    discs = np.sqrt(np.bincount(home, (radius + GAP) ** 2) / FILLED) + 2 * GAP
    stays = ~np.isnan(before.place[:, 0]) & (before.community == community)
    start = np.full((len(names), 2), np.nan)
    known = np.bincount(home[stays], minlength=len(names)) > 0
    for axis in (0, 1):
        total = np.bincount(home[stays], before.place[stays, axis], len(names))
        start[known, axis] = total[known] / np.bincount(home[stays], minlength=len(names))[known]
    centre = place_discs(discs, _sum_ties(graph, home, discs), start, pausing)
    if centre is None:
        return None
    # An entity moves with its community.
    moved = before.place + np.where(stays[:, None], (centre - start)[home], 0)
    first = np.where(stays[:, None], moved, _scatter(graph, home, centre, discs, moved, stays))
    forces = _Forces.of(graph, home, centre, discs, np.where(stays[:, None], first, np.nan))
    rounds = WARM_ROUNDS if stays.sum() > graph.size / 2 else COLD_ROUNDS
    return _run_rounds(forces, first, radius, rounds, pausing)


def _sum_ties(graph: MapGraph, home: Ids, discs: Numbers) -> Numbers:
    """Return how strongly each two communities are tied, relative to their size."""
    count = len(discs)
    ties = np.zeros((count, count))
    np.add.at(ties, (home[graph.low], home[graph.high]), graph.weight)
    ties += ties.T
    np.fill_diagonal(ties, 0)
    return ties / np.sqrt(np.outer(discs, discs))


def _scatter(
    graph: MapGraph, home: Ids, centre: Numbers, discs: Numbers, moved: Numbers, stays: NDArray[np.bool_]
) -> Numbers:
    """Return initial coordinates: near tied members of the community that have some, else anywhere in its disc."""
    chance = np.random.default_rng(SEED)
    angle = chance.random(graph.size) * 2 * np.pi
    away = np.sqrt(chance.random(graph.size))[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    inside = home[graph.low] == home[graph.high]
    first = np.concatenate((graph.low[inside], graph.high[inside]))
    second = np.concatenate((graph.high[inside], graph.low[inside]))
    guides = stays[second]
    first, second = first[guides], second[guides]
    count = np.bincount(first, minlength=graph.size)
    guided = np.column_stack(
        [np.bincount(first, moved[second, axis], graph.size) / np.maximum(count, 1) for axis in (0, 1)]
    )
    anywhere = centre[home] + 0.8 * discs[home, None] * away
    return cast(Numbers, np.where(count[:, None] > 0, guided + 2 * CELL * away, anywhere))


@dataclass(frozen=True, slots=True)
class _Forces:
    """The forces on entities: ties in communities, repulsion, the centre of the disc, and the last coordinates."""

    pull: Ties
    pulled: Numbers
    mass: Numbers
    lean: Numbers
    home: Ids
    centre: Numbers
    discs: Numbers
    stood: Numbers
    field: "_Field"

    @classmethod
    def of(cls, graph: MapGraph, home: Ids, centre: Numbers, discs: Numbers, stood: Numbers) -> "_Forces":
        inside = home[graph.low] == home[graph.high]
        pull = Ties.between(graph.low[inside], graph.high[inside], graph.weight[inside], graph.size)
        pulled = pull.totals()
        usual = pulled.mean() or 1.0
        mass = 0.6 + 0.4 * np.sqrt(pulled / usual)
        lean = _lean_outwards(graph, ~inside, home, centre) / usual
        lean /= 1 + np.hypot(lean[:, 0], lean[:, 1])[:, None] / LEANING
        edge = discs[:, None]
        field = _Field.over((centre - edge).min(axis=0), (centre + edge).max(axis=0))
        pull = replace(pull, weight=pull.weight / usual)
        return cls(pull, (pulled / usual)[:, None], mass, lean, home, centre, discs, stood, field)

    def at(self, spots: Numbers) -> Numbers:
        """Return the force on each entity."""
        push = self.field.push(spots, self.mass) * (self.mass * PUSH)[:, None]
        # Neighbours must not move a community as a whole.
        count = np.bincount(self.home)
        for axis in (0, 1):
            push[:, axis] -= (np.bincount(self.home, push[:, axis]) / count)[self.home]
        pull = (self.pull.sum_over(spots) - self.pulled * spots) * PULL
        off = spots - self.centre[self.home]
        distance, edge = np.hypot(off[:, 0], off[:, 1]), self.discs[self.home]
        beyond = np.maximum(0, 1 - edge / np.maximum(distance, 1e-6))
        hold = off * (GRAVITY * (0.5 + 0.5 * (distance / edge) ** 2) + WALL * beyond)[:, None]
        loyal = np.where(np.isnan(self.stood), 0, (self.stood - spots) * LOYALTY)
        return push + pull - hold + self.lean + loyal


def _lean_outwards(graph: MapGraph, across: NDArray[np.bool_], home: Ids, centre: Numbers) -> Numbers:
    """Return the direction and strength with which ties to other communities pull each entity."""
    low, high, weight = graph.low[across], graph.high[across], graph.weight[across]
    way = centre[home[high]] - centre[home[low]]
    way *= (weight / np.maximum(np.hypot(way[:, 0], way[:, 1]), 1e-6))[:, None]
    ends = np.concatenate((low, high))
    both = np.concatenate((way, -way))
    return cast(Numbers, np.column_stack([np.bincount(ends, both[:, axis], graph.size) for axis in (0, 1)]))


def _run_rounds(forces: _Forces, spots: Numbers, radius: Numbers, rounds: int, pausing: Pausing) -> Numbers | None:
    for step in range(rounds):
        if pausing():
            return None
        force = forces.at(spots)
        fastest = SLOWEST + FASTEST * (1 - step / rounds)
        strength = np.maximum(np.hypot(force[:, 0], force[:, 1]), 1e-9)
        spots = spots + force * np.minimum(HASTE, fastest / strength)[:, None]
        if step >= BODILESS * rounds:
            spots, _ = push_apart(spots, radius, GAP)
    return separate_discs(spots, radius, GAP, SETTLING)


@dataclass(frozen=True, slots=True)
class _Field:
    """A grid over the map, and the transforms of the repulsion of one entity."""

    corner: Numbers
    shape: tuple[int, int]
    size: tuple[int, int]
    across: NDArray[np.complex128]
    along: NDArray[np.complex128]

    @classmethod
    def over(cls, low: Numbers, high: Numbers) -> "_Field":
        columns, rows = (int(cells) + 6 for cells in np.ceil((high - low) / CELL))
        margin = int(3 * REACH / CELL)
        size = (find_fast_length(rows + margin), find_fast_length(columns + margin))
        y, x = (np.fft.fftfreq(length, 1 / length) * CELL for length in size)
        square = x[None, :] ** 2 + y[:, None] ** 2
        # Repulsion like that of charges, but with a limited reach, and limited for two entities at the same point.
        share = np.exp(-square / REACH**2) / (square + (0.8 * CELL) ** 2)
        across, along = np.fft.rfft2(x[None, :] * share), np.fft.rfft2(y[:, None] * share)
        return cls(low - 2 * CELL, (rows, columns), size, across, along)

    def push(self, spots: Numbers, mass: Numbers) -> Numbers:
        """Return the repulsion on each entity by all others."""
        rows, columns = self.shape
        at = np.clip((spots - self.corner) / CELL, 0, np.array((columns, rows)) - 1.001)
        cell = at.astype(np.int64)
        x, y = (at - cell).T
        corners = [
            ((cell[:, 1] + down) * columns + cell[:, 0] + right, (x if right else 1 - x) * (y if down else 1 - y))
            for right in (0, 1)
            for down in (0, 1)
        ]
        spread = sum(np.bincount(where, share * mass, rows * columns) for where, share in corners)
        waves = np.fft.rfft2(np.reshape(spread, self.shape), self.size)
        fields = (
            np.fft.irfft2(waves * kernel, self.size)[:rows, :columns].ravel() for kernel in (self.across, self.along)
        )
        return np.column_stack([sum(share * field[where] for where, share in corners) for field in fields])


def place_discs(radius: Numbers, ties: Numbers, start: Numbers, pausing: Pausing) -> Numbers | None:
    """Return the centres of discs; None when asked to pause.

    `ties` are the strengths between each two discs, `start` the centres of the last map, with NaN for new discs.
    """
    known = ~np.isnan(start[:, 0])
    centre = np.where(known[:, None], start, _sunflower(len(radius)) * 2 * np.median(radius))
    first, second = np.nonzero(ties)
    pull = Ties(first, second, ties[first, second] / max(ties.sum(axis=1).max(), 1e-9), len(radius))
    whole = pull.totals()[:, None]
    gap = SHORE * radius.mean()
    for step in range(DISC_ROUNDS):
        if pausing():
            return None
        heat = 1 - step / DISC_ROUNDS
        drift = (pull.sum_over(centre) - whole * centre) * DISC_PULL - centre * DISC_GRAVITY
        # Existing discs hardly move, but close gaps.
        home = (start - centre) * DISC_LOYALTY + drift * DISC_DRIFT
        centre = centre + np.where(known[:, None], home, drift) * heat
        for _ in range(2):
            centre, _ = push_apart(centre, radius, gap)
    centre = separate_discs(centre, radius, gap, DISC_SETTLING)
    # A new disc may push all others aside: shift the map back so that its centre stays.
    return centre - (centre - start)[known].mean(axis=0) if known.any() else centre


def separate_discs(centres: Numbers, radius: Numbers, gap: float, rounds: int) -> Numbers:
    """Return coordinates at which no two discs overlap by a unit or more, if that is reached within the rounds."""
    for _ in range(rounds):
        centres, overlap = push_apart(centres, radius, gap)
        if overlap < 1:
            break
    return centres


def push_apart(centres: Numbers, radius: Numbers, gap: float) -> tuple[Numbers, float]:
    """Push discs apart that are closer than a gap, the smaller one further; return the largest overlap."""
    first, second = find_close_pairs(centres, 2 * radius.max() + gap)
    way = centres[first] - centres[second]
    distance = np.hypot(way[:, 0], way[:, 1])
    lack = radius[first] + radius[second] + gap - distance
    close = lack > 1e-3
    if not close.any():
        return centres, 0.0
    first, second, way, distance, lack = first[close], second[close], way[close], distance[close], lack[close]
    # Two discs at the same point move apart in a direction derived from their numbers.
    angle = GOLDEN_ANGLE * (first + second)
    direction = np.where(
        distance[:, None] > 1e-6,
        way / np.maximum(distance, 1e-6)[:, None],
        np.column_stack((np.cos(angle), np.sin(angle))),
    )
    yields = (radius[second] ** 2 / (radius[first] ** 2 + radius[second] ** 2))[:, None]
    push = direction * lack[:, None]
    ends = np.concatenate((first, second))
    shift = np.concatenate((push * yields, -push * (1 - yields)))
    crowd = np.sqrt(np.maximum(np.bincount(ends, minlength=len(centres)), 1))
    moved = [np.bincount(ends, shift[:, axis], len(centres)) / crowd for axis in (0, 1)]
    return centres + YIELDING * np.column_stack(moved), float(lack.max())


def _sunflower(count: int) -> Numbers:
    """Return points that fill a disc evenly, from the middle outwards."""
    number = np.arange(count)
    angle = number * GOLDEN_ANGLE
    return cast(Numbers, np.sqrt(number + 0.5)[:, None] * np.column_stack((np.cos(angle), np.sin(angle))))
