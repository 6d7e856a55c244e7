"""Lines for a prompt from all sources, and the reasons why lines are left out."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.records import Memory
from pipeline.records.hooks import LeftOut
from pipeline.records.recall import Hit
from pipeline.store.impressions import Impression
from pipeline.text.normalize import shorten

# The characters of a line that is left out which are recorded.
EXCERPT_CHARS: Final = 120

ALREADY_SHOWN: Final = "already shown in this session"
BELOW_BAR: Final = "below the bar of its source"
NO_ROOM: Final = "no room for it"
DUPLICATE: Final = "another line says the same"
REPLACED: Final = "replaced by a later memory"
IMPORTS_OFF: Final = "imports in prompts are off"
IN_RULE_FILE: Final = "a rule file that the host loads says it"
WEAKER: Final = "other results are nearer"
NOT_FOLLOWED: Final = "agents do not follow this lesson"
ALONE: Final = "the line that it continues is left out"


class LineSource(StrEnum):
    """The source of a line."""

    MESSAGE = "message"
    REMEDY = "remedy"
    RULE = "rule"
    PERSON = "person"
    MEMORY = "memory"
    IMPORT = "import"
    WORK = "work"
    DECISION = "decision"
    TEAM = "team"


# The row number and the version of what a line shows, as in the table of what a session was shown.
Key = tuple[int, str]
# The lowest row number of a key that is made of a text. The row numbers of messages are above it, and below zero.
_TEXT_KEYS: Final = -(1 << 57)


def make_text_key(source: LineSource, text: str) -> Key:
    """Return the key of a line that is no row of this workspace, such as a memory of a team."""
    number = int.from_bytes(hashlib.sha256(f"{source}\0{text}".encode()).digest()[:7])
    return _TEXT_KEYS + number, source


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a prompt may be shown below a header.

    `content` is what it says, `text` the line for an agent. `score` orders the lines of a source, `relevance` is
    compared with its bar. A line for a memory has its `hit`, a rule its `impression`; `memories` were made of a
    message. `turn` is the row number of the message that a memory was made of. A line that `follows` another one is
    not shown without it. One that is shown `again` may have been shown before. `longer` returns the text with more of
    the memory, or with None the usual text, which such a line gets when it is chosen. `reason` says why its source
    leaves it out.
    """

    key: Key
    source: LineSource
    kind: str
    content: str
    score: float
    text: str = ""
    header: str = ""
    relevance: float = 1.0
    hit: Hit | None = None
    impression: Impression | None = None
    memories: tuple[Memory, ...] = ()
    turn: object = None
    follows: Key | None = None
    again: bool = False
    longer: Callable[[int | None], str] | None = None
    reason: str | None = None


def describe_left_out(left_out: Iterable[tuple[Line, str]]) -> list[LeftOut]:
    """Return records of lines that are left out, each with its reason."""
    return [
        LeftOut(_name(line), line.source, _excerpt(line), round(line.relevance, 3), reason) for line, reason in left_out
    ]


def _name(line: Line) -> str:
    return str(line.key[0]) if line.hit is None else line.hit.memory.id


def _excerpt(line: Line) -> str:
    return shorten(" ".join(line.content.split()), EXCERPT_CHARS)
