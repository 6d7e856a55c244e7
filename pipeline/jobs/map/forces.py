"""Where entities stand on the map: within the disc of their community, close to what they are tied to.

Ties pull, everybody pushes everybody away, and the middle of the community holds them together (Fruchterman and
Reingold, "Graph drawing by force-directed placement", 1991). The push is felt on a grid, by convolution (Linderman and
others, "Fast interpolation-based t-SNE", 2019), so that a round costs as much as the map is large and not the square of
it. Units are the pixels of a map that is not zoomed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse

from pipeline.jobs.map.graph import Ids, MapGraph, Numbers
from pipeline.jobs.map.islands import apart, islands, settled

SEED = 7
LEAST_RADIUS, MOST_RADIUS, GROWTH = 2.5, 16.0, 0.8
GAP = 3.0
# The share of a community's disc that its members fill.
FILLED = 0.45
COLD_ROUNDS, WARM_ROUNDS = 200, 80
# Entities first find their places through each other, then they keep apart.
BODILESS = 0.4
SETTLING = 60
PULL, PUSH, GRAVITY, WALL, LOYALTY = 0.06, 12.0, 0.005, 0.3, 0.3
# What is tied to other communities leans towards them, by so much at most.
LEANING = 3.0
FASTEST, SLOWEST, HASTE = 20.0, 1.0, 0.8
CELL = 10.0
REACH = 90.0

Pausing = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Before:
    """The last drawing, by place: where entities stood, with NaN for those that are new, and in which community."""

    place: Numbers
    community: Ids


def radii(mentions: Ids) -> Numbers:
    """Return how large entities are drawn."""
    return np.minimum(LEAST_RADIUS + GROWTH * np.sqrt(mentions - 1), MOST_RADIUS)


def placed(graph: MapGraph, community: Ids, before: Before, pausing: Pausing) -> Numbers | None:
    """Return where entities stand, close to where they stood before; None when asked to pause."""
    names, home = np.unique(community, return_inverse=True)
    radius = radii(graph.mentions)
    discs = np.sqrt(np.bincount(home, (radius + GAP) ** 2) / FILLED) + 2 * GAP
    stays = ~np.isnan(before.place[:, 0]) & (before.community == community)
    start = np.full((len(names), 2), np.nan)
    known = np.bincount(home[stays], minlength=len(names)) > 0
    for axis in (0, 1):
        total = np.bincount(home[stays], before.place[stays, axis], len(names))
        start[known, axis] = total[known] / np.bincount(home[stays], minlength=len(names))[known]
    centre = islands(discs, _between(graph, home, discs), start, pausing)
    if centre is None:
        return None
    # An entity goes along with its community.
    moved = before.place + np.where(stays[:, None], (centre - start)[home], 0)
    first = np.where(stays[:, None], moved, _scattered(graph, home, centre, discs, moved, stays))
    forces = _Forces.of(graph, home, centre, discs, np.where(stays[:, None], first, np.nan))
    rounds = WARM_ROUNDS if stays.sum() > graph.size / 2 else COLD_ROUNDS
    return _rounds(forces, first, radius, rounds, pausing)


def _between(graph: MapGraph, home: Ids, discs: Numbers) -> Numbers:
    """Return how strongly each two communities are tied; large ones have more ties for being large."""
    count = len(discs)
    ties = np.zeros((count, count))
    np.add.at(ties, (home[graph.low], home[graph.high]), graph.weight)
    ties += ties.T
    np.fill_diagonal(ties, 0)
    shared: Numbers = ties / np.sqrt(np.outer(discs, discs))
    return shared


def _scattered(
    graph: MapGraph, home: Ids, centre: Numbers, discs: Numbers, moved: Numbers, stays: NDArray[np.bool_]
) -> Numbers:
    """Return a first place for everybody: beside those of the community whose place is known, else anywhere in it."""
    chance = np.random.default_rng(SEED)
    angle = chance.random(graph.size) * 2 * np.pi
    away = np.sqrt(chance.random(graph.size))[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    inside = home[graph.low] == home[graph.high]
    one = np.concatenate((graph.low[inside], graph.high[inside]))
    other = np.concatenate((graph.high[inside], graph.low[inside]))
    guides = stays[other]
    one, other = one[guides], other[guides]
    count = np.bincount(one, minlength=graph.size)
    guided = np.column_stack(
        [np.bincount(one, moved[other, axis], graph.size) / np.maximum(count, 1) for axis in (0, 1)]
    )
    anywhere = centre[home] + 0.8 * discs[home, None] * away
    places: Numbers = np.where(count[:, None] > 0, guided + 2 * CELL * away, anywhere)
    return places


@dataclass(frozen=True, slots=True)
class _Forces:
    """What moves entities: ties within communities, the push, the middle of the disc, and where they stood before."""

    pull: sparse.csr_matrix
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
        low, high, weight = graph.low[inside], graph.high[inside], graph.weight[inside]
        pull = sparse.csr_matrix(
            (np.concatenate((weight, weight)), (np.concatenate((low, high)), np.concatenate((high, low)))),
            (graph.size, graph.size),
        )
        pulled = np.asarray(pull.sum(axis=1)).reshape(-1)
        usual = pulled.mean() or 1.0
        mass = 0.6 + 0.4 * np.sqrt(pulled / usual)
        lean = _lean(graph, ~inside, home, centre) / usual
        lean /= 1 + np.hypot(lean[:, 0], lean[:, 1])[:, None] / LEANING
        edge = discs[:, None]
        field = _Field.over((centre - edge).min(axis=0), (centre + edge).max(axis=0))
        return cls(pull / usual, (pulled / usual)[:, None], mass, lean, home, centre, discs, stood, field)

    def at(self, place: Numbers) -> Numbers:
        """Return the force on everybody."""
        push = self.field.push(place, self.mass) * (self.mass * PUSH)[:, None]
        # A community as a whole is moved by none of its neighbours.
        count = np.bincount(self.home)
        for axis in (0, 1):
            push[:, axis] -= (np.bincount(self.home, push[:, axis]) / count)[self.home]
        pull = (self.pull @ place - self.pulled * place) * PULL
        off = place - self.centre[self.home]
        distance, edge = np.hypot(off[:, 0], off[:, 1]), self.discs[self.home]
        beyond = np.maximum(0, 1 - edge / np.maximum(distance, 1e-6))
        hold = off * (GRAVITY * (0.5 + 0.5 * (distance / edge) ** 2) + WALL * beyond)[:, None]
        loyal = np.where(np.isnan(self.stood), 0, (self.stood - place) * LOYALTY)
        force: Numbers = push + pull - hold + self.lean + loyal
        return force


def _lean(graph: MapGraph, across: NDArray[np.bool_], home: Ids, centre: Numbers) -> Numbers:
    """Return in which direction, and how much, ties to other communities pull everybody."""
    low, high, weight = graph.low[across], graph.high[across], graph.weight[across]
    way = centre[home[high]] - centre[home[low]]
    way *= (weight / np.maximum(np.hypot(way[:, 0], way[:, 1]), 1e-6))[:, None]
    ends = np.concatenate((low, high))
    both = np.concatenate((way, -way))
    lean: Numbers = np.column_stack([np.bincount(ends, both[:, axis], graph.size) for axis in (0, 1)])
    return lean


def _rounds(forces: _Forces, place: Numbers, radius: Numbers, rounds: int, pausing: Pausing) -> Numbers | None:
    for step in range(rounds):
        if pausing():
            return None
        force = forces.at(place)
        fastest = SLOWEST + FASTEST * (1 - step / rounds)
        strength = np.maximum(np.hypot(force[:, 0], force[:, 1]), 1e-9)
        place = place + force * np.minimum(HASTE, fastest / strength)[:, None]
        if step >= BODILESS * rounds:
            place, _ = apart(place, radius, GAP)
    return settled(place, radius, GAP, SETTLING)


@dataclass(frozen=True, slots=True)
class _Field:
    """A grid over the map, and the transforms of what one entity pushes the others with."""

    corner: Numbers
    shape: tuple[int, int]
    size: tuple[int, int]
    across: NDArray[np.complex128]
    along: NDArray[np.complex128]

    @classmethod
    def over(cls, low: Numbers, high: Numbers) -> "_Field":
        columns, rows = (int(cells) + 6 for cells in np.ceil((high - low) / CELL))
        margin = int(3 * REACH / CELL)
        size = (fft.next_fast_len(rows + margin, real=True), fft.next_fast_len(columns + margin, real=True))
        y, x = (np.fft.fftfreq(length, 1 / length) * CELL for length in size)
        square = x[None, :] ** 2 + y[:, None] ** 2
        # Like charges, but not beyond their reach, and not without bound for two on one spot.
        share = np.exp(-square / REACH**2) / (square + (0.8 * CELL) ** 2)
        across, along = fft.rfft2(x[None, :] * share), fft.rfft2(y[:, None] * share)
        return cls(low - 2 * CELL, (rows, columns), size, across, along)

    def push(self, place: Numbers, mass: Numbers) -> Numbers:
        """Return how hard everybody is pushed by all others."""
        rows, columns = self.shape
        at = np.clip((place - self.corner) / CELL, 0, np.array((columns, rows)) - 1.001)
        cell = at.astype(np.int64)
        x, y = (at - cell).T
        corners = [
            ((cell[:, 1] + down) * columns + cell[:, 0] + right, (x if right else 1 - x) * (y if down else 1 - y))
            for right in (0, 1)
            for down in (0, 1)
        ]
        spread = sum(np.bincount(where, share * mass, rows * columns) for where, share in corners)
        waves = fft.rfft2(np.reshape(spread, self.shape), self.size)
        fields = (
            fft.irfft2(waves * kernel, self.size)[:rows, :columns].ravel() for kernel in (self.across, self.along)
        )
        return np.column_stack([sum(share * field[where] for where, share in corners) for field in fields])
