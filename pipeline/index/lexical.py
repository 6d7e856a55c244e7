"""Lexical search: an immutable segment and the tail of what was written since, scored as one corpus.

BM25 as Lucene computes it: idf(t) · tf / (tf + k1 · (1 − b + b · length / average length)), with
idf(t) = ln(1 + (N − df + ½) / (df + ½)) (Robertson & Zaragoza, 2009; Kamphuis et al., 2020), once over memories and
once over whole sessions. A session's text is never stored: its term counts are added up from its memories' at the
moment of asking, so it is complete as soon as its last memory is written (decision 0005).

Arrays are indexed by row number throughout.
"""

import math
import threading
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import IndexUnavailable
from pipeline.index.background import rarity
from pipeline.index.postings import MOST, Posting, Postings, invert, length_of
from pipeline.index.rows import Floats, Seqs, best_places, masked, taken
from pipeline.index.segment import load_segment
from pipeline.index.sessions import NOBODY, SessionMap
from pipeline.store import changes, meta, tail

# Short, conversational texts: term frequency saturates early and length says little.
K1 = 0.9
B = 0.4
EMPTY = invert([])


class TailPostings:
    """Postings of the tail, which grow with every write; the owner's lock guards them."""

    def __init__(self) -> None:
        self.last_change = 0
        self.lengths: dict[int, int] = {}
        self._columns: dict[str, tuple[array[int], array[int]]] = {}

    def put(self, seq: int, terms: Sequence[str]) -> None:
        """Take in a memory, in place of what its old text left here."""
        if seq in self.lengths:
            self._forget(seq)
        self.lengths[seq] = length_of(terms)
        for term, count in Counter(terms).items():
            column = self._columns.get(term)
            if column is None:
                column = self._columns[term] = array("q"), array("B")
            column[0].append(seq)
            column[1].append(min(count, MOST))

    def _forget(self, seq: int) -> None:
        # Edits of fresh memories are rare, so that nothing is kept to find a memory's terms by.
        for seqs, counts in self._columns.values():
            if seq in seqs:
                place = seqs.index(seq)
                del seqs[place], counts[place]

    def of(self, term: str) -> Posting | None:
        """Return the row numbers of the memories that hold a term, and how often each does."""
        column = self._columns.get(term)
        return None if column is None else (np.array(column[0]), np.array(column[1], np.float32))


@dataclass(frozen=True, slots=True)
class Corpus:
    """Segment and tail of one moment as one corpus, and what BM25 needs to know of it."""

    segment: Postings
    tail: TailPostings
    lock: threading.Lock
    count: int
    lengths: NDArray[np.int32]
    norms: Floats
    fresh: NDArray[np.bool_]
    session_of: NDArray[np.int32]
    session_norms: Floats

    def of(self, term: str) -> Posting:
        """Return a term's posting; where the segment and the tail know a memory, the tail knows better."""
        seqs, counts = self.segment.of(term)
        with self.lock:
            fresh = self.tail.of(term)
        if len(seqs) and self.tail.lengths:
            kept = ~self.fresh[seqs]
            seqs, counts = seqs[kept], counts[kept]
        if fresh is None:
            return seqs, counts
        # Another thread may have taken in more than this corpus knew of.
        known = fresh[0] < len(self.norms)
        return np.concatenate((seqs, fresh[0][known])), np.concatenate((counts, fresh[1][known]))

    def holding(self, terms: Iterable[str], seqs: Seqs) -> NDArray[np.bool_]:
        """Tell which of the given memories hold any of the terms."""
        marked = np.zeros(len(self.norms), np.bool_)
        for term in terms:
            marked[self.of(term)[0]] = True
        return taken(marked, seqs)


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What a query scored, by row number and by session number.

    `information` adds up idf(t) · rarity(t) over the query's tokens that a memory holds: how much they share that few
    memories, and few messages in the world, do. A ceiling is what a text of average length scores that holds each of
    the query's tokens once. `familiarity` is the share of the query's rarity that the memories know at all,
    `frequencies` counts the memories that hold each token.
    """

    corpus: Corpus
    scores: Floats
    information: Floats
    sessions: Floats
    ceiling: float
    session_ceiling: float
    familiarity: float
    frequencies: Mapping[str, int]

    @property
    def by_row(self) -> Floats:
        """Return the score of every row number."""
        return self.scores

    def top(self, limit: int, allowed: NDArray[np.bool_] | None = None) -> Seqs:
        """Return the row numbers of the best scores above zero, best first; ties go to the older memory."""
        return best_places(masked(self.scores, allowed), limit)

    def of(self, seqs: Seqs) -> Floats:
        """Return the scores of given memories, 0 for one that does not match."""
        return taken(self.scores, seqs)

    def of_sessions(self, seqs: Seqs) -> Floats:
        """Return the scores of the given memories' sessions."""
        if not len(self.sessions):
            return np.zeros(len(seqs), np.float32)
        scores: Floats = self.sessions[taken(self.corpus.session_of, seqs)]
        return scores


