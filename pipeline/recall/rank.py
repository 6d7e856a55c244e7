"""Rank evidence.

A memory's score is the weighted sum of the features in the table FEATURES. A memory is scored by its own text, by its
neighbors in its session, and by its session: an answer often shares no word with the query, but the turn before it
does. docs/concepts/recall.md gives the sources of the features, decisions 0096 and 0098 what they are worth.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np

from pipeline.index.row_arrays import Floats, Seqs
from pipeline.kernel.records.recall import Channel
from pipeline.recall.evidence import Evidence, Flags

# From these values on, a channel's best counts fully: this share of the query's information, this cosine. Below, the
# closest of distant memories must not outweigh a memory with the query's words.
CONVINCING_COVERAGE = 0.3
CONVINCING_COSINE = 0.6

# If a workspace contains a smaller share of the query's words (usually another language), only meaning counts; from
# the second value on, words count fully.
VOCABULARY_COVERED = (0.4, 0.7)
UNKNOWN_WORDS_GAIN = 4.0

# The weights of both meaning features by that of words: a memory without a vector is ranked by words alone.
WORDS_FOR_MEANING = 1.2
# Of a neighbor's score, the share of one two turns away, and what a question adds for the person who answers it.
TWO_TURNS_SHARE = 0.5
ANSWER_GAIN = 1.25
# What a statement is above the one that it replaces.
NEWER_GAIN = np.float32(1e-5)
# A longer turn is long enough to answer.
ANSWER_TOKENS = 24
LITERAL: Final = "literal"


class FeatureGroup(StrEnum):
    """Groups of features that users can distinguish."""

    WORDS = "words"
    MEANING = "meaning"
    NEIGHBOURS = "neighbours"
    LINKS = "links"
    CUES = "cues"
    PRIORS = "priors"


class CandidatePool:
    """The evidence of a query's candidates, and intermediate results that several features share."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.word_trust = np.where(evidence.dense == 0, 1.0, words_known(evidence)).astype(np.float32)
        self.lexical = self.word_trust * _share_of_best(evidence.lexical, CONVINCING_COVERAGE * evidence.ceiling)
        self.dense = _share_of_best(evidence.dense, CONVINCING_COSINE)
        self.words_alone = self._stand_in_for_meaning()
        self.own = ((self.lexical + self.dense + self.words_alone) / 2).astype(np.float32)
        self.before = neighbor_positions(evidence.seqs, evidence.before)
        self.after = neighbor_positions(evidence.seqs, evidence.after)

    def _stand_in_for_meaning(self) -> Floats:
        """Return the lexical share of memories without a vector, which meaning would otherwise rank last."""
        unembedded = self.evidence.unembedded
        # If no memory has a vector, all are ranked by words.
        return np.where(unembedded & ~unembedded.all(), self.lexical, 0).astype(np.float32)

    def damp_lift(self, values: Floats) -> Floats:
        """Damp the contributions of neighbors by the reliability of words."""
        return (self.word_trust * values).astype(np.float32)


@dataclass(frozen=True, slots=True)
class RankFeature:
    """One term of a score.

    `label` completes "this memory …". A feature with lifts returns, for a position in the pool, the positions of the
    memories that may have lifted it.
    """

    name: str
    weight: float
    group: FeatureGroup
    label: str
    compute: Callable[[CandidatePool], Floats | Flags]
    lifters: Callable[[CandidatePool, int], Sequence[int]] | None = None


def _adjacent_turn(pool: CandidatePool) -> Floats:
    before, after = take_at(pool.own, pool.before), take_at(pool.own, pool.after)
    two_away = np.maximum(take_at(before, pool.before), take_at(after, pool.after))
    # A matching question is answered by the turn after it, and a question about a person not by an assistant.
    answers = ~pool.evidence.by_assistant * take_at(pool.evidence.asks, pool.before) * before
    return pool.damp_lift(np.maximum(before, after) + TWO_TURNS_SHARE * two_away + ANSWER_GAIN * answers)


def _session(pool: CandidatePool) -> Floats:
    if not len(pool.own):
        return pool.own
    sessions = pool.evidence.sessions
    best = np.zeros(int(sessions.max()) + 1, np.float32)
    np.maximum.at(best, sessions, pool.own)
    return pool.damp_lift(best[sessions])


def _same_session(pool: CandidatePool, position: int) -> list[int]:
    sessions = pool.evidence.sessions
    return np.flatnonzero(sessions == sessions[position]).tolist()


def _adjacent(pool: CandidatePool, position: int) -> list[int]:
    near = [int(at) for at in (pool.before[position], pool.after[position])]
    further = [int(turns[at]) for turns, at in zip((pool.before, pool.after), near, strict=True) if at >= 0]
    return [at for at in (*near, *further) if at >= 0]


