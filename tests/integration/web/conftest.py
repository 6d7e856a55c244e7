import pytest


@pytest.fixture(autouse=True)
def _away(tmp_path_factory, monkeypatch):
    """Work in a folder of no project: what is stored in one goes to its own workspace."""
    monkeypatch.chdir(tmp_path_factory.mktemp("away"))
