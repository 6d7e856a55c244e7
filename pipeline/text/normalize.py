"""Normal forms of texts, of names of sessions and owners, and of JSON; hashes of texts; removal of embedded files."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from pipeline.kernel.records import BRANCH_TAG
from pipeline.text.redaction import redact

# A shorter URI is an example in prose.
SHORTEST_DATA = 64
_TYPE = r"data:(?:[a-z]+/[\w.+-]+)?(?:;(?!base64)[\w.-]+(?:=[\w.-]+)?)*+"
_URI = re.compile(
    # In lines of base64, the last one is short.
    rf"{_TYPE};\s*base64,\s*+[\w+/%-]*+(?:\s*\n[ \t>]*+[\w+/%-]{{40,}}+)*+"
    r"(?:\s*\n[ \t>]*+[\w+/%-]++(?==|\s*[)\"'>]))?=*+"
    rf"|(?<=\"){_TYPE},[^\"]*+|(?<='){_TYPE},[^']*+|{_TYPE},[^\s)\"'>]*+",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"^[ \t>]*\[([^\]\n]{1,200})\]:\s*<?\0>?(?:[ \t]+[\"'(][^\n]*)?[ \t]*\n?", re.MULTILINE)
_PICTURE = re.compile(r"!?\[([^\[\]\n]*+)\]\(\s*<?\0>?(?:\s+(?:\"[^\"\n]*+\"|'[^'\n]*+'))?\s*\)")
_REFERENCE = re.compile(r"!\[([^\[\]\n]*+)\](?:\[([^\[\]\n]*+)\])?")
_MARK = "\0"


def drop_embedded_data(text: str) -> str:
    """Return a text without embedded files; of a picture, its description stays."""
    if "data:" not in text.lower():
        return text
    marked = _URI.sub(lambda uri: uri[0] if len(uri[0]) < SHORTEST_DATA else _MARK, text.replace(_MARK, ""))
    if _MARK not in marked:
        return text
    labels = {match[1].casefold() for match in _DEFINITION.finditer(marked)}
    plain = _PICTURE.sub(r"\1", _DEFINITION.sub("", marked))

    def describe(picture: re.Match[str]) -> str:
        return picture[1] if (picture[2] or picture[1]).casefold() in labels else picture[0]

    return _REFERENCE.sub(describe, plain).replace(_MARK, "")


# Control characters except tab and line feed, invisible characters that reorder or hide text, and terminal colors.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
    r"(?:(?<=\x1b)\[[0-9;]{0,16}[A-Za-z])?"
)
# Meaningless between letters of scripts that do not join: a name or token split by them looks unsplit.
_JOINED = "[!-~\u00a1-\u00ac\u00ae-\u052f]"
_UNSEEN = (
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u206a-\u206f\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
_ANY_UNSEEN = re.compile(_UNSEEN)
_INVISIBLE = re.compile(f"(?<={_JOINED}){_UNSEEN}++(?={_JOINED})")
# Ordering the marks of a letter takes quadratic time; no language uses this many.
_MARKS = re.compile(r"([^\w\s\x00-\u02ff]{30})([^\w\s\x00-\u02ff]++)")
_SPACE = re.compile(r"\s+")
MAX_TAG_CHARS = 50
# Names that are stored unchanged: every request of a session repeats its name.
_CLEAN_NAMES: set[str] = set()
MAX_CLEAN_NAMES = 1024
MAX_CLEAN_CHARS = 200
TAG = re.compile(rf"[a-z0-9-]{{1,{MAX_TAG_CHARS}}}")
_NOT_IN_TAGS = re.compile(r"[^a-z0-9]+")


def normalize_text(text: str) -> str:
    """Return the text in NFC, with line feeds only, without control characters and outer space."""
    # Without a line feed in place of NEL (U+0085), two lines would become one word.
    unified = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", "\n")
    if unified.isascii():
        return _CONTROL.sub("", unified).strip()
    # Remove characters between a letter and its mark before the two are composed.
    composed = _compose(_CONTROL.sub("", unified))
    return (_compose(_INVISIBLE.sub("", composed)) if _ANY_UNSEEN.search(composed) else composed).strip()


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", limit_marks(text))


def limit_marks(text: str) -> str:
    """Return the text without excessive marks on a letter."""
    return _MARKS.sub(_drop_marks, text)


def _drop_marks(run: re.Match[str]) -> str:
    marks = [ord(letter) for letter in set(run[2]) if unicodedata.combining(letter)]
    return run[1] + (run[2].translate(dict.fromkeys(marks)) if marks else run[2])


def normalize_id(text: str) -> str:
    """Return the stored form of a session's or owner's name: normalized, without secrets."""
    if text in _CLEAN_NAMES:
        return text
    name = redact(normalize_text(text)).text
    if name == text and len(text) <= MAX_CLEAN_CHARS:
        if len(_CLEAN_NAMES) >= MAX_CLEAN_NAMES:
            _CLEAN_NAMES.clear()
        _CLEAN_NAMES.add(text)
    return name


def normalize_tag(text: str) -> str:
    """Return the stored form of a tag, of a to z, 0 to 9 and hyphens; empty if no such character is left."""
    if (TAG.fullmatch(text) and text.strip("-")) or re.fullmatch(BRANCH_TAG, text):
        return text
    plain = unicodedata.normalize("NFKD", text[: 4 * MAX_TAG_CHARS].casefold()).encode("ascii", "ignore").decode()
    return _NOT_IN_TAGS.sub("-", plain).strip("-")[:MAX_TAG_CHARS].strip("-")


def clean_tags(tags: Iterable[str]) -> dict[str, str]:
    """Return the stored form of each tag, without secrets, by the tag as given, also without secrets."""
    # The stored form of a secret would no longer be recognized as one.
    return {tag: normalize_tag(tag) for tag in (redact(tag).text for tag in tags)}


def shorten(text: str, limit: int) -> str:
    """Return a text of at most this many characters; a cut text ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def normalize_json(value: Any) -> Any:
    """Normalize every string of a JSON value, including keys."""
    if isinstance(value, str):
        return normalize_text(value)
    if isinstance(value, dict):
        return {normalize_text(str(key)): normalize_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normalize_json(item) for item in value]
    return value


def content_hash(content: str) -> str:
    """Return a hash that is equal for equal texts; white space is normalized, other characters are significant."""
    return hashlib.sha256(_SPACE.sub(" ", content).encode()).hexdigest()