def _linked_from(pool: CandidatePool, position: int) -> list[int]:
    source = neighbor_positions(pool.evidence.seqs, pool.evidence.linked_from[position : position + 1])
    return [int(at) for at in source if at >= 0]


def _newest_first(pool: CandidatePool) -> Floats:
    """Return the score shift that orders equally complete statements newest first."""
    evidence = pool.evidence
    superseded: list[tuple[int, int]] = []
    if evidence.superseded_by.any():
        newer = neighbor_positions(evidence.seqs, evidence.superseded_by)
        superseded = [(position, int(newer[position])) for position in np.flatnonzero(newer >= 0).tolist()]
    groups = join_groups([*split_by_literals(evidence, [evidence.states.nonzero()[0].tolist()]), *superseded])
    if not groups:
        return np.zeros(len(pool.own), np.float32)
    score = _sum(_OWN, [feature.compute(pool) for feature in _OWN])
    shift: Floats = _place_by_time(score, _sort_by_time(evidence, groups)) - score
    return shift


def _place_by_time(score: Floats, successions: Sequence[Seqs]) -> Floats:
    """Return scores in which each statement of a succession is above all earlier ones.

    No score falls: an older statement stays next to the one that replaces it.
    """
    placed = score.copy()
    for members in successions:
        placed[members] = np.maximum.accumulate(score[members]) + NEWER_GAIN * np.arange(len(members), dtype=np.float32)
    return placed


def _sort_by_time(evidence: Evidence, groups: Sequence[Sequence[int]]) -> list[Seqs]:
    """Return groups of positions, superseded members first, then the oldest."""
    is_current = neighbor_positions(evidence.seqs, evidence.superseded_by) < 0
    return [
        members[np.lexsort((evidence.seqs[members], evidence.days[members], is_current[members]))]
        for members in map(np.array, groups)
    ]


