"""Scores of a query and a memory read together, from a compiled cross-encoder, with ONNX Runtime and without torch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np

from pipeline.index.encoder import Manifest, load_graph, read_manifest
from pipeline.index.token_table import TABLE_INPUT, TOKENS_INPUT, TokenTable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from pipeline.index.unigram import UnigramTokenizer

# The time grows with the tokens: most memories are shorter than this, and a longer one starts with its subject.
MOST_TOKENS: Final = 128
# The rest of a pair belongs to the memory.
QUERY_SHARE: Final = 0.5

_PREFIX: Final = "reranker:"


class Reranker(Protocol):
    """A model that scores how well a text answers a query."""

    def score(self, query: str, texts: Sequence[str]) -> Iterator[float]:
        """Yield the score of each text in order, so that the caller can stop at its deadline."""


def reranker_name(model: str) -> str:
    """Return the name under which a cross-encoder is compiled: the same model may also be an encoder."""
    return _PREFIX + model


def parse_reranker_name(name: str) -> str | None:
    """Return the cross-encoder that the name of a compiled model refers to, None for an encoder."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None


class OnnxReranker:
    """A compiled cross-encoder; safe to call from several threads at once."""

    def __init__(
        self, manifest: Manifest, session: Any, tokenizer: "Tokenizer | UnigramTokenizer", table: TokenTable | None
    ) -> None:
        self._session, self._tokenizer, self._table = session, tokenizer, table
        self._inputs = frozenset(i.name for i in session.get_inputs())
        special = tokenizer.num_special_tokens_to_add(is_pair=True)
        self._window = min(manifest.max_tokens, MOST_TOKENS) - special

    @classmethod
    def load(cls, directory: Path, *, threads: int) -> Self:
        """Load a compiled cross-encoder for this many threads; raise EncoderUnavailable if it is missing or damaged."""
        manifest = read_manifest(directory)
        return cls(manifest, *load_graph(directory, manifest, threads))

    def score(self, query: str, texts: Sequence[str]) -> Iterator[float]:
        """Yield the score of each text in order."""
        asked = self._tokenizer.encode(query, add_special_tokens=False)
        asked.truncate(int(QUERY_SHARE * self._window))
        for text in texts:
            # One pair at a time: eight-bit weights scale activations by batch, so company would change a score.
            yield self._score_pair(asked, text)

    def _score_pair(self, asked: Any, text: str) -> float:
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        tokens.truncate(self._window - len(asked))
        pair = self._tokenizer.post_process(asked, tokens, add_special_tokens=True)
        ids = np.array([pair.ids], np.int64)
        inputs = {
            TOKENS_INPUT: ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([pair.type_ids], np.int64),
        }
        if self._table is not None:
            inputs[TABLE_INPUT] = self._table.rows(ids)
        return float(self._session.run(None, {name: inputs[name] for name in self._inputs})[0][0])
