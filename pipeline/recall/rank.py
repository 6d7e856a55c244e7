"""From evidence to one order.

A memory is judged by itself, by its neighbours in its session, and by its session: an answer often shares no word
with the question, but the turn before it does. docs/recall.md gives the formulas, their sources, and what each
part is worth.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.index.rows import Floats, Seqs

Integers = Seqs
Flags = NDArray[np.bool_]

# From here on a channel's best counts in full: this share of the question's information, this much of a cosine.
# Below it, the nearest of memories that are all far away must not outweigh one that holds the question's words.
CONVINCING_COVERAGE = 0.3
CONVINCING_COSINE = 0.6

# Where a workspace knows less of a question's words than this share (another language, most often), meaning decides
# alone; from the second on words count in full.
FAMILIAR = (0.4, 0.7)
UNKNOWN_WORDS_GAIN = 4.0

WEIGHTS: Mapping[str, float] = {
    "lexical": 0.275,
    "dense": 0.15,
    "context": 0.35,
    "beside": 0.2,
    "near": 0.1,
    "answer": 0.225,
    "session": 0.125,
    "session_words": 0.2,
    "speaker": 0.1,
    "names_time": 0.1,
    "asks": -0.06,
    "length": 0.025,
    "importance": 0.04,
    "recency": 0.02,
    "reinforcement": 0.01,
    "moment": 0.15,
    "personal_fact": 0.15,
    "literal": 2.0,
}
RECENCY_HALF_LIFE_DAYS = 30.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for each memory of the pool; arrays are aligned with `seqs`, which ascend.

    Scores are raw: BM25 sums, and cosines scaled so that unrelated texts are at 0, `strangers` the nearest background
    message's among them. `information` and `familiarity` are what the lexical index says of words that the world
    seldom uses. `before` and `after` are the row numbers of the neighbours, 0 for none.
    """

    seqs: Integers
    sessions: Integers
    before: Integers
    after: Integers
    lexical: Floats
    session_lexical: Floats
    ceiling: float
    session_ceiling: float
    information: Floats
    dense: Floats
    context: Floats
    strangers: float
    familiarity: float
    lengths: Floats
    asks: Flags
    speaks: Flags
    names_time: Flags
    literal: Flags
    moment: Flags
    personal_fact: Flags
    importance: Floats
    days: Floats
    repeats: Floats


@dataclass(frozen=True, slots=True)
class Ranking:
    """The pool's order, best first; `values` has a row for each weight."""

    evidence: Evidence
    order: Integers
    own: Floats
    values: Floats
    score: Floats

    @property
    def parts(self) -> Mapping[str, Floats]:
        """Return every part of the scores; they add up."""
        return {name: weight * row for (name, weight), row in zip(WEIGHTS.items(), self.values, strict=True)}


def rank(evidence: Evidence) -> Ranking:
    """Order the pool, best first; equal scores go to the newer memory."""
    trust = _trust_in_words(evidence)
    lexical = trust * _of_best(evidence.lexical, CONVINCING_COVERAGE * evidence.ceiling)
    dense = _of_best(evidence.dense, CONVINCING_COSINE)
    own = ((lexical + dense) / 2).astype(np.float32)
    before = neighbour_places(evidence.seqs, evidence.before)
    after = neighbour_places(evidence.seqs, evidence.after)
    asked = _at(evidence.asks, before) * _at(own, before)
    # Measured from the newest candidate, not from the clock: the same data gives the same answer tomorrow.
    age = evidence.days.max(initial=0.0) - evidence.days
    named: dict[str, Floats | Flags] = {
        "lexical": lexical,
        "dense": (1 + (1 - trust) * UNKNOWN_WORDS_GAIN) * dense,
        "context": trust * _of_best(evidence.context, CONVINCING_COSINE),
        "beside": trust * np.maximum(_at(own, before), _at(own, after)),
        "near": trust * np.maximum(_at(_at(own, before), before), _at(_at(own, after), after)),
        "answer": trust * asked,
        "session": trust * _best_of_session(evidence.sessions, own),
        "session_words": trust * _of_best(evidence.session_lexical, CONVINCING_COVERAGE * evidence.session_ceiling),
        "speaker": evidence.speaks,
        "names_time": evidence.names_time,
        "asks": evidence.asks,
        "length": np.log(np.maximum(evidence.lengths, 1)),
        "importance": evidence.importance - 0.5,
        "recency": np.exp2(-age / RECENCY_HALF_LIFE_DAYS),
        "reinforcement": np.log1p(evidence.repeats),
        "moment": evidence.moment,
        "personal_fact": evidence.personal_fact,
        "literal": evidence.literal,
    }
    values: Floats = np.array([named[name] for name in WEIGHTS], np.float32)
    # Added up row by row: a matrix product may round equal columns differently, and equal scores go by age.
    score: Floats = (np.array(list(WEIGHTS.values()), np.float32)[:, None] * values).sum(axis=0)
    order = np.lexsort((-evidence.seqs, -score))
    return Ranking(evidence, order, own, values, score)


def _trust_in_words(evidence: Evidence) -> Floats:
    """Return how far words and what they lift may decide: fully for what has no vector to be judged by."""
    low, high = FAMILIAR
    trust = min(max((evidence.familiarity - low) / (high - low), 0.0), 1.0)
    return np.where(evidence.dense == 0, 1.0, trust).astype(np.float32)


def neighbour_places(seqs: Integers, neighbours: Integers) -> Integers:
    """Return where in the pool each neighbour stands, -1 for one that is not in it."""
    if not len(seqs):
        return np.empty(0, np.int64)
    places = np.searchsorted(seqs, neighbours).clip(max=len(seqs) - 1)
    return np.where(seqs[places] == neighbours, places, -1)


def _at(values: Floats | Flags, places: Integers) -> Floats:
    if not len(values):
        return np.empty(0, np.float32)
    return np.where(places >= 0, values[places], 0).astype(np.float32)


def _of_best(scores: Floats, convincing: float) -> Floats:
    best = max(float(scores.max(initial=0.0)), convincing)
    return (np.maximum(scores, 0) / max(best, 1e-9)).astype(np.float32)


def _best_of_session(sessions: Integers, own: Floats) -> Floats:
    if not len(sessions):
        return own
    _, places = np.unique(sessions, return_inverse=True)
    best = np.zeros(int(places.max()) + 1, np.float32)
    np.maximum.at(best, places, own)
    return best[places]
