"""Blocks that a person marks as private: `<private>…</private>`. Nothing of them is stored."""

import re
from typing import Final

_TAG: Final = re.compile(r"(?:<|&lt;)(/?)private(?:>|&gt;)", re.IGNORECASE)
_OPEN_LINE: Final = re.compile(r"(?:^|\n)[ \t]*$")


def drop_private(text: str) -> str:
    """Return a text without its private blocks; a tag at the start of a line that is not closed hides the rest."""
    if _TAG.search(text) is None:
        return text
    parts, end, opened = list[str](), 0, list[int]()
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opened.append(tag.start())
        elif opened:
            # Blocks within a block belong to it.
            start = opened[0]
            if len(opened) == 1:
                parts.append(text[end:start])
                end = tag.end()
            opened.pop()
    unclosed = next((start for start in opened if _OPEN_LINE.search(text, max(end, start - 200), start)), None)
    parts.append(text[end:] if unclosed is None else text[end:unclosed])
    return "".join(parts)


def is_private(text: str) -> bool:
    """Return whether a text consists of private blocks."""
    return _TAG.search(text) is not None and not drop_private(text).strip()
