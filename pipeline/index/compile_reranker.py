"""Compile a cross-encoder of sentence-transformers into the ONNX form that `reranker` runs."""

import gc
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from config.foreign_variables import disable_telemetry
from pipeline.errors import EncoderUnavailable
from pipeline.index.compile import compile_once
from pipeline.index.encoder import FORMAT, FP32, INT8, Manifest
from pipeline.index.onnx_graph import quantize
from pipeline.index.reranker import MOST_TOKENS, OnnxReranker, parse_reranker_name, reranker_name
from pipeline.index.row_arrays import Floats
from pipeline.index.torch_export import export_graph, save_tokenizer, without_exporter, write_graph

log = logging.getLogger(__name__)

# Differences from the original, as a share of the range of its scores.
LARGEST_DIFFERENCE: Final = 0.01
LARGEST_QUANTIZED_DIFFERENCE: Final = 0.1

_QUESTIONS: Final = ("Which database does the queue use?", "Warum schlägt der Test fehl?", "ok")
_TEXTS: Final = (
    "We moved the queue from Redis to SQLite last Thursday.",
    "Der Test in verdict-policy.ts schlägt fehl, weil die Uhr fehlt.",
    "The cache is cleared after every release. " * 4,
    "def load(path: Path) -> dict[str, int]: return json.loads(path.read_text())",
)
_PAIRS: Final = [(question, text) for question in _QUESTIONS for text in _TEXTS]


def compile_reranker(model: str, models_dir: Path) -> Path:
    """Compile a cross-encoder (name or path) unless it is compiled; return its directory."""
    return compile_once(reranker_name(model), models_dir, _build)


def _build(name: str, directory: Path) -> None:
    """Export a cross-encoder into a directory and compare its scores with the original's."""
    model = parse_reranker_name(name) or name
    original = _load_original(model)
    save_tokenizer(model, original.tokenizer, directory)
    exported = directory / "exported.onnx"
    _export(original, exported)
    manifest = Manifest(
        model=name,
        dimension=1,
        max_tokens=original.max_seq_length or MOST_TOKENS,
        pad_id=original.tokenizer.pad_token_id or 0,
        query_prompt="",
        document_prompt="",
        precision=FP32,
        format=FORMAT,
        sha256={},
    )
    expected: Floats = original.predict(_PAIRS, show_progress_bar=False)
    # The original takes as much memory as its graph.
    del original
    gc.collect()
    write_graph(manifest, exported)
    # Written so that NaN is rejected, too.
    if not (difference := _compare(directory, expected)) <= LARGEST_DIFFERENCE:
        raise EncoderUnavailable(f"compiled {model} differs from the original by {difference:.4f} of its range")
    quantized = directory / "quantized.onnx"
    quantize(exported, quantized)
    write_graph(replace(manifest, precision=INT8), quantized)
    quantized.unlink()
    if not (difference := _compare(directory, expected)) <= LARGEST_QUANTIZED_DIFFERENCE:
        log.info("%s is used unquantized: eight bits differ by %.4f of its range", model, difference)
        write_graph(manifest, exported)
    exported.unlink()


def _load_original(model: str) -> Any:
    """Load a cross-encoder with one score; never from pickled weights, and never with code of its own."""
    disable_telemetry()
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise without_exporter(model) from error

    # The plain attention exports to operators that every version of ONNX Runtime supports.
    options = {"attn_implementation": "eager", "use_safetensors": True}
    try:
        loaded = CrossEncoder(model, device="cpu", model_kwargs=options)
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"sentence-transformers cannot load {model}: {error}") from error
    if len(loaded) != 1 or loaded.num_labels != 1:
        raise EncoderUnavailable(f"{model} is not a cross-encoder that gives one score for a pair of texts")
    return loaded.float().eval()


def _export(original: Any, path: Path) -> None:
    def activate(features: Any) -> Any:
        return original.activation_fn(features["scores"].float())[:, 0]

    export_graph(original, original.preprocess(_PAIRS[:3]), activate, path)


def _compare(directory: Path, expected: Floats) -> float:
    """Return the largest difference from the original's scores, as a share of their range."""
    reranker = OnnxReranker.load(directory, threads=1)
    scores = np.concatenate([list(reranker.score(question, _TEXTS)) for question in _QUESTIONS])
    return float(np.abs(scores - expected).max() / max(float(np.ptp(expected)), 1e-6))
