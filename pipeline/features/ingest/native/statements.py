"""Split Markdown into statements: one for each list item and paragraph, with the headings above it.

Statements are compared with each other; sections with many list items could not be compared.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.features.ingest.markdown import split_sections

_ITEM: Final = re.compile(r"[ ]{0,1}(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*)\Z", re.DOTALL)
_FENCE: Final = re.compile(r"[ ]{0,3}(?:```|~~~)")
_LETTER: Final = re.compile(r"[^\W\d_]")
_RULER: Final = re.compile(r"[-*_=\s]{3,}\Z")
# A longer line that ends in a colon is a statement, not the title of the list after it.
MAX_TITLE_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class Statement:
    """A list item or paragraph, and the headings above it, the outermost first."""

    path: tuple[str, ...]
    text: str


def split_statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a Markdown text in order."""
    for section in split_sections(text):
        title: tuple[str, ...] = ()
        for is_item, block in _split_blocks(section.text):
            if not is_item:
                title = ()
            if not is_item and block.endswith(":") and "\n" not in block and len(block) <= MAX_TITLE_CHARS:
                title = (block.rstrip(":").strip("*_ "),)
            elif _LETTER.search(block) and not _RULER.match(block):
                yield Statement((*section.path, *title), block)


def _split_blocks(text: str) -> Iterator[tuple[bool, str]]:
    """Yield each list item and paragraph, with a code block as part of the block before it."""
    lines: list[str] = []
    fenced = False
    blank = False
    for line in text.splitlines():
        starts_item = not fenced and _ITEM.match(line) is not None
        continues = fenced or line.startswith((" ", "\t")) or _FENCE.match(line) is not None
        if lines and (starts_item or (blank and line.strip() and not continues)):
            yield _make_block(lines)
            lines = []
        if _FENCE.match(line):
            fenced = not fenced
        blank = not fenced and not line.strip()
        if lines or line.strip():
            lines.append(line)
    if lines:
        yield _make_block(lines)


def _make_block(lines: list[str]) -> tuple[bool, str]:
    text = "\n".join(lines).strip()
    item = _ITEM.match(text)
    return (False, text) if item is None else (True, item[1].strip())
