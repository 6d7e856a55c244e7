"""Compile an encoder into the ONNX form that `encoder` runs, in a directory that is complete or absent.

The default encoders are built from their packages' weights (`packaged_encoders`), and other models are exported by
torch (`torch_export`). Weights are quantized to eight bits (`onnx_graph`); the embedding table is a separate file.
"""

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final

from filelock import FileLock

from config.operating_system import sync_tree
from config.process import stop_with_parent
from pipeline.index.encoder import encoder_directory, is_compiled
from pipeline.index.encoder_cache import find_cached, link_files, open_cache
from pipeline.index.packaged_encoders import build_packaged, is_packaged
from pipeline.index.reranker import parse_reranker_name
from pipeline.index.torch_export import build_encoder, build_reranker
from pipeline.kernel.errors import EncoderUnavailable

logger = logging.getLogger(__name__)

# The module name for running it as a program.
MODULE: Final = "pipeline.index.compile"


def compile_encoder(model: str, models_dir: Path) -> Path:
    """Compile an encoder (name or path) unless it is compiled; return its directory; EncoderUnavailable if it fails."""
    if take_cached(model, models_dir):
        return encoder_directory(model, models_dir)
    if not is_packaged(model):
        return compile_once(model, models_dir, build_encoder)
    if fill_cache(model) and take_cached(model, models_dir):
        return encoder_directory(model, models_dir)
    return compile_once(model, models_dir, build_packaged)


def fill_cache(model: str) -> bool:
    """Build a packaged encoder in the user's cache unless it is there; return False if there is no cache for it."""
    if find_cached(model) is not None:
        return True
    folder = open_cache(model) if is_packaged(model) else None
    if folder is None:
        return False
    compile_once(model, folder, build_packaged)
    return True


def take_cached(model: str, models_dir: Path) -> bool:
    """Take an encoder from the user's cache; return whether it was there."""
    cached = find_cached(model)
    if cached is None:
        return False
    compile_once(model, models_dir, lambda _model, directory: link_files(cached, directory))
    return True


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
            sync_tree(fresh)
            fresh.rename(target)
    return target


def compile_model(name: str, models_dir: Path) -> Path:
    """Compile an encoder or, with a reranker's name, a cross-encoder."""
    if parse_reranker_name(name) is None:
        return compile_encoder(name, models_dir)
    return compile_once(name, models_dir, build_reranker)


def compile_in_subprocess(model: str, models_dir: Path) -> None:
    """Compile a model in a process that ends, because compiling loads half a gigabyte."""
    command = [sys.executable, "-I", "-m", "reverie.run", MODULE, model, str(models_dir), str(os.getpid())]
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
