"""Literals: what a query quotes by its spelling, and the one memory that holds it.

A path, ticket or symbol counts, and so does any run of words, such as an error message, that stands in a memory word
for word. What stands in several memories tells none of them apart and is left to the ranking.
"""

from collections.abc import Mapping, Sequence
from sqlite3 import Connection

import numpy as np

from pipeline.index.lexical import LexicalScores
from pipeline.index.rows import Seqs
from pipeline.recall.features import Flags
from pipeline.recall.query import ParsedQuery
from pipeline.store import memories
from pipeline.text.tokens import search_tokens

# More holders than this cannot come down to one by what the filter hides.
MOST_HOLDERS = 16
SHORTEST_RUN = 5
# A run can only be in a memory that holds a good part of the question.
RUN_COVERAGE = 0.5
RUN_CANDIDATES = 4


def identifier_holders(question: ParsedQuery, lexical: LexicalScores) -> list[Seqs]:
    """Return, for each identifier of the question that few memories hold, their row numbers."""
    rare = (token for token in question.identifiers if 0 < lexical.frequencies.get(token, 0) <= MOST_HOLDERS)
    return [lexical.corpus.posting(token)[0] for token in rare]


def literal_flags(
    db: Connection, question: ParsedQuery, lexical: LexicalScores, holders: Sequence[Seqs], seqs: Seqs
) -> Flags:
    """Tell which memories of the pool are the only visible one to hold a literal of the question."""
    flags = np.zeros(len(seqs), np.bool_)
    for found in (np.isin(seqs, holder) for holder in holders):
        if found.sum() == 1:
            flags |= found
    if len(question.tokens) >= SHORTEST_RUN and not flags.any():
        alone = _only_run(_texts(db, lexical, seqs), question.tokens)
        flags |= seqs == alone
    return flags


def _texts(db: Connection, lexical: LexicalScores, seqs: Seqs) -> Mapping[int, list[str]]:
    scores = lexical.of(seqs)
    near = scores >= RUN_COVERAGE * lexical.ceiling
    best = seqs[near][np.argsort(-scores[near], kind="stable")][:RUN_CANDIDATES]
    return {seq: search_tokens(memory.content) for seq, memory in memories.by_seqs(db, best.tolist()).items()}


def _only_run(texts: Mapping[int, Sequence[str]], asked: Sequence[str]) -> int:
    """Return the memory that alone holds the longest run of the question's tokens, 0 for none."""
    lengths = sorted(((longest_common_run(asked, tokens), seq) for seq, tokens in texts.items()), reverse=True)
    if not lengths or lengths[0][0] < SHORTEST_RUN or (len(lengths) > 1 and lengths[1][0] == lengths[0][0]):
        return 0
    return lengths[0][1]


def longest_common_run(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest run of tokens that stands in both, in order and without gaps."""
    best = 0
    row = [0] * (len(right) + 1)
    for token in left:
        row = [0, *(row[at] + 1 if token == other else 0 for at, other in enumerate(right))]
        best = max(best, *row)
    return best
