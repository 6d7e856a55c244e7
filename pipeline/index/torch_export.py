"""Export any encoder or cross-encoder of sentence-transformers with torch. The default encoders do not need it."""

import gc
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from config.foreign_variables import disable_telemetry
from pipeline.index.compiled_files import (
    LOWEST_COSINE,
    LOWEST_QUANTIZED_COSINE,
    SAMPLE,
    Reference,
    encode_background,
    measure_agreement,
    write_manifest,
)
from pipeline.index.encoder import FORMAT, FP32, INT8, MODEL_FILE, TOKENIZER_FILE, Manifest, OnnxEncoder, Vectors
from pipeline.index.onnx_graph import quantize, separate_table
from pipeline.index.reranker import MOST_TOKENS, OnnxReranker, parse_reranker_name
from pipeline.index.row_arrays import Floats
from pipeline.index.token_table import TABLE_FILE
from pipeline.kernel.errors import EncoderUnavailable

logger = logging.getLogger(__name__)

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUT: Final = "result"
_DEFAULT_MAX_TOKENS: Final = 512
# Older releases of the E5 family name their training prompts only in their model cards.
_E5: Final = re.compile(r"e5-(small|base|large)(-v2)?/?$")
_QUERY_PROMPTS: Final = ("query",)
_DOCUMENT_PROMPTS: Final = ("document", "passage", "corpus")

# Differences of a cross-encoder from the original, as a share of the range of its scores.
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


def build_encoder(model: str, directory: Path) -> None:
    """Export an encoder into a directory and compare its vectors with the original's."""
    original = load_original("SentenceTransformer", model)
    query, document = choose_prompts(model, original.prompts)
    plain = _describe(model, original, original.get_embedding_dimension(), _DEFAULT_MAX_TOKENS)
    manifest = replace(plain, query_prompt=query, document_prompt=document)

    def normalize(features: Any) -> Any:
        import torch

        return torch.nn.functional.normalize(features["sentence_embedding"].float(), dim=-1)

    exported = _export(model, original, original.preprocess(list(SAMPLE[:3])), normalize, directory)
    reference = encode_reference(original, manifest)
    # The original takes as much memory as its graph, and is not needed any more.
    del original
    gc.collect()

    def measure() -> float:
        return 1 - measure_agreement(OnnxEncoder.load(directory, threads=1), reference)

    _publish(manifest, exported, measure, 1 - LOWEST_COSINE, 1 - LOWEST_QUANTIZED_COSINE)
    encode_background(OnnxEncoder.load(directory, threads=1), directory)


def build_reranker(name: str, directory: Path) -> None:
    """Export a cross-encoder into a directory and compare its scores with the original's."""
    model = parse_reranker_name(name) or name
    # Never from pickled weights, and never with code of its own.
    original = load_original("CrossEncoder", model, use_safetensors=True)
    if len(original) != 1 or original.num_labels != 1:
        raise EncoderUnavailable(f"{model} is not a cross-encoder that gives one score for a pair of texts")
    manifest = _describe(name, original, 1, MOST_TOKENS)
    activation = original.activation_fn

    def activate(features: Any) -> Any:
        return activation(features["scores"].float())[:, 0]

    exported = _export(model, original, original.preprocess(_PAIRS[:3]), activate, directory)
    expected: Floats = original.predict(_PAIRS, show_progress_bar=False)
    # The original takes as much memory as its graph.
    del original
    gc.collect()

    def measure() -> float:
        reranker = OnnxReranker.load(directory, threads=1)
        scores = np.concatenate([list(reranker.score(question, _TEXTS)) for question in _QUESTIONS])
        return float(np.abs(scores - expected).max() / max(float(np.ptp(expected)), 1e-6))

    _publish(manifest, exported, measure, LARGEST_DIFFERENCE, LARGEST_QUANTIZED_DIFFERENCE)


