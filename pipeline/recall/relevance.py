"""Compute the probability that a memory is about the query.

Scores are relative to the best hit, so they cannot tell a good answer from the least bad one. Relevance uses three
absolute measures: whether the memory is closer to the query than all general messages to assistants, whether it
shares rare words, and whether the workspace contains the query's words at all. A logistic regression turns them into
a probability, which falls with the lengths of both. It is too sure, so its odds are calibrated.
"""

import math
from typing import TypeVar

import numpy as np

from pipeline.index.dense import DenseScores
from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import Floats, Seqs, values_at
from pipeline.recall.evidence import Evidence, Flags
from pipeline.recall.rank import CONVINCING_COSINE, Ranking, take_at, words_known
from pipeline.text.languages import is_foreign, may_be_foreign
from pipeline.text.messages import is_small_talk

# Fitted to the calibration part of tests/data/messages.json by maximum likelihood, using each message's most probable
# hit.
INTERCEPT = -5.1
CLOSER_THAN_BACKGROUND = 9.7
SHARED_INFORMATION = 2.0
VOCABULARY_COVERAGE = 2.4
# A long prompt resembles long memories by chance. Of prompts and memories with more words and tokens than these, the
# logit falls by the product of both logarithms (decision 0056). Lessons have a bar of their own, which compares them.
LONG_PROMPT_WORDS = 12
LONG_MEMORY_TOKENS = 8
CHANCE_RESEMBLANCE = 2.5
# Every file of a project is slightly related to a question about it, and an outline contains many words: fitted to
# the labels of the 454 outlines that are found for tests/data/prompts, so it needs no calibration. The lower of the two
# formulas applies.
OUTLINE_INTERCEPT = -1.3
OUTLINE_SLOPE = 0.28
# A fact about the user that answers a question about them, whatever words and language both have.
ANSWERS_USER = 2.5
# So much lower is the logit of the share of questions with an answer, measured on five sets (decision 0111).
OVERCONFIDENCE = 1.5
# Between two languages, a memory that is further from the query than this, compared with the background, needs the
# same relevance as one in the query's language. Chosen on tests/data and XQuAD (decision 0020), for an English query
# and for another.
CLOSE_TO_ENGLISH = -0.1
CLOSE_TO_FOREIGN = -0.2
# More than two computations of a logit differ.
ROUNDING = 1e-3

P = TypeVar("P", float, Floats)


def calibrate(probability: P) -> P:
    """Return the share of questions with an answer, for a probability by the fitted coefficients."""
    # An array keeps its precision, which its type does not say.
    return probability / (probability + (1 - probability) * math.exp(OVERCONFIDENCE))  # type: ignore[return-value]


def fitted(relevance: float) -> float:
    """Return the probability by the fitted coefficients, which `calibrate` turns into a relevance."""
    return relevance / (relevance + (1 - relevance) * math.exp(-OVERCONFIDENCE))


# From the first value on, a memory is injected; below the last, a memory is only shown if requested. Between the first
# two, the history of a prompt shows it as left out.
RELEVANT, NEARLY_RELEVANT, IRRELEVANT = calibrate(0.5), calibrate(0.34), calibrate(0.01)
# From this value on, an outline is injected.
OUTLINE_RELEVANT = 0.34
# A little above the logit of IRRELEVANT before calibration, for rounding.
IRRELEVANT_LOGIT = math.log(0.01 / 0.99) + 1e-3


def relevance(ranking: Ranking) -> Floats:
    """Return the probability that each memory of the pool, or a turn next to it, is about the query, 0 to 1."""
    evidence, pool = ranking.evidence, ranking.pool
    logit = (
        INTERCEPT
        + CLOSER_THAN_BACKGROUND * _closer_than_background(evidence)
        + SHARED_INFORMATION * np.sqrt(evidence.information)
        # Questions about the user share no words with short facts: "where do I live" and "user city: Tampa".
        + VOCABULARY_COVERAGE * np.where(_may_answer(evidence), 1.0, evidence.vocabulary_coverage)
    )
    # The lengths alone make no memory irrelevant.
    by_chance = logit - CHANCE_RESEMBLANCE * _excess_length(evidence)
    logit = np.maximum(by_chance, np.minimum(logit, IRRELEVANT_LOGIT))
    logit = np.where(evidence.answers_user, np.maximum(logit, ANSWERS_USER), logit)
    outlined = np.minimum(logit, OUTLINE_INTERCEPT + OUTLINE_SLOPE * logit) + OVERCONFIDENCE
    logit = np.where(evidence.outlines, outlined, logit)
    probability: Floats = (1 / (1 + np.exp(-logit))).astype(np.float32)
    beside = np.maximum(take_at(probability, pool.before), take_at(probability, pool.after))
    # An outline, which is calibrated already, makes no linked memory more relevant than itself.
    surest = np.where(evidence.outlines, calibrate(probability), probability).max(initial=0.0)
    probability = np.maximum.reduce(
        [probability, beside, np.float32(evidence.link_relevance * surest) * evidence.linked]
    )
    # What replaces a relevant statement is as relevant: an outdated one is not shown without it.
    for members in ranking.successions:
        probability[members] = np.maximum.accumulate(probability[members])
    return calibrate(probability)


