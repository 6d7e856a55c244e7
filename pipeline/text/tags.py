"""The stored form of tags."""

from collections.abc import Iterable

from pipeline.text.normalize import normalize_tag
from pipeline.text.redaction import redact


def clean_tags(tags: Iterable[str]) -> dict[str, str]:
    """Return the stored form of each tag, without secrets, by the tag as given, also without secrets."""
    # The stored form of a secret would no longer be recognized as one.
    return {tag: normalize_tag(tag) for tag in (redact(tag).text for tag in tags)}