def load_original(kind: str, model: str, **options: Any) -> Any:
    """Load a model with a class of sentence-transformers on the CPU; raise EncoderUnavailable if that fails."""
    disable_telemetry()
    try:
        import sentence_transformers
    except ImportError as error:
        raise EncoderUnavailable(
            f"{model} cannot be loaded, because the package sentence-transformers is not installed. "
            "Install it with `pip install sentence-transformers onnx`, or use the default model."
        ) from error

    # The plain attention exports to operators that every version of ONNX Runtime supports.
    options["attn_implementation"] = "eager"
    try:
        loaded = getattr(sentence_transformers, kind)(model, device="cpu", model_kwargs=options)
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"sentence-transformers cannot load {model}: {error}") from error
    return loaded.float().eval()


def choose_prompts(model: str, named: dict[str, str]) -> tuple[str, str]:
    """Choose the prompts before a query and before a document."""
    query = next((named[n] for n in _QUERY_PROMPTS if named.get(n)), "")
    document = next((named[n] for n in _DOCUMENT_PROMPTS if named.get(n)), "")
    if not query and not document and _E5.search(model):
        return "query: ", "passage: "
    return query, document


def encode_reference(original: Any, manifest: Manifest) -> Reference:
    """Return the original's vectors of the sample."""

    def encode(prompt: str) -> Vectors:
        vectors: Vectors = original.encode(
            list(SAMPLE), prompt=prompt, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    return Reference(encode(manifest.document_prompt), encode(manifest.query_prompt))


def _describe(name: str, original: Any, dimension: int, max_tokens: int) -> Manifest:
    tokens = original.max_seq_length or max_tokens
    return Manifest(name, dimension, tokens, original.tokenizer.pad_token_id or 0, "", "", FP32, FORMAT, {})


def _export(model: str, original: Any, features: Any, finish: Callable[[Any], Any], directory: Path) -> Path:
    """Export a model's tokenizer, steps, and the function that computes the result; return the graph."""
    import torch

    tokenizer = original.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        raise EncoderUnavailable(f"{model} has no fast tokenizer")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.save(str(directory / TOKENIZER_FILE))
    names = [name for name in _INPUTS if name in features]

    class Pipeline(torch.nn.Module):  # type: ignore[misc]  # mypy does not read torch
        def __init__(self) -> None:
            super().__init__()
            self.steps = torch.nn.ModuleList(original)

        def forward(self, *inputs: Any) -> Any:
            features = dict(zip(names, inputs, strict=True))
            for step in self.steps:
                features = step(features)
            return finish(features)

    exported = directory / "exported.onnx"
    # The tracing exporter takes 2 s instead of 11, for an equally fast graph.
    torch.onnx.export(
        Pipeline().eval(),
        tuple(features[name] for name in names),
        str(exported),
        input_names=names,
        output_names=[_OUTPUT],
        dynamic_axes={name: {0: "batch", 1: "sequence"} for name in names} | {_OUTPUT: {0: "batch"}},
        dynamo=False,
    )
    return exported


def _publish(
    manifest: Manifest, exported: Path, measure: Callable[[], float], most: float, most_quantized: float
) -> None:
    """Write the eight-bit form of an export, or the export itself if eight bits differ too much from the original."""
    _write_graph(manifest, exported)
    # Written so that NaN is rejected, too.
    if not (difference := measure()) <= most:
        raise EncoderUnavailable(f"compiled {manifest.model} differs from the original by {difference:.4f}")
    quantized = exported.with_name("quantized.onnx")
    quantize(exported, quantized)
    _write_graph(replace(manifest, precision=INT8), quantized)
    quantized.unlink()
    if not (difference := measure()) <= most_quantized:
        logger.info("%s is used unquantized: eight bits differ by %.4f", manifest.model, difference)
        _write_graph(manifest, exported)
    exported.unlink()


def _write_graph(manifest: Manifest, graph: Path) -> None:
    separate_table(graph, graph.with_name(MODEL_FILE), graph.with_name(TABLE_FILE))
    write_manifest(manifest, graph.parent)
