"""Arrays by row number, shared by indexes and ranking: sessions, and ranking data other than relevance."""

import bisect
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from sqlite3 import Connection
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pipeline.kernel.records import Kind
from pipeline.kernel.store import changes, memories
from pipeline.text.tokens import speaker_of

Seqs = NDArray[np.int64]
Floats = NDArray[np.float32]
# Lists (row number, session, time or role) of the documents after a row number, up to a number.
ListAfter = Callable[[Connection, int, int], list[tuple[int, str | None, str]]]

PAGE = 20_000
FIRST_CAPACITY = 1024
# The session of row numbers without a memory.
NOBODY = 0
NO_ROWS: Seqs = np.empty(0, np.int64)
# 0 is no memory.
KIND_NUMBERS: Mapping[str, int] = {kind: number for number, kind in enumerate(Kind, 1)}


def values_at(values: NDArray[Any], seqs: Seqs) -> NDArray[Any]:
    """Return the values at row numbers, 0 beyond the end."""
    try:
        # Indexing checks the bounds anyway: on a pool of candidates, looking for the maximum takes longer than this.
        return values[seqs]
    except IndexError:
        if not len(values):
            return np.zeros(seqs.shape, values.dtype)
        return np.where(seqs < len(values), values[np.minimum(seqs, len(values) - 1)], values.dtype.type(0))


def merge_rows(parts: Sequence[Seqs]) -> Seqs:
    """Return the different row numbers of several arrays, ascending."""
    rows = np.concatenate([NO_ROWS, *parts])
    rows.sort()
    # For few numbers, several times as fast as np.unique.
    return rows[np.diff(rows, prepend=-1) > 0]


def flag_members(seqs: Seqs, members: Collection[int] | Seqs) -> NDArray[np.bool_]:
    """Return which of some ascending row numbers are among a few members."""
    flags = np.zeros(len(seqs), np.bool_)
    if len(members) and len(seqs):
        wanted = members if isinstance(members, np.ndarray) else np.fromiter(members, np.int64, len(members))
        at = np.searchsorted(seqs, wanted).clip(max=len(seqs) - 1)
        flags[at[seqs[at] == wanted]] = True
    return flags


def look_up(values: Mapping[int, float], seqs: Seqs, dtype: type[np.generic] = np.float32) -> NDArray[Any]:
    """Return the values of some ascending row numbers, 0 for those without a value."""
    found = np.zeros(len(seqs), dtype)
    if values and len(seqs):
        known = np.fromiter(values, np.int64, len(values))
        at = np.searchsorted(seqs, known).clip(max=len(seqs) - 1)
        is_there = seqs[at] == known
        found[at[is_there]] = np.array(list(values.values()), dtype)[is_there]
    return found


def mask_scores(scores: Floats, allowed: NDArray[np.bool_] | None) -> Floats:
    """Return the scores with 0 for every row number that is not allowed."""
    if allowed is None:
        return scores
    known = scores[: len(allowed)]
    masked = np.zeros_like(scores)
    np.copyto(masked[: len(known)], known, where=allowed[: len(known)])
    return masked


def best_positions(scores: Floats, limit: int) -> Seqs:
    """Return the positions of the largest scores above zero, largest first; ties go to the lower position."""
    chosen = scores > 0
    if np.count_nonzero(chosen) > limit:
        # Include ties, so that age and not memory layout decides between them.
        chosen = scores >= np.partition(scores, -limit)[-limit]
    positive = np.flatnonzero(chosen)
    return positive[np.lexsort((positive, -scores[positive]))][:limit]


class SessionNumbers:
    """The session of each document, updated from the store.

    A document without a session is a session by itself. Arrays are indexed by row number.
    """

    def __init__(self, list_after: ListAfter = memories.after) -> None:
        self._list_after = list_after
        self._lock = threading.Lock()
        self._last_seq = 0
        self._numbers: dict[str, int] = {}
        self._ids: list[str | None] = [None]
        self._session_of = np.zeros(FIRST_CAPACITY, np.int32)

    def refresh(self, db: Connection) -> None:
        """Read the documents since the last call."""
        with self._lock:
            while rows := self._list_after(db, self._last_seq, PAGE):
                self._grow(rows[-1][0] + 1)
                for seq, session, occurred_at in rows:
                    self._add(seq, session, occurred_at)
                self._last_seq = rows[-1][0]

    def numbers(self) -> NDArray[np.int32]:
        """Return the session number of every row number so far."""
        with self._lock:
            return self._session_of[: self._last_seq + 1]

    def sessions(self, seqs: Seqs) -> NDArray[np.int32]:
        """Return the session numbers of documents."""
        return values_at(self._session_of, seqs)

    def id_of(self, number: int) -> str | None:
        """Return the id of a session, None for a document without a session."""
        return self._ids[number]

    def _add(self, seq: int, session: str | None, _at: str) -> int:
        count = len(self._ids)
        number = count if session is None else self._numbers.setdefault(session, count)
        if number == count:
            self._ids.append(session)
        self._session_of[seq] = number
        return number

    def _grow(self, size: int) -> None:
        if size > len(self._session_of):
            more = max(size, 2 * len(self._session_of)) - len(self._session_of)
            self._session_of = np.pad(self._session_of, (0, more))