def bound_lesson_relevance(words: LexicalScores, meaning: DenseScores, seqs: Seqs, *, by_words: bool = False) -> Floats:
    """Return the relevance that each of some lessons has at most by itself, among lessons.

    With `by_words`, the lessons count as memories without a vector of their present text.
    """
    closer = np.full(len(seqs), min(0.0, CONVINCING_COSINE - meaning.background_similarity), np.float32)
    if not by_words:
        known = meaning.closeness(meaning.of(seqs)) - meaning.background_similarity
        closer = np.where(meaning.embedded(seqs), known, closer)
    logit = (
        INTERCEPT
        + CLOSER_THAN_BACKGROUND * closer
        + SHARED_INFORMATION * np.sqrt(values_at(words.information, seqs))
        + VOCABULARY_COVERAGE * words.vocabulary_coverage
        + ROUNDING
    )
    bound: Floats = (1 / (1 + np.exp(-logit))).astype(np.float32)
    return calibrate(bound)


def _excess_length(evidence: Evidence) -> Floats:
    """Return how much longer query and memory are than short ones: the product of the logarithms."""
    query = math.log(max(evidence.query_words / LONG_PROMPT_WORDS, 1.0))
    memory = np.log(np.maximum(evidence.lengths / LONG_MEMORY_TOKENS, 1.0))
    product: Floats = np.where(evidence.lessons, 0, query * memory).astype(np.float32)
    return product


def _may_answer(evidence: Evidence) -> Flags:
    """Return which facts about the user may answer a question in the first person: the one that it asks for, or any."""
    asked = evidence.answers_user
    return asked if asked.any() else evidence.about_user


def _closer_than_background(evidence: Evidence) -> Floats:
    """Return how much closer each memory is to the query than the background messages.

    A memory without a vector is judged by words, but small talk is closer to the background than answers are.
    """
    known = evidence.dense - evidence.background_similarity
    unknown = min(0.0, CONVINCING_COSINE - evidence.background_similarity)
    return np.where(evidence.unembedded, unknown, known).astype(np.float32)


def closeness(ranking: Ranking) -> Floats:
    """Return how much closer each memory, or a turn next to it, is to the query than the background messages.

    It is negative infinity for a memory without a vector: its meaning is unknown.
    """
    evidence, pool = ranking.evidence, ranking.pool
    own = np.where(evidence.unembedded, -np.inf, _closer_than_background(evidence)).astype(np.float32)
    if not len(own):
        return own
    around = [np.where(places >= 0, own[places], -np.inf) for places in (pool.before, pool.after)]
    closest: Floats = np.maximum(own, np.maximum(*around)).astype(np.float32)
    return closest


def least_relevance(evidence: Evidence, query: str, asked: float | None) -> float:
    """Return the requested minimum relevance or, by default, the lowest that any memory needs.

    If the workspace does not contain the query's words, this is lower than what a memory in the query's language needs.
    Thanks and praise ask for nothing, so only a relevant memory answers them.
    """
    if asked is not None:
        return asked
    return RELEVANT if is_small_talk(query) else calibrate(fitted(IRRELEVANT) * words_known(evidence))


def needs_relevance(query: str, content: str, least: float, asked: float | None, close: float) -> float:
    """Return the minimum relevance of one memory; `close` is its closeness.

    Between two languages, a low relevance means little, because it depends on common words: there, closeness decides.
    """
    if asked is not None:
        return least
    is_foreign_query = may_be_foreign(query)
    if close < (CLOSE_TO_FOREIGN if is_foreign_query else CLOSE_TO_ENGLISH):
        return IRRELEVANT
    return least if is_foreign_query or is_foreign(content) else IRRELEVANT


def may_be_relevant(query: str, probable: Floats, least: float, asked: float | None, close: Floats) -> Flags:
    """Return which memories may have the minimum relevance in any language."""
    if asked is not None:
        return probable >= least
    closest = CLOSE_TO_FOREIGN if may_be_foreign(query) else CLOSE_TO_ENGLISH
    return (probable >= max(least, IRRELEVANT)) | ((probable >= least) & (close >= closest))


def is_relevant(query: str, content: str, probable: float, least: float, asked: float | None, close: float) -> bool:
    """Return whether a memory has the minimum relevance; its language is only read if that depends on it."""
    if probable >= max(least, IRRELEVANT):
        return True
    return probable >= least and probable >= needs_relevance(query, content, least, asked, close)