def split_by_literals(evidence: Evidence, groups: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return groups of positions in which all members contain the same literals of the query."""
    parts: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, members in enumerate(groups):
        for position in members:
            parts[number, int(evidence.literal_sets[position])].append(position)
    return list(parts.values())


def join_groups(position_groups: Iterable[Collection[int]]) -> list[list[int]]:
    """Merge groups that share a position; drop groups of one."""
    groups: list[set[int]] = []
    for together in position_groups:
        touched = [group for group in groups if not group.isdisjoint(together)]
        groups = [group for group in groups if group not in touched] + [set(together).union(*touched)]
    return [sorted(group) for group in groups if len(group) > 1]


_WORDS, _MEANING, _NEIGHBOURS, _LINKS, _CUES, _PRIORS = FeatureGroup

_OWN: Final = (
    RankFeature(
        "lexical",
        0.375,
        _WORDS,
        "shares words with the question",
        lambda pool: pool.lexical + WORDS_FOR_MEANING * pool.words_alone,
    ),
    RankFeature(
        "dense",
        0.15,
        _MEANING,
        "is near in meaning",
        lambda pool: (1 + (1 - pool.word_trust) * UNKNOWN_WORDS_GAIN) * pool.dense,
    ),
    RankFeature(
        "context",
        0.3,
        _MEANING,
        "is near in meaning together with its neighbors",
        lambda pool: pool.damp_lift(_share_of_best(pool.evidence.context, CONVINCING_COSINE)),
    ),
    RankFeature("adjacent_turn", 0.2, _NEIGHBOURS, "is next to a matching turn", _adjacent_turn, _adjacent),
    RankFeature("session", 0.4, _NEIGHBOURS, "is in the session of a matching memory", _session, _same_session),
    RankFeature(
        "linked", 0.6, _LINKS, "is among the best or linked to them", lambda pool: pool.evidence.linked, _linked_from
    ),
    RankFeature(
        "speaker", 0.1, _CUES, "was said by the person that the question names", lambda pool: pool.evidence.speaks
    ),
    RankFeature(
        "length",
        -0.05,
        _PRIORS,
        "is too short a turn to answer",
        lambda pool: pool.evidence.turns * np.log(ANSWER_TOKENS / np.clip(pool.evidence.lengths, 1, ANSWER_TOKENS)),
    ),
    RankFeature("importance", 0.04, _PRIORS, "is important", lambda pool: pool.evidence.importance - 0.5),
    RankFeature(
        "time_range",
        0.15,
        _CUES,
        "happened at the time that the question names",
        lambda pool: pool.evidence.in_time_range,
    ),
    RankFeature(
        "answers_user",
        1.0,
        _CUES,
        "is the fact about the user that the question asks for",
        lambda pool: pool.evidence.answers_user,
    ),
    RankFeature("reranker", 0.25, _MEANING, "is preferred by the reranker", lambda pool: pool.evidence.reranked),
    RankFeature(
        LITERAL,
        2.5,
        _CUES,
        "is one of few with an identifier or phrase of the question",
        lambda pool: pool.evidence.literal,
    ),
)
FEATURES: Final = (
    *_OWN,
    RankFeature(
        "newest_first",
        1.0,
        _PRIORS,
        "is the newest of several complete answers",
        _newest_first,
    ),
)
FEATURES_OF_GROUP: Final[Mapping[FeatureGroup, tuple[RankFeature, ...]]] = {
    group: tuple(feature for feature in FEATURES if feature.group is group) for group in FeatureGroup
}
_FEATURE_NUMBERS: Final = {feature.name: number for number, feature in enumerate(FEATURES)}
# The group of a channel's features; all other features concern neighbors or small corrections.
GROUP_OF_CHANNEL: Final[Mapping[Channel, FeatureGroup]] = {
    Channel.LEXICAL: FeatureGroup.WORDS,
    Channel.DENSE: FeatureGroup.MEANING,
    Channel.GRAPH: FeatureGroup.LINKS,
}


def neighbor_positions(seqs: Seqs, neighbours: Seqs) -> Seqs:
    """Return the position of each neighbor in the pool, -1 if it is not in the pool."""
    if not len(seqs):
        return np.empty(0, np.int64)
    positions = np.searchsorted(seqs, neighbours).clip(max=len(seqs) - 1)
    return np.where(seqs[positions] == neighbours, positions, -1)


def words_known(evidence: Evidence) -> float:
    """Return how much the words count: 0 if the workspace contains few of the query's, 1 if it contains most."""
    low, high = VOCABULARY_COVERED
    return min(max((evidence.vocabulary_coverage - low) / (high - low), 0.0), 1.0)


def take_at(values: Floats | Flags, positions: Seqs) -> Floats:
    """Return the values at some positions of the pool, 0 where there is none."""
    # The last place, which -1 names, is for no position.
    padded = np.zeros(len(values) + 1, np.float32)
    padded[:-1] = values
    taken: Floats = padded[positions]
    return taken


def _share_of_best(scores: Floats, convincing: float) -> Floats:
    best = max(float(scores.max(initial=0.0)), convincing)
    return (np.maximum(scores, 0) / max(best, 1e-9)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of the pool, best first; `values` has one row per feature.

    `successions` are positions of memories of which the newest is current, oldest first.
    """

    pool: CandidatePool
    order: Seqs
    values: Floats
    score: Floats
    successions: Sequence[Seqs] = ()

    @property
    def evidence(self) -> Evidence:
        """Return the evidence that was ranked."""
        return self.pool.evidence

    @property
    def parts(self) -> Mapping[str, Floats]:
        """Return the contribution of each feature to the scores."""
        return {feature.name: feature.weight * row for feature, row in zip(FEATURES, self.values, strict=True)}

    def part(self, name: str) -> Floats:
        """Return the contribution of one feature to the scores."""
        number = _FEATURE_NUMBERS[name]
        share: Floats = FEATURES[number].weight * self.values[number]
        return share


def rank(evidence: Evidence) -> Ranking:
    """Order the pool, best first; equal scores go to the newer memory."""
    pool = CandidatePool(evidence)
    values: Floats = np.array([feature.compute(pool) for feature in FEATURES], np.float32)
    score = _sum(FEATURES, values)
    order = np.lexsort((-evidence.seqs, -score))
    return Ranking(pool, order, values, score)


def rank_newest_first(ranking: Ranking, groups: Sequence[Sequence[int]]) -> Ranking:
    """Return a ranking in which each group is ordered by time, newest first, superseded members last."""
    if not groups:
        return ranking
    evidence, values = ranking.evidence, ranking.values.copy()
    successions = _sort_by_time(evidence, groups)
    values[len(_OWN)] += _place_by_time(ranking.score, successions) - ranking.score
    score = _sum(FEATURES, values)
    order = np.lexsort((-evidence.seqs, -score))
    return replace(ranking, order=order, values=values, score=score, successions=successions)


def _sum(features: tuple[RankFeature, ...], values: Sequence[Floats | Flags] | Floats) -> Floats:
    # Summed row by row: a matrix product may round equal columns differently, and equal scores go by age.
    score: Floats = (_weigh_column(features) * np.array(values, np.float32)).sum(axis=0)
    return score


@cache
def _weigh_column(features: tuple[RankFeature, ...]) -> Floats:
    return np.array([[feature.weight] for feature in features], np.float32)
