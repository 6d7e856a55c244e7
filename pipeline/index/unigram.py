"""A unigram tokenizer whose vocabulary takes a few megabytes.

The library keeps each byte of 250,000 pieces in a hash table: 280 MiB for the multilingual encoder. Here the vocabulary
is a sorted array of hashes. The library still normalizes, splits into words and post-processes, so the tokens are the
same. Source of the segmentation: Kudo, Subword Regularization, 2018.
"""

import json
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pipeline.kernel.lru import LruCache

if TYPE_CHECKING:
    from tokenizers import Encoding, NormalizedString, PreTokenizedString, Token, Tokenizer

# As the library: an unknown character costs more than the rarest piece.
UNKNOWN_PENALTY = 10.0
MOST_WORDS = 10_000
# Longer words are rare and would fill the cache.
LONGEST_CACHED = 32
# Characters that replace special tokens while a text is split.
PRIVATE_USE = range(0xE000, 0xF8FF)

# About two pieces share a bucket.
_BUCKETS = 1 << 17
_BUCKET_SHIFT = 64 - 17

# The score of the best segmentation up to a character, the start of its last piece, and the number of that piece.
_Step = tuple[float, int, int]


def load_tokenizer(file: Path) -> "Tokenizer | UnigramTokenizer":
    """Load the file of a tokenizer, with a smaller vocabulary if it is one of pieces."""
    from tokenizers import Tokenizer

    content = file.read_bytes()
    if b'"Unigram"' in content:
        described = json.loads(content)
        if _is_supported(described):
            return UnigramTokenizer.of(described)
    return Tokenizer.from_file(str(file))


class Pieces:
    """The pieces of a vocabulary and their scores, found by hash and compared as text."""

    def __init__(self, vocabulary: Iterable[tuple[str, float]]) -> None:
        pieces, scores = zip(*vocabulary, strict=True)
        hashes = np.fromiter(map(hash, pieces), np.int64, len(pieces))
        order = np.argsort(hashes, kind="stable")
        spelled = [pieces[row].encode() for row in order.tolist()]
        self._hashes = array("q", hashes[order].tobytes())
        buckets = (hashes[order] >> _BUCKET_SHIFT) + _BUCKETS // 2
        self._starts = array("q", np.searchsorted(buckets, np.arange(_BUCKETS + 1)).tobytes())
        self._text = b"".join(spelled)
        self._ends = array("q", np.cumsum(np.fromiter(map(len, spelled), np.int64, len(spelled))).tobytes())
        self._numbers = array("q", order.astype(np.int64).tobytes())
        self._scores = array("d", np.array(scores, np.float64)[order].tobytes())
        self.lowest = min(scores)
        self.longest = max(map(len, pieces))

    def find(self, piece: str) -> tuple[int, float] | None:
        """Return the number and the score of a piece, None if it is none."""
        key, hashes = hash(piece), self._hashes
        bucket = (key >> _BUCKET_SHIFT) + _BUCKETS // 2
        last = self._starts[bucket + 1] - 1
        # Backwards: of equal pieces, the library uses the last one.
        for row in range(last, self._starts[bucket] - 1, -1):
            if hashes[row] == key and self._spell(row) == piece:
                return self._numbers[row], self._scores[row]
        return None

    def _spell(self, row: int) -> str:
        return self._text[self._ends[row - 1] if row else 0 : self._ends[row]].decode()

    def segment(self, word: str, unknown: int) -> list[tuple[int, str]]:
        """Return the most probable pieces of a word with their numbers; unknown characters in a row are one piece."""
        best: list[_Step | None] = [(0.0, 0, 0), *[None] * len(word)]
        for start in range(len(word)):
            so_far = best[start]
            assert so_far is not None
            for end in range(start + 1, min(len(word), start + self.longest) + 1):
                found = self.find(word[start:end])
                if found is None:
                    if end > start + 1:
                        continue
                    found = unknown, self.lowest - UNKNOWN_PENALTY
                score, known = so_far[0] + found[1], best[end]
                if known is None or score > known[0]:
                    best[end] = score, start, found[0]
        return self._backtrack(word, best, unknown)

    def _backtrack(self, word: str, best: Sequence[_Step | None], unknown: int) -> list[tuple[int, str]]:
        pieces: list[tuple[int, str]] = []
        end, joins = len(word), False
        while end:
            node = best[end]
            assert node is not None
            _, start, number = node
            if joins and number == unknown:
                pieces[-1] = unknown, word[start:end] + pieces[-1][1]
            else:
                pieces.append((number, word[start:end]))
            end, joins = start, number == unknown
        # Unknown characters in a row may spell a piece.
        return [((self.find(text) or (unknown, 0.0))[0], text) for _, text in reversed(pieces)]


