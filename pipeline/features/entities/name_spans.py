"""Decode spaCy's entity recognizer for the tokens of an entire batch at once.

The recognizer reads a text from left to right and assigns each token an action: outside (O), a name of one token (U),
or the first, inner and last token of a longer name (B, I, L). Its scores depend only on the token and on the open
name. So one matrix product scores every token outside of names, and only the few inside of names are visited. spaCy's
own loop scores every action at every token and takes as long as all layers below it (decision 0016).
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class NameSpan(NamedTuple):
    """A found name: a label, and the tokens from `first` to before `end` of a text."""

    label: str
    first: int
    end: int


class NameSpanDecoder:
    """Decode names from the layers of a recognizer (`spacy.pipeline.ner.EntityRecognizer`)."""

    def __init__(self, recogniser: Any) -> None:
        self._tokens, lower, upper = recogniser.model.layers
        self._lower = lower
        self._bias: Floats = lower.get_param("b")
        self._weights: Floats = upper.get_param("W")
        self._score_bias: Floats = upper.get_param("b")
        names = map(recogniser.moves.get_class_name, range(recogniser.moves.n_moves))
        moves = [tuple(name.partition("-")[::2]) for name in names]
        self._places = {move: index for index, move in enumerate(moves)}
        # The empty label of U is for tokens that must not be part of a name.
        self._outside = [move for move in moves if move[0] in "OBU" and move != ("U", "")]
        self._begins = np.array([action == "B" for action, _ in self._outside])

    def decode(self, documents: Sequence[Any]) -> list[list[NameSpan]]:
        """Return the names in tokenized texts, in order: one list per text."""
        if not any(map(len, documents)):
            return [[] for _ in documents]
        features = self._lower.predict(self._tokens.predict(documents))
        ends = np.cumsum([len(document) for document in documents])
        actions = self._choose_outside(features, ends[[len(document) > 0 for document in documents]] - 1)
        return [
            list(self._walk(document, features[int(end) - len(document) :], actions[int(end) - len(document) : end]))
            for document, end in zip(documents, ends, strict=True)
        ]

    def _choose_outside(self, features: Floats, last: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the best action at each token outside of names, as an index into `_outside`."""
        # Row 0 of the features represents no token.
        sums = features[1:, 0] + (features[0, 1] + features[0, 2] + self._bias)
        scores = self._score(sums, [self._places[move] for move in self._outside])
        # A name that starts at the last token could not end.
        scores[np.ix_(last, self._begins)] = -np.inf
        best: NDArray[np.int64] = scores.argmax(axis=1)
        return best

    def _walk(self, document: Any, features: Floats, actions: NDArray[np.int64]) -> Iterator[NameSpan]:
        """Yield the names of a text; `features` start with the row before its first token."""
        end = 0
        for first in np.flatnonzero(actions != self._outside.index(("O", ""))).tolist():
            # Inside of an open name, or blank.
            if first < end or document[first].is_space:
                continue
            action, label = self._outside[actions[first]]
            end = first + 1 if action == "U" else self._find_end(features, first, len(actions), label)
            yield NameSpan(label, first, end)

    def _find_end(self, features: Floats, first: int, tokens: int, label: str) -> int:
        """Return the end of a name that starts at a token."""
        indexes = [self._places["I", label], self._places["L", label]]
        for token in range(first + 1, tokens - 1):
            # Rows are offset by one from tokens.
            sums = features[token + 1, 0] + features[first + 1, 1] + features[token, 2] + self._bias
            inside, last = self._score(sums[None], indexes)[0]
            if last > inside:
                return token + 1
        return tokens

    def _score(self, sums: Floats, indexes: Sequence[int]) -> Floats:
        scores: Floats = sums.max(axis=-1) @ self._weights[indexes].T + self._score_bias[indexes]
        return scores