class SessionMap(SessionNumbers):
    """The session and the neighbors of each memory."""

    def __init__(self) -> None:
        super().__init__()
        self._orders: dict[int, list[tuple[str, int]]] = {}
        self._before = np.zeros(FIRST_CAPACITY, np.int64)
        self._after = np.zeros(FIRST_CAPACITY, np.int64)

    def before(self, seqs: Seqs) -> Seqs:
        """Return the memories right before the given ones in their sessions, 0 for none."""
        return values_at(self._before, seqs)

    def after(self, seqs: Seqs) -> Seqs:
        """Return the memories right after the given ones in their sessions, 0 for none."""
        return values_at(self._after, seqs)

    def around(self, seqs: Seqs) -> Seqs:
        """Return the memories up to two positions away from the given ones."""
        before, after = self.before(seqs), self.after(seqs)
        return np.concatenate((before, after, self.before(before), self.after(after)))

    def _add(self, seq: int, session: str | None, occurred_at: str) -> int:
        number = super()._add(seq, session, occurred_at)
        if session is not None:
            self._link(self._orders.setdefault(number, []), seq, occurred_at)
        return number

    def _link(self, order: list[tuple[str, int]], seq: int, occurred_at: str) -> None:
        at = bisect.bisect(order, (occurred_at, seq))
        before = order[at - 1][1] if at else 0
        after = order[at][1] if at < len(order) else 0
        order.insert(at, (occurred_at, seq))
        self._before[seq], self._after[seq] = before, after
        if before:
            self._after[before] = seq
        if after:
            self._before[after] = seq

    def _grow(self, size: int) -> None:
        super()._grow(size)
        more = len(self._session_of) - len(self._before)
        self._before, self._after = np.pad(self._before, (0, more)), np.pad(self._after, (0, more))


class RankingFeatures:
    """Ranking data of memories: visibility, importance, age, repetitions, kinds, the user's words, speakers.

    `speakers` has a number for each name, 0 for none. Updated from the change log, possibly with a delay: results are
    checked against the store.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self.visible = np.zeros(FIRST_CAPACITY, np.bool_)
        self.importance = np.zeros(FIRST_CAPACITY, np.float32)
        self.days: NDArray[np.float64] = np.zeros(FIRST_CAPACITY, np.float64)
        self._kinds = np.zeros(FIRST_CAPACITY, np.int8)
        self.speakers = np.zeros(FIRST_CAPACITY, np.int32)
        self._names = {"": 0}

    def refresh(self, db: Connection) -> None:
        """Read the changes since the last call."""
        generation = changes.generation(db)
        if generation <= self._generation:
            return
        with self._lock:
            if generation <= self._generation:
                return
            # A purged memory has no row that would identify it.
            purged = changes.has_erased(db, self._generation)
            rows = memories.list_ranking_rows(db, -1 if purged else self._generation)
            self._grow(max((row.seq for row in rows), default=0) + 1)
            seqs = np.fromiter((row.seq for row in rows), np.int64, len(rows))
            visible = np.zeros_like(self.visible) if purged else self.visible
            visible[seqs] = [row.visible for row in rows]
            self.visible = visible
            self.importance[seqs] = [row.importance for row in rows]
            self.days[seqs] = [row.days for row in rows]
            self._kinds[seqs] = [KIND_NUMBERS[row.kind] for row in rows]
            self.speakers[seqs] = [self._names.setdefault(speaker_of(row.opening), len(self._names)) for row in rows]
            self._generation = generation

    def are_of(self, kind: Kind, seqs: Seqs) -> NDArray[np.bool_]:
        """Return for each memory whether it is of a kind."""
        return cast(NDArray[np.bool_], self._kinds[seqs] == KIND_NUMBERS[kind])

    def are_among(self, kinds: Collection[Kind]) -> NDArray[np.bool_]:
        """Return for each row number whether its memory is of one of the kinds."""
        is_among = np.zeros(len(KIND_NUMBERS) + 1, np.bool_)
        is_among[[KIND_NUMBERS[kind] for kind in kinds]] = True
        # A look-up is several times faster than `isin` over every memory.
        return is_among[self._kinds]

    def are_answered(self, seqs: Seqs, neighbours: Seqs) -> NDArray[np.bool_]:
        """Return for each memory whether its neighbor (0 for none) comes from another speaker."""
        own, other = values_at(self.speakers, seqs), values_at(self.speakers, neighbours)
        return cast(NDArray[np.bool_], (own != other) & (own > 0) & (other > 0))

    def are_said_by(self, names: Collection[str], seqs: Seqs) -> NDArray[np.bool_]:
        """Return for each memory whether its speaker has one of some names, in lower case."""
        speakers = values_at(self.speakers, seqs)
        are_said = np.zeros(len(seqs), np.bool_)
        for number in [self._names[name] for name in names if name in self._names]:
            # For the few names of a question, several times as fast as `isin`.
            are_said |= speakers == number
        return are_said

    def _grow(self, size: int) -> None:
        more = max(size, 2 * len(self.visible)) - len(self.visible)
        if size <= len(self.visible):
            return
        self.visible, self._kinds = np.pad(self.visible, (0, more)), np.pad(self._kinds, (0, more))
        self.importance, self.days = np.pad(self.importance, (0, more)), np.pad(self.days, (0, more))
        self.speakers = np.pad(self.speakers, (0, more))
