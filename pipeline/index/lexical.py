"""Lexical search: an immutable segment and a tail of later writes, scored as one corpus.

BM25 as Lucene computes it: idf(t) · tf / (tf + k1 · (1 − b + b · length / average length)), with idf(t) = ln(1 + (N −
df + ½) / (df + ½)) (Robertson & Zaragoza, 2009; Kamphuis et al., 2020), once over memories and once over sessions.
bm25s builds the segment and scores it; after later writes, its columns are adjusted to the statistics of both
(decision 0002). A session's text is not stored: its term counts are added up from its memories' at query time, so it
is complete as soon as its last memory is written (decision 0005).

Arrays are indexed by row number throughout.
"""

import threading
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

import numpy as np
from numpy.typing import NDArray

from pipeline.index.documents import MEMORIES, Documents
from pipeline.index.encoder import rarity
from pipeline.index.expansions import ExpandedTerm, Expansion, add_terms, expand_terms, known_tokens
from pipeline.index.row_arrays import (
    NO_ROWS,
    NOBODY,
    Floats,
    Seqs,
    SessionNumbers,
    best_positions,
    mask_scores,
    values_at,
)
from pipeline.index.segment import (
    K1,
    Posting,
    Segment,
    TailPostings,
    idf,
    index_documents,
    length_norms,
    load_segment,
)
from pipeline.index.storage import SharedSegments
from pipeline.kernel.errors import IndexUnavailable, StorageUnreachable, StoreUnavailable
from pipeline.kernel.store import meta
from pipeline.text.tokens import metadata_term

# How long a first search waits for a segment that is being fetched.
PATIENCE_S = 3.0
# In smaller workspaces, words are weighted as in a workspace of this size: rare words are rare because there are few
# memories.
YOUNG_WORKSPACE_SIZE = 200
# What a word in the metadata counts, of one in the text.
METADATA_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Corpus:
    """Segment and tail at a point in time as one corpus, with its BM25 statistics; `name` is the segment's."""

    name: str
    segment: Segment
    tail: TailPostings
    lock: threading.Lock
    count: int
    lengths: NDArray[np.int32]
    norms: NDArray[np.float64]
    fresh: NDArray[np.bool_]
    session_of: NDArray[np.int32]

    def posting(self, term: str) -> Posting:
        """Return a word's posting; for memories in both segment and tail, that of the tail."""
        seqs, counts = self.segment.posting(term)
        if not self.tail.lengths:
            return seqs, counts
        not_in_tail = ~self.fresh[seqs]
        with self.lock:
            fresh, fresh_counts = self.tail.posting(term)
        # Another thread may have added memories: a word in more memories than are counted would get a negative
        # weight.
        known = values_at(self.fresh, fresh)
        return np.concatenate((seqs[not_in_tail], fresh[known])), np.concatenate(
            (counts[not_in_tail], fresh_counts[known])
        )

    def have_field(self, field: str, seqs: Seqs) -> NDArray[np.bool_]:
        """Return which of the given memories have a field."""
        return np.isin(seqs, self.list_holders(field))

    def list_holders(self, field: str) -> Seqs:
        """Return the row numbers of the memories that have a field."""
        seqs = self.segment.holders(field)
        if not self.tail.lengths:
            return seqs
        with self.lock:
            fresh, _ = self.tail.posting(field)
        return np.concatenate((seqs[~self.fresh[seqs]], fresh[values_at(self.fresh, fresh)]))

    def list_tail_words(self) -> list[tuple[str, Seqs]]:
        """Return each word of the tail, and the row numbers of the memories of the tail with it."""
        with self.lock:
            columns = self.tail.list_words()
        # Another thread may have added more.
        return [(term, seqs[values_at(self.fresh, seqs)]) for term, seqs in columns]

    def score_memories(self, postings: Mapping[str, Posting]) -> Floats:
        """Score every memory for the words of some postings."""
        scores = np.zeros(len(self.norms), np.float32)
        if not self.fresh.any():
            scores[self.segment.rows] = self.segment.scores(list(postings))
            return scores
        for seqs, counts in postings.values():
            # Bit by bit the score that bm25s would have stored for one segment.
            scores[seqs] += (idf(self.count, len(seqs)) * (counts / (counts + self.norms[seqs]))).astype(np.float32)
        return scores

    def score_sessions(
        self, postings: Mapping[str, Posting], rarities: Mapping[str, float], shares: Floats
    ) -> tuple[Floats, float]:
        """Score every session for the words of some postings, weighted by their rarity; also return the weights' sum.

        `shares` is what the words of each memory count in the text of its session.
        """
        lengths = np.bincount(self.session_of, self.lengths * shares)
        lengths[NOBODY] = 0
        count, norms = len(lengths), length_norms(lengths, lengths.sum() / max(np.count_nonzero(lengths), 1))
        scores, total = np.zeros(count, np.float32), 0.0
        for token, (seqs, counts) in postings.items():
            added = np.bincount(self.session_of[seqs], counts * shares[seqs], count)
            added[NOBODY] = 0
            weight = rarities[token] * idf(count - 1, int(np.count_nonzero(added)))
            scores += weight * (added / (added + norms)).astype(np.float32)
            total += float(weight)
        return scores, total


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """The scores of a query, by row number.

    `postings` has the memories with each token in their text, `metadata` those with it in their metadata only.
    `information` adds up idf(t) · rarity(t) over the query's tokens that a memory contains: how much they share that
    few memories, and few background messages, contain. A ceiling is the score of a text of average length with each
    of the query's tokens once. `vocabulary_coverage` is the share of the query's rarity that the memories contain.
    `expanded` are the other names of the query's terms that memories contain.
    """

    corpus: Corpus
    postings: Mapping[str, Posting]
    metadata: Mapping[str, Seqs]
    scores: Floats
    information: Floats
    ceiling: float
    vocabulary_coverage: float
    expanded: Sequence[ExpandedTerm] = ()

    @property
    def by_row(self) -> Floats:
        """Return the score of every row number."""
        return self.scores

    def top(self, limit: int, allowed: NDArray[np.bool_] | None = None) -> Seqs:
        """Return the row numbers of the best scores above zero, best first; ties go to the older memory."""
        return best_positions(mask_scores(self.scores, allowed), limit)

    def holders(self, token: str) -> Seqs:
        """Return the row numbers of the memories with a token of the query, in their text or their metadata."""
        return np.concatenate((self.postings[token][0], self.metadata[token]))

    def of(self, seqs: Seqs) -> Floats:
        """Return the scores of given memories, 0 for a memory that does not match."""
        return values_at(self.scores, seqs)


