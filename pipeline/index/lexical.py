"""Lexical search: an immutable bm25s segment, and the FTS5 tail scored by the same formula.

BM25 as Lucene computes it: idf(t) · tf / (tf + k1 · (1 − b + b · length / average length)), with
idf(t) = ln(1 + (N − df + ½) / (df + ½)) (Robertson & Zaragoza, 2009; Kamphuis et al., 2020). The segment stores
finished scores; a query rescales them to the statistics of segment and tail together, so that a memory scores the
same on either side.
"""

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ulid import ULID

from pipeline.errors import IndexUnavailable
from pipeline.store import meta, tail

# Short, conversational texts: term frequency saturates early and length says little.
K1 = 0.9
B = 0.4
TAIL_MATCHES = 2000
MANIFEST = "manifest.json"
SEQS = "seqs.npy"
LENGTHS = "lengths.npy"
# The two sides add up in different order; beyond this digit equal scores would differ.
SCORE_DIGITS = 5


def preload_lexical() -> None:
    """Import bm25s, which takes longer than a recall may, before the first segment needs it."""
    import bm25s  # noqa: F401


@dataclass(frozen=True, slots=True)
class Segment:
    """A bm25s index over the memories of some moment, with the row number of each document."""

    name: str
    seqs: NDArray[np.int64]
    lengths: NDArray[np.int32]
    tokens: int
    vocabulary: Mapping[str, int]
    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]

    def document_frequency(self, token: str) -> int:
        """Count the documents that hold a token."""
        number = self.vocabulary.get(token)
        return 0 if number is None else int(self.indptr[number + 1] - self.indptr[number])


EMPTY = Segment(
    "",
    np.empty(0, np.int64),
    np.empty(0, np.int32),
    0,
    {},
    np.empty(0, np.float32),
    np.empty(0, np.int32),
    np.zeros(1, np.int64),
)


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What a query scored: every document of the segment, and the matching rows of the tail, which override it.

    `ceiling` is what a document of average length scores that holds each of the query's tokens once.
    """

    seqs: NDArray[np.int64]
    scores: NDArray[np.float64]
    tail: Mapping[int, float]
    ceiling: float

    def top(self, limit: int, allowed: NDArray[np.int64] | None = None) -> list[tuple[int, float]]:
        """Return the best (row number, score) pairs above zero; ties go to the older memory."""
        scores = self.scores
        if allowed is not None:
            scores = np.where(np.isin(self.seqs, allowed, assume_unique=True), scores, 0)
        pairs = {int(self.seqs[i]): float(scores[i]) for i in largest(scores, limit)}
        among = None if allowed is None else set(allowed.tolist())
        pairs.update((seq, score) for seq, score in self.tail.items() if among is None or seq in among)
        rounded = ((seq, round(score, SCORE_DIGITS)) for seq, score in pairs.items())
        return sorted((pair for pair in rounded if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def of(self, seqs: Sequence[int]) -> list[float]:
        """Return the scores of given memories, 0 for one that does not match."""
        if len(self.seqs) == 0:
            return [self.tail.get(seq, 0.0) for seq in seqs]
        places = np.searchsorted(self.seqs, seqs).clip(max=len(self.seqs) - 1)
        found = np.where(self.seqs[places] == seqs, self.scores[places], 0)
        return [self.tail.get(seq, float(score)) for seq, score in zip(seqs, found, strict=True)]


class LexicalIndex:
    """Search a workspace's current segment and tail; the segment is held in memory and reloaded when it changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segment = EMPTY

    def search(self, db: Connection, tokens: Sequence[str]) -> LexicalScores:
        """Score every memory against the query's tokens, on one snapshot of the store."""
        segment = self.segment(db)
        asked = list(dict.fromkeys(tokens))
        fresh = tail.statistics(db, asked)
        total = len(segment.seqs) + fresh.rows
        if not asked or not total:
            return LexicalScores(segment.seqs, np.zeros(len(segment.seqs)), {}, 0.0)
        frequency = {t: segment.document_frequency(t) + fresh.document_frequency.get(t, 0) for t in asked}
        idf = {t: math.log1p((total - df + 0.5) / (df + 0.5)) for t, df in frequency.items()}
        average = (segment.tokens + fresh.tokens) / total
        scores = _segment_scores(segment, idf, average)
        # A row of the tail that the segment holds too was edited or restored since: the tail knows better.
        overridden = dict.fromkeys(tail.seqs(db), 0.0)
        matched = {seq: _bm25(row, idf, average) for seq, row in tail.matches(db, asked, TAIL_MATCHES)}
        _silence(segment, scores, overridden)
        return LexicalScores(segment.seqs, scores, overridden | matched, sum(idf.values()) / (1 + K1))

    def segment(self, db: Connection) -> Segment:
        """Return the segment that the store names as current, loading it when it is a new one."""
        name = meta.get(db, meta.SEGMENT)
        if name is None:
            return EMPTY
        segment = self._segment
        if name != segment.name:
            # Held by the caller, not read back: another thread may load the segment of another snapshot meanwhile.
            segment = self._segment = load_segment(self._folder, name)
        return segment


