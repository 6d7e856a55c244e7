"""A folder's own word: the nearest `.reverie.toml`, upwards."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from config.paths import WORKSPACE_ID, is_workspace_id
from pipeline.identity.files import Unreadable, exists, read_bounded, shown, upwards

FILE_NAME = ".reverie.toml"

Split = Literal["none", "clone", "worktree"]

_KEYS = ("workspace", "split")
_SPLITS = tuple(value for value in get_args(Split) if value != "none")


@dataclass(frozen=True, slots=True)
class Override:
    """What a `.reverie.toml` says."""

    file: Path
    workspace: str | None = None
    split: Split | None = None


def nearest_override(folder: Path) -> Override | None:
    """Return what the nearest `.reverie.toml` says; raise Unreadable when it cannot be taken."""
    file = next((place / FILE_NAME for place in upwards(folder) if exists(place / FILE_NAME)), None)
    if file is None:
        return None
    try:
        values = tomllib.loads(read_bounded(file).decode())
    except (ValueError, RecursionError) as error:
        raise Unreadable(file, f"is not TOML: {shown(str(error))}") from error
    return _checked(file, values)


def _checked(file: Path, values: dict[str, Any]) -> Override:
    for key in values:
        if key not in _KEYS:
            raise Unreadable(file, f"unknown key {shown(key)}; it takes {' and '.join(_KEYS)}")
    workspace, split = values.get("workspace"), values.get("split")
    if workspace is not None and not (isinstance(workspace, str) and is_workspace_id(workspace)):
        raise Unreadable(file, f"workspace must match {WORKSPACE_ID.pattern}")
    if split is not None and split not in _SPLITS:
        raise Unreadable(file, f"split must be one of {', '.join(_SPLITS)}")
    return Override(file, workspace, split)
