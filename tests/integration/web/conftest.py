import pytest


@pytest.fixture(autouse=True)
def _away(tmp_path_factory, monkeypatch):
    """Work in a folder of no project: what is stored in one goes to its own workspace."""
    monkeypatch.chdir(tmp_path_factory.mktemp("away"))


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Wait for the proof of a server in this process as for any answer: the machine may be busy."""
    monkeypatch.setattr("web.stack.own_server.PROOF_WITHIN_S", 30.0)
