import pytest

from tests.fakes.recall_workspace import open_recall_workspace


@pytest.fixture
def workspace():
    with open_recall_workspace() as workspace:
        yield workspace
