import pytest

from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, open_web
from web.app import create_app


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A client of a workspace with one memory, for tests whose requests change nothing."""
    container = open_web(fast_settings(tmp_path_factory.mktemp("shared") / "home"))
    client = CheckedClient(create_app(container), container.token)
    client.write("A memory about nothing in particular")
    yield client
    container.close()