class UnigramTokenizer:
    """A tokenizer of the library with its own vocabulary; thread-safe."""

    def __init__(
        self, frame: "Tokenizer", pieces: Pieces, unknown: int, special: Sequence[tuple[str, int, bool]]
    ) -> None:
        self._frame = frame
        self._pieces = pieces
        self._unknown = unknown
        self._special = [(content, number) for content, number, _ in special]
        self._pattern = "|".join(r"\s*" * takes_left + re.escape(content) for content, _, takes_left in special)
        self._has_special = re.compile("|".join(re.escape(content) for content, _ in self._special) or r"(?!)")
        self._words: LruCache[str, list[Token]] = LruCache(MOST_WORDS)

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """Create a tokenizer from the content of its file."""
        from tokenizers import Tokenizer

        model = content["model"]
        vocabulary = model["vocab"]
        pieces, unknown = Pieces(vocabulary), model["unk_id"]
        special = [(token["content"], token["id"], token["lstrip"]) for token in content["added_tokens"]]
        names = list(dict.fromkeys([vocabulary[unknown][0], *(name for name, _, _ in special)]))
        small = model | {"vocab": [[name, 0.0] for name in names], "unk_id": 0}
        frame = Tokenizer.from_str(json.dumps(content | {"model": small}))
        return cls(frame, pieces, unknown, special)

    def encode(self, text: str, *, add_special_tokens: bool = False) -> "Encoding":
        """Return the tokens of a text."""
        from tokenizers import PreTokenizedString

        split = PreTokenizedString(text)
        tokenize = self._tokenize
        if self._has_special.search(text):
            tokenize = partial(self._tokenize_marked, self._mark_special(split, text))
        elif self._frame.normalizer is not None:
            split.normalize(self._frame.normalizer.normalize)
        if self._frame.pre_tokenizer is not None:
            self._frame.pre_tokenizer.pre_tokenize(split)
        split.tokenize(tokenize)
        encoding = split.to_encoding()
        return self.post_process(encoding) if add_special_tokens else encoding

    def post_process(
        self, encoding: "Encoding", pair: "Encoding | None" = None, *, add_special_tokens: bool = True
    ) -> "Encoding":
        """Add the special tokens around one text or two."""
        return self._frame.post_process(encoding, pair, add_special_tokens=add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """Return how many tokens post-processing adds."""
        return int(self._frame.num_special_tokens_to_add(is_pair))

    def _tokenize(self, word: str) -> "list[Token]":
        if len(word) > LONGEST_CACHED:
            return self._make_tokens(word)
        return self._words.get(word, lambda _: True, lambda: self._make_tokens(word))

    def _make_tokens(self, word: str) -> "list[Token]":
        from tokenizers import Token

        tokens, start = [], 0
        for number, piece in self._pieces.segment(word, self._unknown):
            end = start + len(piece.encode())
            tokens.append(Token(number, piece, (start, end)))
            start = end
        return tokens

    def _mark_special(self, split: "PreTokenizedString", text: str) -> Mapping[str, int]:
        """Replace the characters of special tokens by a mark, and normalize the other parts; return a row by mark."""
        from tokenizers import Regex

        unused = (sign for sign in map(chr, PRIVATE_USE) if sign not in text)
        marks = {content: next(unused) for content, _ in self._special}
        whole = re.compile(self._pattern)
        split.split(lambda _, part: part.split(Regex(self._pattern), "isolated"))

        def normalize(part: "NormalizedString") -> None:
            if whole.fullmatch(part.normalized):
                mark = marks[part.normalized.lstrip()]
                part.map(lambda _: mark)
            elif self._frame.normalizer is not None:
                self._frame.normalizer.normalize(part)

        split.normalize(normalize)
        return {mark: row for row, mark in enumerate(marks.values())}

    def _tokenize_marked(self, rows: Mapping[str, int], word: str) -> "list[Token]":
        from tokenizers import Token

        if word[-1] not in rows:
            return self._tokenize(word)
        content, number = self._special[rows[word[-1]]]
        return [Token(number, content, (0, len(word.encode())))]


def _is_supported(content: dict[str, Any]) -> bool:
    model = content["model"]
    return (
        model.get("type") == "Unigram"
        and model.get("unk_id") is not None
        and not model.get("byte_fallback")
        and not content.get("truncation")
        and not content.get("padding")
        and all(
            not (token["normalized"] or token["single_word"] or token["rstrip"]) for token in content["added_tokens"]
        )
    )
