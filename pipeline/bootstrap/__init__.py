"""The composition root: the only place that wires settings, stores, indexes and stages together."""

from pipeline.text.redaction import redact


def mask(text: str) -> str:
    """Return a text without secrets."""
    return redact(text).text
