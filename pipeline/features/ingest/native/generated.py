"""Remove the text that programs generate in files of people: blocks of memory tools, and Reverie's own text.

A generated block repeats memories that are imported from their own store: importing the block would store them twice.
"""

import re
from typing import Final

from pipeline.kernel.records import HEADER, RULES_HEADER, SAID_HEADER, TEAM_HEADER

# An element of a memory tool, and comments that enclose a block: `<!-- name:begin -->` or `<!-- BEGIN name -->`.
_ELEMENT: Final = re.compile(
    r"<([a-z0-9-]*(?:mem|memory|memories|memorix|engram)[a-z0-9-]*(?:context|block)?)>.*?</\1>", re.DOTALL
)
_BLOCK: Final = re.compile(
    r"<!--\s*(?:(?P<name>[\w.:/-]+?)[: _-](?:begin|start)|(?:begin|start)[: _-]+(?P<other>[\w.:/ -]+?))\s*-->.*?"
    r"<!--\s*(?:(?:/\s*)?(?:(?P=name)|(?P=other))[: _-]end|end[: _-]+(?:(?P=name)|(?P=other)))\s*-->",
    re.DOTALL | re.IGNORECASE,
)
_PAIR: Final = re.compile(r"<!--\s*(?P<name>[\w.:-]+)\s*-->.*?<!--\s*/(?P=name)\s*-->", re.DOTALL)
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADERS: Final = "|".join(map(re.escape, (HEADER, RULES_HEADER, SAID_HEADER, TEAM_HEADER)))
_OURS: Final = re.compile(rf"^[ \t>]*(?:{_HEADERS})[^\n]*\n(?:[ \t]*[-*>][^\n]*(?:\n|\Z))*", re.MULTILINE)
_OUR_NOTE: Final = re.compile(r"\A---[ \t]*\n(?:[^\n]*\n)*?reverie:[ \t]*[0-9A-Z]{26}[ \t]*\n")
# Files that memory tools write as a whole into the rule folders of agents.
_GENERATED_NAME: Final = re.compile(
    r"(?:claude-mem|engram|memorix|mempalace|basic-memory)[\w-]*\.(?:md|mdc)|reverie[\w.-]*"
)


def strip_generated(text: str) -> str:
    """Return a text without generated blocks and without comments; empty for a note that Reverie exported."""
    text = text.replace("\r\n", "\n")
    if _OUR_NOTE.match(text):
        return ""
    for pattern in (_ELEMENT, _BLOCK, _PAIR, _COMMENT, _OURS):
        text = pattern.sub("", text)
    return text


def is_generated_file(name: str) -> bool:
    """Return whether a file in a folder of rules belongs to a memory tool."""
    return _GENERATED_NAME.fullmatch(name) is not None
