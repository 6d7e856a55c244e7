import pytest

from pipeline.features.model import extractor
from tests.fakes.model_replies import ModelReplies
from tests.fakes.recall_workspace import open_recall_workspace


@pytest.fixture
def workspace():
    with open_recall_workspace() as workspace:
        yield workspace


@pytest.fixture
def replies(monkeypatch):
    replies = ModelReplies()
    monkeypatch.setattr(extractor, "post", replies.post)
    return replies
