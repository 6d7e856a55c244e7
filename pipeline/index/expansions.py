"""Other names for terms of a query: score the memories that contain them, at a lower weight than the query's words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np

from pipeline.index.encoder import rarity
from pipeline.index.row_arrays import NO_ROWS, Floats, Seqs
from pipeline.index.segment import Posting, idf
from pipeline.kernel.records.recall import UsedBridge

# What another name for a term counts, of the term itself. Chosen on the part `dev` of tests/data/vocabulary.json
# (decision 0051).
ALIAS_WEIGHT = 0.9


@dataclass(frozen=True, slots=True)
class Expansion:
    """A term of a query, another name for it, both as search tokens, and the bridge between them."""

    term: tuple[str, ...]
    other: tuple[str, ...]
    bridge: UsedBridge


@dataclass(frozen=True, slots=True)
class ExpandedTerm:
    """An expansion, and the row numbers of the memories that contain the other name and not the query's term."""

    expansion: Expansion
    holders: Seqs


class TermCorpus(Protocol):
    """The statistics of an indexed corpus."""

    @property
    def count(self) -> int:
        """Return the number of memories."""

    @property
    def norms(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return the length normalization of each row number."""

    def posting(self, term: str) -> Posting:
        """Return the row numbers of the memories with a term, and the term's counts."""


def expand_terms(
    corpus: TermCorpus, postings: Mapping[str, Posting], expansions: Sequence[Expansion]
) -> list[ExpandedTerm]:
    """Return the expansions by which memories are found; `postings` are those of the query's tokens."""
    expanded = []
    for expansion in expansions:
        known = _intersect([postings[token][0] for token in expansion.term])
        holders = _intersect([corpus.posting(token)[0] for token in expansion.other])
        holders = np.setdiff1d(holders, known)
        if len(holders):
            expanded.append(ExpandedTerm(expansion, holders))
    return expanded


def add_terms(
    corpus: TermCorpus,
    postings: Mapping[str, Posting],
    terms: Sequence[ExpandedTerm],
    least_count: int,
    scores: Floats,
    information: Floats,
) -> None:
    """Add expanded terms to the score and the information of each row number; of several names, the best counts."""
    added = np.zeros((2, len(corpus.norms)), np.float32)
    for term in terms:
        expansion, holders = term.expansion, term.holders
        known = _intersect([postings[token][0] for token in expansion.term])
        frequency = len(np.union1d(holders, known))
        score = len(expansion.term) * ALIAS_WEIGHT * idf(corpus.count, frequency) / (1 + corpus.norms[holders])
        np.maximum.at(added[0], holders, score.astype(np.float32))
        # Both names are one piece of information, as rare as the more common of them.
        rarities = len(expansion.term) * min(_mean_rarity(expansion.term), _mean_rarity(expansion.other))
        worth = float(idf(max(corpus.count, least_count), frequency)) * rarities
        np.maximum.at(added[1], holders, np.float32(worth))
    if terms:
        scores += added[0]
        information += added[1]


def known_tokens(terms: Sequence[ExpandedTerm]) -> frozenset[str]:
    """Return the tokens of a query that the corpus contains by another name."""
    return frozenset(token for term in terms for token in term.expansion.term)


def _mean_rarity(tokens: Sequence[str]) -> float:
    return sum(map(rarity, tokens)) / len(tokens)


def _intersect(rows: Sequence[Seqs]) -> Seqs:
    return reduce(np.intersect1d, rows) if rows else NO_ROWS
