"""The type of a note of Claude Code or Qwen Code: user, feedback, project or reference."""

import re
from typing import Final

_TYPE: Final = re.compile(
    r"\A---[ \t]*\r?\n(?:[^\n]*\n)*?[ \t]*type:[ \t]*[\"']?(user|feedback|project|reference)\b", re.IGNORECASE
)
_TYPES: Final = frozenset({"user", "feedback", "project", "reference"})


def read_type(text: str, key: str) -> str:
    """Return the type in the front matter, else that of the note's folder or name; empty for none."""
    front = text.replace("\r\n", "\n").partition("\n---")[0]
    if match := _TYPE.match(f"{front}\n"):
        return match[1].lower()
    folder, _, name = key.rpartition("/")
    return next((word for word in (folder, re.split(r"[_.-]", name)[0]) if word in _TYPES), "")
