"""What a front and a worker have in common: the mask of secrets."""

from pipeline.text.redaction import redact


def mask(text: str) -> str:
    """Return a text without secrets."""
    return redact(text).text
