"""Dense search: cosines of a query vector to every memory, and to a memory in the context of its neighbors.

Up to a number of passages, the vectors are mapped with eight bits per dimension, and all are scored: for a million
passages that is faster than LanceDB's index, and exact. Beyond it, LanceDB's ANN index answers; a process below the
limit never loads LanceDB. Arrays are indexed by row number.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from pipeline.index.codes import PassageCodes, Position, StoredCodes, Vector, quantize_rows, row_lengths
from pipeline.index.encoder import baseline, nearest
from pipeline.index.row_arrays import Floats, Seqs, best_positions, mask_scores, values_at
from pipeline.index.vectors import MOST_EXACT, VectorTable
from pipeline.kernel.errors import IndexUnavailable, ReverieError, StorageUnreachable

NEIGHBOUR_SHARE = 0.5
EXACT_ROWS = MOST_EXACT
PATIENCE_S = 0.02


class PassageVectors(Protocol):
    """A source of the vectors of memories."""

    def first_passages(self, seqs: Seqs) -> Vector:
        """Return the vectors of memories' first passages, zeros if there is none; shape (len(seqs), dimension)."""


class ContextLengths:
    """The lengths of context vectors, cached as long as a memory's neighbors stay the same."""

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._lengths = np.zeros(size, np.float32)
        self._before = np.zeros(size, np.int64)
        self._after = np.zeros(size, np.int64)

    def without(self, changed: Seqs, size: int) -> "ContextLengths":
        """Return the cache for `size` memories, without entries that involve a changed memory."""
        lengths = ContextLengths(size)
        with self._lock:
            count = min(size, len(self._lengths))
            lengths._before[:count], lengths._after[:count] = self._before[:count], self._after[:count]
            parts = (np.arange(count), lengths._before[:count], lengths._after[:count])
            lost = np.logical_or.reduce([np.isin(part, changed) for part in parts])
            lengths._lengths[:count] = np.where(lost, 0, self._lengths[:count])
        return lengths

    def of(self, vectors: PassageVectors, seqs: Seqs, before: Seqs, after: Seqs) -> Floats:
        """Return the lengths for memories and their neighbors; compute the missing ones from the vectors."""
        with self._lock:
            lengths: Floats = values_at(self._lengths, seqs)
            known = (values_at(self._before, seqs) == before) & (values_at(self._after, seqs) == after) & (lengths > 0)
        if known.all():
            return lengths
        missing = np.flatnonzero(~known)
        fresh = row_lengths(_contexts(vectors, seqs[missing], before[missing], after[missing]))
        lengths[missing] = fresh
        in_range = seqs[missing] < len(self._lengths)
        cacheable = seqs[missing][in_range]
        with self._lock:
            self._lengths[cacheable] = fresh[in_range]
            self._before[cacheable], self._after[cacheable] = before[missing][in_range], after[missing][in_range]
        return lengths


@dataclass(frozen=True, slots=True)
class CachedScores:
    """Cached cosines of all first passages, and lengths of context vectors."""

    firsts: Floats
    contexts: ContextLengths


@dataclass(frozen=True, slots=True)
class DenseScores:
    """The scores of a query vector: the best cosine of each memory's passages, 0 for a memory without passages.

    `held` is set if all vectors are in memory, `baseline` is the cosine of unrelated texts, `background_similarity`
    the closeness of the nearest background message. `settled` means that everything embedded by then was included.
    """

    query: Vector
    cosines: Floats
    vectors: PassageVectors
    held: CachedScores | None
    baseline: float
    background_similarity: float
    settled: bool = True

    @property
    def by_row(self) -> Floats:
        """Return the score of every row number."""
        return self.cosines

    def top(self, limit: int, allowed: NDArray[np.bool_] | None = None) -> Seqs:
        """Return the row numbers of the best cosines above zero, best first; ties go to the older memory."""
        return best_positions(mask_scores(self.cosines, allowed), limit)

    def of(self, seqs: Seqs) -> Floats:
        """Return the cosines of given memories, 0 for memories without one."""
        return values_at(self.cosines, seqs)

    def embedded(self, seqs: Seqs) -> NDArray[np.bool_]:
        """Return which of the given memories have a vector."""
        has_vector: NDArray[np.bool_] = self.of(seqs) != 0
        if self.held is None:
            # Only the nearest were scored.
            has_vector[~has_vector] = self.vectors.first_passages(seqs[~has_vector]).any(axis=1)
        return has_vector

    def closeness(self, cosines: Floats) -> Floats:
        """Return cosines on a scale with unrelated texts at 0 and equal texts at 1, for any encoder."""
        scaled = (cosines - self.baseline) / (1 - self.baseline)
        # A memory without a vector is not known to be unrelated.
        return np.where(cosines == 0, 0, scaled).astype(np.float32)

    def in_context(self, seqs: Seqs, before: Seqs, after: Seqs) -> Floats:
        """Return the cosines to each memory's vector plus half of its neighbors' (row number 0 for no neighbor)."""
        if self.held is None:
            context = _contexts(self.vectors, seqs, before, after)
            products, lengths = context @ self.query, row_lengths(context)
        else:
            neighbours = values_at(self.held.firsts, before) + values_at(self.held.firsts, after)
            products = values_at(self.held.firsts, seqs) + NEIGHBOUR_SHARE * neighbours
            lengths = self.held.contexts.of(self.vectors, seqs, before, after)
        return cast(Floats, (products / np.maximum(lengths, 1e-9)).astype(np.float32))