class LexicalIndex:
    """Search a workspace's segment and tail, both held in memory; a new segment is loaded beside the old one."""

    def __init__(self, folder: Path, sessions: SessionMap) -> None:
        self._folder = folder
        self._sessions = sessions
        self._lock = threading.Lock()
        self._tail_lock = threading.Lock()
        self._generation = -1
        self._name = ""
        self._segment = EMPTY
        self._tail = TailPostings()
        self._corpus: Corpus | None = None
        self._loading: threading.Thread | None = None
        self._loaded: tuple[str, Postings | IndexUnavailable] | None = None

    def search(self, db: Connection, tokens: Sequence[str]) -> LexicalScores:
        """Score every memory and every session against the query's tokens."""
        corpus = self.refresh(db)
        scores = np.zeros(len(corpus.norms), np.float32)
        information = np.zeros(len(corpus.norms), np.float32)
        sessions = np.zeros(len(corpus.session_norms), np.float32)
        ceiling = session_ceiling = 0.0
        frequencies: dict[str, int] = {}
        for token in dict.fromkeys(tokens):
            seqs, counts = corpus.of(token)
            frequencies[token] = len(seqs)
            weight = _idf(corpus.count, len(seqs))
            scores[seqs] += weight * counts / (counts + corpus.norms[seqs])
            information[seqs] += weight * rarity(token)
            ceiling += weight
            in_sessions = np.bincount(corpus.session_of[seqs], counts, len(sessions)).astype(np.float32)
            in_sessions[NOBODY] = 0
            weight = _idf(len(sessions) - 1, int(np.count_nonzero(in_sessions)))
            sessions += weight * in_sessions / (in_sessions + corpus.session_norms)
            session_ceiling += weight
        known = sum(rarity(token) for token, count in frequencies.items() if count)
        familiarity = known / max(sum(map(rarity, frequencies)), 1e-9)
        full = 1 + K1
        return LexicalScores(
            corpus, scores, information, sessions, ceiling / full, session_ceiling / full, familiarity, frequencies
        )

    def refresh(self, db: Connection) -> Corpus:
        """Take in what was written since; raise IndexUnavailable when the segment cannot be loaded."""
        self._sessions.refresh(db)
        generation = changes.generation(db)
        with self._lock:
            if self._corpus is not None and generation < self._generation:
                # Another thread, on a newer snapshot than ours, was here first.
                return self._corpus
            name = meta.get(db, meta.SEGMENT) or ""
            if name != self._name:
                self._switch(name, meta.get_int(db, meta.SEGMENT_COVERS))
            rows = tail.after(db, self._tail.last_change)
            if rows or self._corpus is None:
                self._corpus = self._extended(rows)
            self._generation = generation
            return self._corpus

    def _switch(self, name: str, covers: int) -> None:
        """Begin to serve a segment.

        While another one serves already, load it in a thread of its own first, unless it took rows out of the tail
        that were never taken in here: the old segment cannot stand in for it then.
        """
        if not name:
            self._begin("", EMPTY)
        elif self._loaded is not None and self._loaded[0] == name:
            found, self._loaded = self._loaded[1], None
            if isinstance(found, IndexUnavailable):
                raise found
            self._begin(name, found)
        elif not self._name or self._generation < covers:
            self._begin(name, load_segment(self._folder, name))
        elif self._loading is None or not self._loading.is_alive():
            self._loading = threading.Thread(target=self._load, args=(name,), name="load-segment", daemon=True)
            self._loading.start()

    def _begin(self, name: str, segment: Postings) -> None:
        self._name, self._segment, self._tail, self._corpus = name, segment, TailPostings(), None

    def _load(self, name: str) -> None:
        try:
            self._loaded = name, load_segment(self._folder, name)
        except IndexUnavailable as error:
            self._loaded = name, error

    def _extended(self, rows: Sequence[tuple[int, int, list[str]]]) -> Corpus:
        with self._tail_lock:
            for seq, change, terms in rows:
                self._tail.put(seq, terms)
                self._tail.last_change = change
        segment, fresh_lengths = self._segment, self._tail.lengths
        fresh_seqs = np.fromiter(fresh_lengths, np.int64, len(fresh_lengths))
        session_of, session_count = self._sessions.numbers()
        size = max(len(session_of), int(segment.rows.max(initial=0)) + 1, int(fresh_seqs.max(initial=0)) + 1)
        lengths = np.zeros(size, np.int32)
        lengths[segment.rows] = segment.lengths
        lengths[fresh_seqs] = np.fromiter(fresh_lengths.values(), np.int32, len(fresh_lengths))
        fresh = np.zeros(size, np.bool_)
        fresh[fresh_seqs] = True
        overridden = int(np.count_nonzero(fresh[segment.rows]))
        session_lengths = np.bincount(session_of, lengths[: len(session_of)], session_count)
        session_lengths[NOBODY] = 0
        return Corpus(
            segment,
            self._tail,
            self._tail_lock,
            len(segment.rows) + len(fresh_seqs) - overridden,
            lengths,
            _norms(lengths, lengths[lengths > 0]),
            fresh,
            np.pad(session_of, (0, size - len(session_of))),
            _norms(session_lengths, session_lengths[session_lengths > 0]),
        )


def _idf(count: int, frequency: int) -> float:
    return math.log1p((count - frequency + 0.5) / (frequency + 0.5))


def _norms(lengths: NDArray[Any], present: NDArray[Any]) -> Floats:
    average = float(present.mean()) if len(present) else 1.0
    norms: Floats = (K1 * (1 - B + B * lengths / average)).astype(np.float32)
    return norms