def build_segment(folder: Path, documents: Iterable[tuple[int, Sequence[str]]]) -> str:
    """Write a new segment of (row number, tokens) documents, in row order; return its name."""
    import bm25s

    rows = list(documents)
    name = f"segment-{ULID()}".lower()
    target = folder / name
    target.mkdir(mode=0o700, parents=True)
    tokens = sum(len(row[1]) for row in rows)
    if tokens:
        engine = bm25s.BM25(k1=K1, b=B, method="lucene")
        engine.index([list(row[1]) for row in rows], create_empty_token=False, show_progress=False)
        engine.save(target)
    np.save(target / SEQS, np.array([row[0] for row in rows], np.int64))
    np.save(target / LENGTHS, np.array([len(row[1]) for row in rows], np.int32))
    sizes = {file.name: file.stat().st_size for file in target.iterdir()}
    (target / MANIFEST).write_text(json.dumps({"tokens": tokens, "sizes": sizes}), encoding="ascii")
    return name


def load_segment(folder: Path, name: str) -> Segment:
    """Load a segment; raise IndexUnavailable when a file is missing or was cut."""
    import bm25s

    target = folder / name
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="ascii"))
        _check_sizes(target, manifest["sizes"])
        # Read, not memory-mapped: a mapped file that someone cuts short ends the process with SIGBUS.
        seqs = np.load(target / SEQS)
        lengths = np.load(target / LENGTHS)
        if not manifest["tokens"]:
            return Segment(name, seqs, lengths, 0, {}, EMPTY.data, EMPTY.indices, EMPTY.indptr)
        engine: Any = bm25s.BM25.load(target, mmap=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexUnavailable(f"lexical segment {name}: {error}", part=name) from error
    found = engine.scores
    arrays = found["data"], found["indices"], found["indptr"]
    return Segment(name, seqs, lengths, manifest["tokens"], engine.vocab_dict, *arrays)


def remove_segments(folder: Path, keep: str) -> None:
    """Delete every other segment; a process that has loaded a deleted one keeps it until it reloads."""
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != keep:
            shutil.rmtree(entry)


def _check_sizes(target: Path, sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        if (target / name).stat().st_size != size:
            raise ValueError(f"{name} was cut or overwritten")


def _segment_scores(segment: Segment, idf: Mapping[str, float], average: float) -> NDArray[np.float64]:
    """Add up the stored scores, each brought from the segment's own statistics to the joint ones."""
    count = len(segment.seqs)
    scores = np.zeros(count)
    if not segment.tokens:
        return scores
    was, now = (_norm(segment.lengths, mean) for mean in (segment.tokens / count, average))
    for token, weight in idf.items():
        number = segment.vocabulary.get(token)
        if number is None:
            continue
        start, end = segment.indptr[number], segment.indptr[number + 1]
        held = segment.indices[start:end]
        stored = math.log1p((count - (end - start) + 0.5) / ((end - start) + 0.5))
        # tf / (tf + was), of which tf / (tf + now) follows without knowing tf.
        share = segment.data[start:end] / stored
        joint = share * was[held] / (share * was[held] + (1 - share) * now[held])
        # A document stands at most once in a token's column, so plain fancy indexing adds up rightly.
        scores[held] += weight * joint
    return scores


def _silence(segment: Segment, scores: NDArray[np.float64], seqs: Iterable[int]) -> None:
    if len(segment.seqs):
        wanted = np.fromiter(seqs, np.int64)
        places = np.searchsorted(segment.seqs, wanted).clip(max=len(segment.seqs) - 1)
        scores[places[segment.seqs[places] == wanted]] = 0


def _bm25(tokens: Sequence[str], idf: Mapping[str, float], average: float) -> float:
    counts = Counter(tokens)
    norm = float(_norm(len(tokens), average))
    return sum(weight * counts[t] / (counts[t] + norm) for t, weight in idf.items() if t in counts)


def _norm(length: Any, average: float) -> Any:
    return K1 * (1 - B + B * length / average)


def largest(scores: NDArray[Any], limit: int) -> list[int]:
    """Return the places of the largest scores, and of all that tie with the last of them."""
    if len(scores) <= limit:
        return list(range(len(scores)))
    # Ties come along because the caller breaks them by age, not by memory layout.
    edge = float(np.partition(scores, -limit)[-limit])
    return [int(i) for i in np.flatnonzero(scores >= edge - 10**-SCORE_DIGITS if edge > 0 else scores > 0)]
