"""The composition root: the only place that wires settings, stores, indexes and stages together."""

from typing import Any

from pipeline.text.redaction import redact, redact_json


def mask(text: str) -> str:
    """Return a text without secrets."""
    return redact(text).text


def mask_json(value: Any) -> Any:
    """Return a JSON value without secrets."""
    return redact_json(value)[0]
