import pytest

from pipeline.index import sentence_classifier
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, open_web
from web.http.app import create_app


@pytest.fixture(scope="session", autouse=True)
def _classifiers(tmp_path_factory):
    """Fit each classifier once, not in each data directory of a test: that takes three seconds."""
    load, fitted = sentence_classifier._load, tmp_path_factory.mktemp("classifiers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sentence_classifier,
            "_load",
            lambda encoders, examples, _folder: load(encoders, examples, fitted),
        )
        yield


@pytest.fixture(scope="module")
def module_container(tmp_path_factory):
    """The services of a web server for all tests of a module."""
    container = open_web(fast_settings(tmp_path_factory.mktemp("module") / "home"))
    yield container
    container.close()


@pytest.fixture(scope="module")
def shared(module_container):
    """A client of a workspace with one memory, for tests whose requests change nothing."""
    client = CheckedClient(create_app(module_container), module_container.token)
    client.write("A memory about nothing in particular")
    return client
