"""The graph channel: memories that are linked to the best hits, for questions that the best hit does not answer.

"Who is affected if pine-04 stops?" names a machine. One memory says which database runs there, another which service
uses it; no word of the question is in the second. The channel walks from the best hits along rare words, entities and
edges, but never along the words of the question: those have been searched already.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from sqlite3 import Connection

import numpy as np

from pipeline.index.dense import DenseScores
from pipeline.index.encoder import Encoder, rarity
from pipeline.index.lexical import LexicalScores
from pipeline.index.memory_graph import MOST_HOLDERS, Links, Visited, WordGraphs, join_links, walk, weigh_links
from pipeline.index.row_arrays import NOBODY, Seqs, best_positions, flag_members, merge_rows, values_at
from pipeline.index.segment import idf
from pipeline.kernel.records.recall import ChannelReport, ChannelState, Step
from pipeline.kernel.store import edges
from pipeline.kernel.times import elapsed_ms
from pipeline.recall.channels import ChannelResult
from pipeline.recall.deadline import Deadline
from pipeline.recall.evidence import Candidates, Evidence, Flags, LinkedMemories
from pipeline.recall.intent import QuestionIntents
from pipeline.recall.rank import Ranking, rank

# The walk starts at the best hits with at least this share of the best score.
MOST_STARTS = 5
START_SCORE = 0.7
# The linked memories that join the pool.
MOST_LINKED = 40
# From this probability on, a question asks for something linked.
CONNECTED = 0.5
# A question that may do so needs the graph if the best hit has a rare word of it, but less than this share of all.
PERHAPS_CONNECTED = 0.45
EXPLAINED = 0.6
RARE_WORD = 0.8
# A stored edge leads further than a word does.
EDGE_WORDS = 5.0
# How relevant a linked memory is, of the best hit: below the bar of injection, unless the question asks for it.
MAYBE_RELEVANT = 0.45

OFF = ChannelResult(ChannelReport(ChannelState.OFF, 0.0))
LATE = ChannelResult(ChannelReport(ChannelState.LATE, 0.0))

Gather = Callable[[Candidates], Evidence]


@dataclass(frozen=True, slots=True)
class GraphSearch:
    """What the channel reads of a workspace besides its store: the words of memories, and the classifier of questions.

    Without a classifier, words alone decide whether a question needs the graph.
    """

    words: WordGraphs = field(default_factory=WordGraphs)
    intents: QuestionIntents | None = None

    def rank_linked(
        self,
        db: Connection,
        question: str,
        candidates: Candidates,
        ranking: Ranking,
        allowed: Flags,
        encoder: Callable[[], Encoder],
        gather: Gather,
        deadline: Deadline,
    ) -> tuple[ChannelResult, Candidates, Ranking]:
        """Rank the candidates together with the memories that are linked to the best, if the question needs it."""
        began = time.perf_counter()
        lexical = candidates.lexical
        # A walk starts at hits for which something speaks.
        if lexical is None or ranking.score.max(initial=0.0) <= 0:
            return OFF, candidates, ranking
        connected = self._weigh(question, candidates.dense, encoder)
        if connected is None and self.intents is not None and candidates.dense is not None:
            # The classifier is being fitted: the same question may get another answer in a second.
            candidates = replace(candidates, settled=False)
        if not needs_graph(ranking, lexical, connected):
            return OFF, candidates, ranking
        if deadline.must_skip(Step.GRAPH):
            return LATE, candidates, ranking
        linked = self._find(db, ranking, lexical, allowed, is_certain=connected is not None and connected >= CONNECTED)
        candidates = replace(candidates, seqs=merge_rows([candidates.seqs, linked.top]), linked=linked)
        ranking = rank(gather(candidates))
        return ChannelResult(ChannelReport(ChannelState.OK, elapsed_ms(began)), linked), candidates, ranking

    def _weigh(self, question: str, dense: DenseScores | None, encoder: Callable[[], Encoder]) -> float | None:
        if self.intents is None or dense is None:
            return None
        return self.intents.weigh(encoder(), question, dense.query)

    def _find(
        self, db: Connection, ranking: Ranking, lexical: LexicalScores, allowed: Flags, *, is_certain: bool
    ) -> LinkedMemories:
        graph = self.words.of(lexical.corpus)
        asked = frozenset(graph.list_numbers(lexical.postings))

        starts, shares = choose_starts(ranking)
        stored = StoredLinks(db, starts, allowed, lexical.corpus.count)

        def find_links(memories: Seqs) -> Links:
            return join_links([graph.find_links(memories, asked, allowed), *stored.find(memories)])

        return _to_linked(walk(find_links, starts, shares), starts, is_certain=is_certain)


def needs_graph(ranking: Ranking, lexical: LexicalScores, connected: float | None) -> bool:
    """Return whether a question needs the graph.

    It does if it asks for something linked, or if the best hit has a name of it and leaves most of it unexplained.
    `connected` is the probability that it asks for something linked, None if that is unknown.
    """
    if connected is not None and connected >= CONNECTED:
        return True
    if connected is not None and connected < PERHAPS_CONNECTED:
        return False
    best = ranking.evidence.seqs[ranking.order[0]]
    information, explained, has_name = 0.0, 0.0, False
    for token, (seqs, _) in lexical.postings.items():
        value = float(idf(max(lexical.corpus.count, len(seqs)), len(seqs))) * rarity(token)
        information += value
        if best in seqs:
            explained += value
            has_name = has_name or (len(seqs) <= MOST_HOLDERS and rarity(token) >= RARE_WORD)
    return has_name and explained < EXPLAINED * information


def choose_starts(ranking: Ranking) -> tuple[Seqs, "np.ndarray[tuple[int], np.dtype[np.float32]]"]:
    """Return the best hits, in row order, and how often a walk starts at each."""
    best = ranking.order[:MOST_STARTS]
    excess = np.maximum(ranking.score[best] - START_SCORE * ranking.score[best[0]], 0)
    best, excess = best[excess > 0], excess[excess > 0]
    order = np.argsort(ranking.evidence.seqs[best])
    return ranking.evidence.seqs[best[order]], (excess[order] / max(float(excess.sum()), 1e-9)).astype(np.float32)


class StoredLinks:
    """The edges of memories, and the entities that the starts of a walk mention, among allowed memories.

    Entities of later memories gained nothing on the public sets, and reading them took half of the time.
    """

    def __init__(self, db: Connection, starts: Seqs, allowed: Flags, count: int) -> None:
        self._db = db
        self._allowed = allowed
        self._count = count
        self._starts = starts
        mentions = _to_pairs(edges.list_shared_entities(db, starts.tolist(), MOST_HOLDERS))
        mentions = mentions[values_at(allowed, mentions[:, 1])]
        entities, self._holders = mentions[:, 0], mentions[:, 1]
        # Entities ascend.
        self._numbers = np.cumsum(np.diff(entities, prepend=entities[:1]) > 0)
        self._of_starts = self._weigh(self._numbers, self._holders)

    def find(self, memories: Seqs) -> list[Links]:
        """Return the links of memories, which ascend."""
        pairs = _to_pairs(edges.list_linking_edges(self._db, memories.tolist()))
        pairs = pairs[values_at(self._allowed, pairs).all(axis=1)]
        weight = EDGE_WORDS * float(idf(max(self._count, 2), 2))
        return [
            Links(np.repeat(np.arange(len(pairs)), 2), pairs.reshape(-1), np.full(len(pairs), weight, np.float32)),
            self._find_entities(memories[flag_members(memories, self._starts)]),
        ]

    def _find_entities(self, naming: Seqs) -> Links:
        """Return the entities that some of the starts mention."""
        if len(naming) == len(self._starts):
            return self._of_starts
        is_naming = np.zeros(len(self._allowed), np.bool_)
        is_naming[naming] = True
        is_named = np.zeros(len(self._of_starts.weights), np.bool_)
        is_named[self._numbers[values_at(is_naming, self._holders)]] = True
        kept = is_named[self._numbers]
        return self._weigh((np.cumsum(is_named) - 1)[self._numbers[kept]], self._holders[kept])

    def _weigh(self, numbers: Seqs, holders: Seqs) -> Links:
        return weigh_links(numbers, holders, int(numbers[-1]) + 1 if len(numbers) else 0, self._count)


def _to_pairs(rows: Sequence[tuple[int, int]]) -> Seqs:
    # Much faster than an array of tuples.
    return np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows)).reshape(-1, 2)


def _to_linked(visited: Visited, starts: Seqs, *, is_certain: bool) -> LinkedMemories:
    mass = visited.mass.sum(axis=0)
    by_row = np.zeros(int(visited.memories.max(initial=-1)) + 1, np.float32)
    # The square root: the tenth most visited memory still counts.
    is_start = flag_members(visited.memories, starts)
    most = float(mass[~is_start].max(initial=0.0))
    by_row[visited.memories] = np.sqrt(np.minimum(mass / max(most, 1e-12), 1.0))
    sources = np.full(len(by_row), NOBODY, np.int64)
    sources[visited.memories] = starts[visited.mass.argmax(axis=0)]
    return LinkedMemories(by_row, best_positions(by_row, MOST_LINKED), sources, 1.0 if is_certain else MAYBE_RELEVANT)