@dataclass(frozen=True, slots=True)
class MemoryVectors:
    """Passage vectors: eight-bit codes in the order of their file, and each memory's latest passages among them.

    `rows`, `seqs` and `scales` are the passages' places among the codes, their memories and scales, ordered by memory.
    """

    stored: StoredCodes
    rows: Seqs
    seqs: Seqs
    scales: Floats
    starts: Seqs
    memories: Seqs
    contexts: ContextLengths

    def cosines(self, query: Vector) -> tuple[Floats, Floats]:
        """Return by row number the best cosine of each memory's passages, and that of its first."""
        import numkong

        best = np.zeros(int(self.memories[-1]) + 1 if len(self.memories) else 0, np.float32)
        if not len(self.memories):
            return best, best
        code, scale = quantize_rows(query[None])
        products = np.asarray(numkong.cdist(code, self.stored.codes, metric="dot"))[0][self.rows]
        cosines = (products * self.scales).astype(np.float32) * scale[0]
        if len(self.memories) == len(cosines):
            best[self.memories] = cosines
            return best, best
        firsts = np.zeros_like(best)
        best[self.memories], firsts[self.memories] = np.maximum.reduceat(cosines, self.starts), cosines[self.starts]
        return best, firsts

    def first_passages(self, seqs: Seqs) -> Vector:
        """Return the vectors of memories' first passages, zeros if there is none."""
        if not len(self.memories):
            return np.zeros((len(seqs), self.stored.codes.shape[1]), np.float32)
        at = np.searchsorted(self.memories, seqs).clip(max=len(self.memories) - 1)
        passages = self.starts[at]
        scales = np.where(self.memories[at] == seqs, self.scales[passages], 0).astype(np.float32)
        return cast(Vector, self.stored.codes[self.rows[passages]] * scales[:, None])


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Passage vectors in their table, and those that a search has read."""

    table: VectorTable
    known: dict[int, Vector] = field(default_factory=dict)

    def cosines(self, query: Vector, limit: int, only: Sequence[int] | None) -> Floats:
        """Return the cosines of the nearest memories by row number; the others have none."""
        nearest = self.table.nearest(query, limit, only)
        by_row = np.zeros(max((seq for seq, _ in nearest), default=-1) + 1, np.float32)
        for seq, cosine in nearest:
            by_row[seq] = max(by_row[seq], cosine)
        return by_row

    def first_passages(self, seqs: Seqs) -> Vector:
        """Return the vectors of memories' first passages, zeros if there is none."""
        listed = seqs.tolist()
        if missing := [seq for seq in listed if seq not in self.known]:
            self.known.update(dict.fromkeys(missing, np.zeros(self.table.dimension, np.float32)))
            rows = self.table.vectors(missing)
            # The first passage of a memory comes last, and remains.
            self.known.update(zip(rows.seqs[::-1].tolist(), rows.matrix[::-1], strict=True))
        vectors = np.zeros((len(listed), self.table.dimension), np.float32)
        for number, seq in enumerate(listed):
            vectors[number] = self.known[seq]
        return vectors


