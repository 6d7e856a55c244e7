import hashlib
import inspect

import pytest

from pipeline.index import compile as compilation, encoder
from pipeline.index.compile import compile_encoder
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
