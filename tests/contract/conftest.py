import hashlib
import inspect
import shutil

import pytest

from pipeline.index import compile as compilation, encoder, onnx_graph, token_table
from pipeline.index.compile import compile_encoder
from pipeline.index.encoder import background_messages


@pytest.fixture(scope="session")
def compiled_model(request):
    """Where the default model is compiled, kept between runs until the code that compiles it changes."""
    modules = (compilation, encoder, onnx_graph, token_table)
    source = "".join(map(inspect.getsource, modules)) + "".join(background_messages())
    cache = request.config.cache.mkdir("encoders")
    models_dir = cache / hashlib.sha256(source.encode()).hexdigest()[:16]
    for outdated in set(cache.iterdir()) - {models_dir}:
        shutil.rmtree(outdated)
    return compile_encoder("all-MiniLM-L6-v2", models_dir)
