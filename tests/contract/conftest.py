import hashlib
import inspect
import shutil

import pytest

from pipeline.index import compile as compilation, encoder, onnx_graph, token_table
from pipeline.index.compile import compile_encoder
from pipeline.index.encoder import background_messages
from tests.support.s3 import PROGRAM, serve_s3


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


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A server for S3 without a bucket."""
    if not PROGRAM.exists():
        pytest.skip("there is no SeaweedFS for this system")
    with serve_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server
