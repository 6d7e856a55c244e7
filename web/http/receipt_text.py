"""The part of a write's receipt that commands and tools show alike."""

from collections.abc import Mapping
from typing import Any


def describe_kept(receipt: Mapping[str, Any]) -> str:
    """Return which stronger values the stored memory keeps where the repetition differs, empty if nowhere."""
    values = [_describe(name, value) for name, value in sorted((receipt.get("kept") or {}).items())]
    return f"; kept: {', '.join(values)}" if values else ""


def _describe(name: str, value: str | bool | None) -> str:
    if name == "pinned":
        return "pinned"
    if name == "expires_at":
        return "no expiry" if value is None else f"expires {value}"
    return f"{name} {value}"
