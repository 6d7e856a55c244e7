import hashlib
import inspect
from urllib.parse import urlsplit

import pytest

from pipeline.index import compile as compilation, encoder
from pipeline.index.compile import compile_encoder
from pipeline.store import objects
from tests.support.gate import gate_before
from tests.support.stack import Stack

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture(scope="session")
def models(request):
    """A folder with the default encoder, compiled once and kept between runs until its code changes."""
    source = "".join(inspect.getsource(module) for module in (compilation, encoder))
    folder = request.config.cache.mkdir("models") / hashlib.sha256(source.encode()).hexdigest()[:16]
    compile_encoder(MODEL, folder)
    return folder


@pytest.fixture
def make_stack(tmp_path, models):
    """Make stacks of real processes; whatever still runs at the end of the test is ended."""
    made = []

    def make(home=None, **settings):
        stack = Stack(home or tmp_path / f"home-{len(made)}", models, **settings)
        made.append(stack)
        return stack

    yield make
    for stack in made:
        stack.stop()


@pytest.fixture
def gate(bucket, monkeypatch):
    """A gate before the S3 server, by which alone the environment knows it."""
    # Nobody here waits for a storage that is far away.
    monkeypatch.setattr(objects, "READ_S", 1)
    with gate_before(urlsplit(bucket.endpoint).port) as gate:
        for name, value in {**bucket.environment, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{gate.port}"}.items():
            monkeypatch.setenv(name, value)
        yield gate
