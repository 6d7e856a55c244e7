"""One form for what may be written in many: texts, names of sessions and owners, JSON, and the hash of a text."""

import hashlib
import re
import unicodedata
from typing import Any

from pipeline.text.redaction import redact

# Control characters but tab and line feed, and the invisible ones that reorder or hide text.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_SPACE = re.compile(r"\s+")


def normalize_text(text: str) -> str:
    """Return the text in NFC, with line feeds only, without control characters and outer space."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", unicodedata.normalize("NFC", unified)).strip()


def normalize_id(text: str) -> str:
    """Return a session's or an owner's name as it is stored: normalized, without secrets."""
    return redact(normalize_text(text)).text


def normalize_json(value: Any) -> Any:
    """Normalize every string of a JSON value, keys included."""
    if isinstance(value, str):
        return normalize_text(value)
    if isinstance(value, dict):
        return {normalize_text(str(key)): normalize_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normalize_json(item) for item in value]
    return value


def content_hash(content: str) -> str:
    """Return the hash under which two texts count as the same: white space aside, every character counts."""
    return hashlib.sha256(_SPACE.sub(" ", content).encode()).hexdigest()