class LexicalIndex:
    """Search a segment and its tail in memory, by default those of memories.

    A new segment is loaded while the old one is used.
    """

    def __init__(
        self,
        folder: Path,
        sessions: SessionNumbers,
        shared: SharedSegments | None = None,
        on_lost: Callable[[StoreUnavailable], object] = lambda _error: None,
        documents: Documents = MEMORIES,
    ) -> None:
        self._documents = documents
        self._folder = folder
        self._sessions = sessions
        self._shared = shared
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._tail_lock = threading.Lock()
        self._generation = -1
        self._name = ""
        self._segment = index_documents([])
        self._tail = TailPostings()
        self._corpus: Corpus | None = None
        self._loading: threading.Thread | None = None
        self._loaded: tuple[str, Segment | IndexUnavailable | StoreUnavailable] | None = None

    def search(self, db: Connection, tokens: Sequence[str], expansions: Sequence[Expansion] = ()) -> LexicalScores:
        """Score every memory against the query's tokens, and against other names of them."""
        corpus = self.refresh(db)
        postings = {token: corpus.posting(token) for token in dict.fromkeys(tokens)}
        weights = {token: float(idf(corpus.count, len(seqs))) for token, (seqs, _) in postings.items()}
        rarities = {token: rarity(token) for token in postings}
        holders = {token: corpus.list_holders(metadata_term(token)) for token in postings}
        # Most words are in no metadata, and the difference sorts both lists.
        metadata = {token: np.setdiff1d(seqs, postings[token][0]) for token, seqs in holders.items() if len(seqs)}
        metadata = dict.fromkeys(postings, NO_ROWS) | metadata
        scores, information = corpus.score_memories(postings), np.zeros(len(corpus.norms), np.float32)
        size = max(corpus.count, YOUNG_WORKSPACE_SIZE)
        for token, (seqs, _) in postings.items():
            information[seqs] += float(idf(size, len(seqs))) * rarities[token]
        for token, seqs in metadata.items():
            frequency = len(postings[token][0]) + len(seqs)
            scores[seqs] += METADATA_WEIGHT * idf(corpus.count, frequency) / (1 + corpus.norms[seqs])
            information[seqs] += METADATA_WEIGHT * idf(size, frequency) * rarities[token]
        expanded = expand_terms(corpus, postings, expansions)
        add_terms(corpus, postings, expanded, YOUNG_WORKSPACE_SIZE, scores, information)
        contained = {token for token in postings if len(postings[token][0]) or len(metadata[token])}
        known = sum(rarities[token] for token in sorted(contained | known_tokens(expanded)))
        return LexicalScores(
            corpus=corpus,
            postings=postings,
            metadata=metadata,
            scores=scores,
            information=information,
            ceiling=sum(weights.values()) / (1 + K1),
            vocabulary_coverage=known / max(sum(rarities.values()), 1e-9),
            expanded=expanded,
        )

    def is_current(self, db: Connection, corpus: Corpus) -> bool:
        """Return whether a corpus has the segment of the store; another one still counts memories archived since."""
        return corpus.name == (meta.get(db, self._documents.keys.name) or "")

    def refresh(self, db: Connection) -> Corpus:
        """Read later writes; raise IndexUnavailable if the segment cannot be loaded."""
        self._sessions.refresh(db)
        generation = self._documents.generation(db)
        with self._lock:
            if self._corpus is not None and generation < self._generation:
                # Another thread with a newer snapshot has done this already.
                return self._corpus
            keys = self._documents.keys
            name = meta.get(db, keys.name) or ""
            if name != self._name:
                self._switch(db, name, meta.get_int(db, keys.covers))
            rows = self._documents.list_tail(db, self._tail.last_change)
            is_changed = generation > self._generation and name == self._name
            is_shorter = is_changed and self._drop_archived(db, {seq for seq, _, _ in rows})
            if rows or is_shorter or self._corpus is None:
                self._corpus = self._extend_tail(rows)
            # Of many later turns, only the first are read: the next segment contains turns that this process does not.
            self._generation = (
                generation if len(self._tail.lengths) < self._documents.most_tail_rows else self._tail.last_change
            )
            return self._corpus

    def _drop_archived(self, db: Connection, new_seqs: AbstractSet[int]) -> bool:
        """Drop the tail's memories that the store has archived; return whether there were any.

        Otherwise they would count in the statistics of this process, but not in those of one that starts now.
        """
        gone = self._documents.list_dropped(db, self._tail.lengths.keys() | new_seqs)
        with self._tail_lock:
            for seq in gone:
                self._tail.drop(seq)
        return bool(gone)

    def _switch(self, db: Connection, name: str, covers: int) -> None:
        """Switch to a segment.

        While another segment is in use, load the new one in a thread, unless it absorbed tail rows that were never
        read here: then the old segment cannot be used. If the new segment is not available now, use what the
        documents offer instead.
        """
        if not name:
            self._begin("", index_documents([]))
        elif self._loaded is not None and self._loaded[0] == name:
            loaded = self._take_loaded(name)
            if isinstance(loaded, Segment):
                self._begin(name, loaded)
            elif loaded is not None:
                # The present segment stays in use; the next search tries again.
                self._on_lost(loaded)
        elif not self._name or self._generation < covers:
            segment = load_segment(self._folder, name) if self._shared is None else self._await_shared(db, name)
            self._begin(name, segment)
        else:
            self._load_beside(name)

    def _await_shared(self, db: Connection, name: str) -> Segment:
        self._load_beside(name).join(PATIENCE_S)
        loaded = self._take_loaded(name)
        if isinstance(loaded, Segment):
            return loaded
        self._on_lost(loaded or StorageUnreachable(f"lexical segment {name} is still being fetched"))
        return self._documents.index_without_storage(db)

    def _load_beside(self, name: str) -> threading.Thread:
        if self._loading is None or not self._loading.is_alive():
            self._loading = threading.Thread(target=self._load, args=(name,), name="load-segment", daemon=True)
            self._loading.start()
        return self._loading

    def _take_loaded(self, name: str) -> Segment | StoreUnavailable | None:
        if self._loaded is None or self._loaded[0] != name:
            return None
        segment, self._loaded = self._loaded[1], None
        if isinstance(segment, IndexUnavailable):
            raise segment
        return segment

    def _begin(self, name: str, segment: Segment) -> None:
        self._name, self._segment, self._tail, self._corpus = name, segment, TailPostings(), None

    def _load(self, name: str) -> None:
        try:
            self._loaded = name, self._load_segment(name)
        except (IndexUnavailable, StoreUnavailable) as error:
            self._loaded = name, error

    def _load_segment(self, name: str) -> Segment:
        return load_segment(self._folder, name) if self._shared is None else self._shared.load(name)

    def _extend_tail(self, rows: Sequence[tuple[int, int, list[str]]]) -> Corpus:
        with self._tail_lock:
            for seq, change, terms in rows:
                self._tail.put(seq, terms)
                self._tail.last_change = change
        segment, fresh_lengths = self._segment, self._tail.lengths
        fresh_seqs = np.fromiter(fresh_lengths, np.int64, len(fresh_lengths))
        session_of = self._sessions.numbers()
        size = max(len(session_of), int(segment.rows.max(initial=0)) + 1, int(fresh_seqs.max(initial=0)) + 1)
        lengths = np.zeros(size, np.int32)
        lengths[segment.rows] = segment.lengths
        lengths[fresh_seqs] = np.fromiter(fresh_lengths.values(), np.int32, len(fresh_lengths))
        fresh = np.zeros(size, np.bool_)
        fresh[fresh_seqs] = True
        count = len(segment.rows) + len(fresh_seqs) - int(np.count_nonzero(fresh[segment.rows]))
        return Corpus(
            name=self._name,
            segment=segment,
            tail=self._tail,
            lock=self._tail_lock,
            count=count,
            lengths=lengths,
            norms=length_norms(lengths, int(lengths.sum()) / max(count, 1)),
            fresh=fresh,
            session_of=np.pad(session_of, (0, size - len(session_of))),
        )
