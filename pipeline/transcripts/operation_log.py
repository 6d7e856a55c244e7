"""Replay VS Code's log of the changes to an object."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.transcripts.documents import MAX_DOCUMENT_BYTES, parse_json
from pipeline.transcripts.fields import as_list, as_mapping

_WHOLE, _SET, _APPEND, _DELETE = 0, 1, 2, 3


def replay(path: Path) -> tuple[Any, str]:
    """Return the object that a log of changes describes, and a problem if a change could not be read.

    A change names its kind, its path of names and positions, and its value. An append may cut the list first.
    """
    state: Any = None
    broken = 0
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            return None, f"{path.name} is larger than {MAX_DOCUMENT_BYTES >> 20} MiB"
        with path.open("rb") as lines:
            for line in lines:
                # The last line may be torn.
                change = as_mapping(parse_json(line))
                if _read_kind(change) == _WHOLE:
                    state = change.get("v")
                elif change and not _apply(state, change):
                    broken += 1
    except OSError as error:
        return None, f"{path.name} cannot be read: {error.strerror}"
    return state, f"{path.name} has {broken} unreadable changes" if broken else ""


def _read_kind(change: Mapping[str, Any]) -> int:
    kind = change.get("kind")
    return int(kind) if isinstance(kind, int | str) and str(kind).isdigit() else -1


def _apply(state: Any, change: Mapping[str, Any]) -> bool:
    kind, keys, value = _read_kind(change), as_list(change.get("k")), change.get("v")
    if not keys:
        return False
    try:
        parent = state
        for key in keys[:-1]:
            parent = parent[key]
        if kind == _SET and keys[-1] == len(parent) and isinstance(parent, list):
            parent.append(value)
        elif kind == _SET:
            parent[keys[-1]] = value
        elif kind == _APPEND:
            items = parent.setdefault(keys[-1], []) if isinstance(parent, dict) else parent[keys[-1]]
            if isinstance(change.get("i"), int):
                del items[change["i"] :]
            items.extend(as_list(value))
        elif kind == _DELETE:
            del parent[keys[-1]]
    except (KeyError, IndexError, TypeError, AttributeError):
        return False
    return kind in (_SET, _APPEND, _DELETE)
