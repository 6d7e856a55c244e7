"""Find the memories that repeat a run of the query's tokens, or say all of it in one sentence.

Texts are compared as signs: a character for each token of the query, a line break for any other.
"""

from collections.abc import Sequence
from sqlite3 import Connection

import numpy as np

from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import NO_ROWS, Seqs
from pipeline.kernel.store.memory_columns import read_texts
from pipeline.recall.query import ParsedQuery
from pipeline.text.memory_terms import embedded_text
from pipeline.text.sentences import split_sentences
from pipeline.text.tokens import list_compound_tokens, list_compounds, list_tokens

# An identifier in more memories is a common word.
MAX_HOLDERS = 32
SHORTEST_RUN = 5
# A query that is nothing but a quotation or an error's message quotes from two words on.
SHORTEST_QUOTATION = 2
# Only a memory with a large share of the query's words can contain a run.
RUN_COVERAGE = 0.5
RUN_CANDIDATES = 8
# A sentence with fewer words of the query matches by chance.
MIN_STATING_WORDS = 3
MAX_STATING_CANDIDATES = 20

_OTHER = "\n"


class QuerySigns(dict[str, str]):
    """The signs of the tokens of each spelling, for the tokens of a query."""

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__()
        self._signs = {token: chr(number) for number, token in enumerate(dict.fromkeys(tokens), ord("0"))}
        self.query = self.join(tokens)

    def __missing__(self, compound: str) -> str:
        self[compound] = signs = self.join(list_compound_tokens(compound))
        return signs

    def join(self, tokens: Sequence[str]) -> str:
        """Return the signs of tokens."""
        return "".join(self._signs.get(token, _OTHER) for token in tokens)

    def read(self, text: str) -> str:
        """Return the signs of the tokens of a text."""
        return "".join(map(self.__getitem__, list_compounds(text)))


def find_longest_run(db: Connection, question: ParsedQuery, lexical: LexicalScores, top: Seqs) -> Seqs:
    """Return which of the best contain the longest run of the query's tokens; none if it is short."""
    asked = question.tokens
    shortest = min(max(len(asked), SHORTEST_QUOTATION), SHORTEST_RUN) if question.is_literal else SHORTEST_RUN
    if len(asked) < shortest:
        return NO_ROWS
    candidates = MAX_HOLDERS if question.is_literal else RUN_CANDIDATES
    near = top[lexical.of(top) >= RUN_COVERAGE * lexical.ceiling][:candidates]
    signs = QuerySigns(asked)
    texts = {seq: signs.join(list_tokens(embedded_text(row))) for seq, row in read_texts(db, near.tolist()).items()}
    lengths = {seq: measure_run(signs.query, text, shortest) for seq, text in texts.items()}
    longest = max(lengths.values(), default=0)
    holding = [seq for seq, length in lengths.items() if length == longest >= shortest]
    # If all the candidates contain it, others do as well.
    return np.array(holding if len(holding) < candidates else [], np.int64)


def find_stating(db: Connection, question: ParsedQuery, lexical: LexicalScores, top: Seqs) -> Seqs:
    """Return which of the best have all words of the query in one sentence."""
    asked = frozenset(question.tokens)
    if len(asked) < MIN_STATING_WORDS:
        return NO_ROWS
    has_all = np.ones(len(top), np.bool_)
    for token in asked:
        has_token = np.zeros(len(lexical.corpus.norms), np.bool_)
        has_token[lexical.postings[token][0]] = True
        has_all &= has_token[top]
    candidates = top[has_all][:MAX_STATING_CANDIDATES].tolist()
    signs = QuerySigns(question.tokens)
    wanted = frozenset(signs.query)
    stating = [
        seq
        for seq, row in read_texts(db, candidates).items()
        if any(wanted.issubset(signs.read(sentence)) for sentence in split_sentences(embedded_text(row)))
    ]
    return np.array(stating, np.int64)


def measure_run(asked: str, text: str, shortest: int) -> int:
    """Return the length of the longest run of signs in both, 0 if there is surely none of the shortest length."""
    # A length is tried only if a shorter one occurs.
    least, most = 0, min(len(asked), len(max(text.split(_OTHER), key=len)))
    if most < shortest:
        return 0
    while least < most:
        length = (least + most + 1) // 2
        runs = {text[at : at + length] for at in range(len(text) - length + 1)}
        if any(asked[at : at + length] in runs for at in range(len(asked) - length + 1)):
            least = length
        else:
            most = length - 1
    return least
