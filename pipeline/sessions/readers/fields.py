"""Read the fields of foreign records: a field may be missing or have any type."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pipeline.kernel.times import normalize_typed_time, utc_text
from pipeline.sessions.readers.log_lines import has_many_values
from pipeline.sessions.readers.reader import ERROR_CHARS
from pipeline.text.own_words import drop_host_text

# Times in milliseconds are larger: as seconds, this is in the year 5138.
_LARGEST_SECONDS = 100_000_000_000
_UTC_MILLISECONDS = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_EXIT_CODE = re.compile(
    r"(?:\A|\n)\W{0,3}(?:Process exited with |\(?Command exited with |failed with )?"
    r"exit(?:ed with)?[ _]code:? (-?[0-9]{1,10})\b|\bexited with code (-?[0-9]{1,10})\b",
    re.IGNORECASE,
)
_STATED_CODE = re.compile(r"\bexit code:? (-?\d{1,10})\b", re.IGNORECASE)
_EDGE_CHARS = 300
# Where exit codes are written, and where the head of an error is: around the start of an output or at its end.
_SEARCHED_CHARS = 2000
_ERROR_TAGS = re.compile(r"</?(?:tool_use_)?error>")
# A longer argument is the body of a file.
LONGEST_ARGUMENT = 4000
LONGEST_COMMAND = 8000
_BODIES = frozenset(
    (
        *("content", "contents", "new_string", "old_string", "newText", "oldText", "new_str", "old_str", "new_source"),
        *("edits", "replacements", "diff", "patch", "file_text", "prompt", "plan", "todos", "questions"),
        *("CodeContent", "ReplacementContent", "TargetContent"),
    )
)
_COMMANDS = frozenset(("command", "cmd", "input"))


def as_text(value: Any) -> str:
    """Return a string without characters that no store accepts; empty for other values."""
    if not isinstance(value, str):
        return ""
    text = value.replace("\0", "") if "\0" in value else value
    if text.isascii():
        return text
    # A lone surrogate is no character.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping; an empty one for other values."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list; an empty one for other values."""
    return value if isinstance(value, list) else []


def parse_json(text: Any) -> Any:
    """Return the value of a JSON text, None if it is not valid; any other value is returned unchanged."""
    if not isinstance(text, str | bytes):
        return text
    if has_many_values(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def list_blocks(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the blocks of a message; its text counts as a block."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in as_list(content):
        if isinstance(block, str):
            yield {"type": "text", "text": block}
        elif isinstance(block, dict):
            yield block


def as_time(value: Any) -> str | None:
    """Return a time as UTC text: RFC 3339, or a number of seconds or milliseconds; None for other values."""
    try:
        if isinstance(value, str):
            # Nearly all times have this form already.
            is_utc_text = _UTC_MILLISECONDS.fullmatch(value) and datetime.fromisoformat(value)
            return value if is_utc_text else normalize_typed_time(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > _LARGEST_SECONDS else value
            return utc_text(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return None
    return None


def keep_arguments(arguments: Any) -> dict[str, Any]:
    """Return the arguments of a tool call that say what it acted on, without the bodies of files and prompts."""
    kept: dict[str, Any] = {}
    for name, value in as_mapping(arguments).items():
        key = as_text(name)
        if isinstance(value, str):
            if key in _COMMANDS:
                kept[key] = as_text(value[:LONGEST_COMMAND])
            elif key not in _BODIES and len(value) <= LONGEST_ARGUMENT:
                kept[key] = as_text(value)
        elif isinstance(value, bool | int | float):
            kept[key] = value
        elif key in _COMMANDS and isinstance(value, list) and all(isinstance(word, str) for word in value):
            kept[key] = [as_text(word[:LONGEST_ARGUMENT]) for word in value[:200]]
    return kept


def output_text(content: Any) -> str:
    """Return the text of a tool's output, which is a text, a list of blocks, or a mapping with one of them."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(block["text"]) for block in list_blocks(content) if isinstance(block.get("text"), str))
    fields = as_mapping(content)
    texts = (
        output_text(fields[name]) for name in ("error", "stderr", "output", "content", "stdout") if fields.get(name)
    )
    return next((text for text in texts if text), "")


def find_exit_code(output: str) -> int | None:
    """Return the exit code that an output states near its start or its end."""
    match = _EXIT_CODE.search(output[:_SEARCHED_CHARS]) or _EXIT_CODE.search(output[-_SEARCHED_CHARS:])
    return None if match is None else int(match[1] or match[2])


def find_stated_code(output: str) -> int | None:
    """Return the exit code in the first or last line, where programs put it around the output."""
    text = output.strip()
    edges = (text[:_EDGE_CHARS].partition("\n")[0], text[-_EDGE_CHARS:].rpartition("\n")[2])
    match = next(filter(None, map(_STATED_CODE.search, edges)), None)
    return None if match is None else int(match[1])


def error_head(output: str) -> str:
    """Return the start of a failed call's output, without what hosts added to it."""
    text = _ERROR_TAGS.sub("", output[:_SEARCHED_CHARS])
    return as_text(drop_host_text(text)).strip()[:ERROR_CHARS]