class DenseIndex:
    """Score memories by cosine: exactly in memory up to a number of passages, beyond it by LanceDB's index.

    `on_lost` is called if the codes for exact search are missing or not available now.
    """

    def __init__(
        self,
        table: VectorTable,
        exact_rows: int,
        background: Vector,
        on_lost: Callable[[ReverieError], object] = lambda _error: None,
    ) -> None:
        self._table = table
        self._on_lost = on_lost
        self._background = background
        self._baseline = baseline(background)
        self._exact_rows = exact_rows
        self._lock = threading.Lock()
        self._generation = (-1, -1)
        self._held: MemoryVectors | None = None
        self._position: Position | None = None
        self._is_lost = False
        self._refresher = ThreadPoolExecutor(1, thread_name_prefix="refresh-vectors")
        self._refreshing: Future[None] | None = None

    def search(
        self, query: Vector, generation: tuple[int, int], limit: int, only: Sequence[int] | None = None
    ) -> DenseScores:
        """Score against the table at a generation: (epoch, stamp); a new epoch means that rows were removed."""
        held = self._current(generation)
        if generation[1] and (self._is_lost or (held is not None and not self._table.has_codes())):
            self._on_lost(IndexUnavailable("vectors: the file of codes cannot be read"))
        background_similarity = (nearest(self._background, query) - self._baseline) / (1 - self._baseline)
        if held is not None:
            settled = generation <= self._generation
            cosines, firsts = held.cosines(query)
            scores = CachedScores(firsts, held.contexts)
            return DenseScores(query, cosines, held, scores, self._baseline, background_similarity, settled)
        stored = StoredVectors(self._table)
        return DenseScores(
            query, stored.cosines(query, limit, only), stored, None, self._baseline, background_similarity
        )

    def find_near(self, vector: Vector, generation: tuple[int, int], limit: int) -> tuple[Seqs, Floats]:
        """Return the memories nearest to a passage, best first, and their cosines, at a generation."""
        held = self._current(generation)
        cosines = StoredVectors(self._table).cosines(vector, limit, None) if held is None else held.cosines(vector)[0]
        seqs = best_positions(cosines, limit)
        return seqs, cosines[seqs]

    def refresh(self, generation: tuple[int, int]) -> None:
        """Read newly embedded passages, up to a generation."""
        with self._lock:
            if generation <= self._generation:
                return
            # Read from the start if rows were removed or nothing is in memory.
            known = self._position if self._held is not None and generation[0] == self._generation[0] else None
            rows = self._read_codes(known)
            if rows is None:
                self._held = self._position = None
            else:
                self._held = _take_in(self._held, rows)
                self._position = rows.position
            self._generation = generation

    def _read_codes(self, known: Position | None) -> PassageCodes | None:
        """Return the passages since a position, None if LanceDB has to answer, and note whether the file is lost."""
        try:
            rows = self._table.read_codes(known, self._exact_rows)
        except IndexUnavailable as error:
            if error.part != "codes":
                raise
            self._is_lost = True
            return None
        self._is_lost = rows is not None and rows.position is None
        return rows

    def _forget(self, cut: MemoryVectors) -> None:
        """Forget codes whose file was cut off, so that the next refresh reads everything again."""
        with self._lock:
            if self._held is cut:
                self._held, self._position, self._generation = None, None, (-1, -1)

    def close(self) -> None:
        """Stop the refresh thread."""
        self._refresher.shutdown(wait=False, cancel_futures=True)

    def _current(self, generation: tuple[int, int]) -> MemoryVectors | None:
        held = self._held
        if held is not None and not held.stored.are_whole():
            # Reading it to its end would kill the process.
            self._forget(held)
        if generation[0] > self._generation[0] or self._held is None:
            self.refresh(generation)
        elif generation > self._generation:
            # Workers embed all the time: a search waits briefly for their newest vectors, and then does without.
            self._await_refresh(generation)
        return self._held

    def _await_refresh(self, generation: tuple[int, int]) -> None:
        refreshing = self._refreshing
        # The next search reports a refresh that failed after its search.
        if refreshing is None or (refreshing.done() and refreshing.exception() is None):
            refreshing = self._refreshing = self._refresher.submit(self.refresh, generation)
        try:
            with suppress(TimeoutError):
                refreshing.result(timeout=PATIENCE_S)
        except StorageUnreachable as error:
            # The data in memory is still correct for most memories: every hit is checked against the store.
            self._refreshing = None
            self._on_lost(error)
        except Exception:
            self._refreshing = None
            raise


def _contexts(vectors: PassageVectors, seqs: Seqs, before: Seqs, after: Seqs) -> Vector:
    everyone, inverse = np.unique(np.concatenate((seqs, before, after)), return_inverse=True)
    own, previous, following = np.split(vectors.first_passages(everyone)[inverse], 3)
    return cast(Vector, own + NEIGHBOUR_SHARE * (previous + following))


def _take_in(held: MemoryVectors | None, new: PassageCodes) -> MemoryVectors:
    """Return the vectors with newly read passages, which replace those of their memories."""
    rows = np.flatnonzero(new.are_latest())
    seqs, scales = new.seqs[rows], new.scales[rows]
    stored = new.stored or StoredCodes(new.codes)
    old = held if new.continues else None
    if old is not None:
        if not len(seqs):
            return old
        unchanged = ~np.isin(old.seqs, seqs)
        rows = np.concatenate([old.rows[unchanged], rows + (len(stored.codes) - len(new.seqs))])
        seqs, scales = np.concatenate([old.seqs[unchanged], seqs]), np.concatenate([old.scales[unchanged], scales])
    order = np.argsort(seqs, kind="stable")
    memories, starts = np.unique(seqs[order], return_index=True)
    size = int(memories.max(initial=-1)) + 1
    contexts = ContextLengths(size) if old is None else old.contexts.without(new.seqs, size)
    return MemoryVectors(stored, rows[order], seqs[order], scales[order], starts.astype(np.int64), memories, contexts)
