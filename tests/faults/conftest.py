from urllib.parse import urlsplit

import pytest

from pipeline.index.encoder import ENGLISH
from pipeline.kernel.store import objects
from tests.support.gate import gate_before
from tests.support.stack import Stack

MODEL = ENGLISH


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
