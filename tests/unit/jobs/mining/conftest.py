import pytest

from pipeline.features.model import extractor as model
from tests.fakes.model_replies import ModelReplies


@pytest.fixture
def replies(monkeypatch):
    replies = ModelReplies()
    monkeypatch.setattr(model, "post", replies.post)
    return replies
