"""Remove the secrets of a request before it is written to the disk."""

from typing import Any

from pipeline.bootstrap import mask

# Names that the server must recognize. They contain no text of a person.
_NAMES = frozenset(
    (
        *("id", "session_id", "agent_id", "tool_use_id", "prompt_id", "timestamp", "cwd", "transcript_path"),
        *("hook_event_name", "tool_name", "kind", "source", "occurred_at", "valid_from"),
    )
)


def mask_request(value: Any, name: str = "") -> Any:
    """Return the JSON of a request with every text redacted, except names and times."""
    if isinstance(value, str):
        return value if name in _NAMES else mask(value)
    if isinstance(value, list | tuple):
        return [mask_request(item, name) for item in value]
    if isinstance(value, dict):
        return {mask(str(key)): mask_request(item, str(key)) for key, item in value.items()}
    return value
