import pytest

from pipeline.jobs import model
from tests.fakes.model_replies import ModelReplies


@pytest.fixture
def replies(monkeypatch):
    replies = ModelReplies()
    monkeypatch.setattr(model, "post", replies.post)
    return replies
