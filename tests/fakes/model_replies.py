"""The optional model without any network: answers each request as it is set to, and keeps what it was sent."""

import json
from collections.abc import Mapping
from typing import Any

from pipeline.features.model.extractor import Failure, ModelEndpoint, Reply


def reply_with(content: str) -> Reply:
    """Return an answer with a text as the format asks for."""
    return Reply(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode())


class ModelReplies:
    """Stands in for `post` of `pipeline.features.model.extractor`; `reply` is what every request gets."""

    endpoint = ModelEndpoint("http://model.test/v1")

    def __init__(self) -> None:
        self.reply: Reply | Failure = reply_with("fine")
        self.requests: list[Mapping[str, Any]] = []

    def post(self, _endpoint: ModelEndpoint, body: Mapping[str, Any]) -> Reply | Failure:
        self.requests.append(body)
        return self.reply

    @property
    def prompts(self) -> str:
        """Everything that was said to the model."""
        return json.dumps(self.requests, ensure_ascii=False)
