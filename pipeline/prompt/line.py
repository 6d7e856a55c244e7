"""Lines for a prompt from all sources, the choice between them, and the reasons why lines are left out."""

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from pipeline.kernel.records import HEADER, RULES_HEADER, SAID_HEADER, TEAM_HEADER, Memory
from pipeline.kernel.records.hooks import LeftOut
from pipeline.kernel.records.recall import Hit
from pipeline.kernel.store.impressions import Impression
from pipeline.recall.relevance import RELEVANT
from pipeline.sessions.own_words import BAR
from pipeline.text.normalize import shorten
from pipeline.text.tokens import search_tokens

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


def make_text_key(source: str, text: str) -> Key:
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
        LeftOut(
            str(line.key[0]) if line.hit is None else line.hit.memory.id,
            line.source,
            shorten(" ".join(line.content.split()), EXCERPT_CHARS),
            round(line.relevance, 3),
            reason,
        )
        for line, reason in left_out
    ]


# The choice between the lines of all sources

DECISIONS_HEADER: Final = "Decided in earlier sessions (check before relying on it):"
# The order of the parts of a block; a line without a header comes first.
HEADERS: Final = ("", RULES_HEADER, SAID_HEADER, HEADER, DECISIONS_HEADER, TEAM_HEADER)
BLOCK_CHARS: Final = 1200
# The characters that decisions may take from lines other than messages and rules.
DECISIONS_CHARS: Final = 1080
# The best memory is shown nearly completely; if it is the only one, it may fill the block.
LEADING_CHARS: Final = 720
LONE_CHARS: Final = 1000
# Maximum number of rules and memories, and of them and the messages together; one memory is shown anyway.
MOST: Final = 5
MOST_WITH_MESSAGES: Final = 3
MOST_OF: Final = {LineSource.MESSAGE: 3, LineSource.REMEDY: 1, LineSource.PERSON: 3, LineSource.WORK: 10}
# The lowest relevance, from 0 to 1; messages have a scale of their own (decision 0079).
BARS: Final = {
    LineSource.MESSAGE: BAR,
    LineSource.PERSON: RELEVANT,
    LineSource.RULE: RELEVANT,
    LineSource.MEMORY: RELEVANT,
}
# A line repeats the lines above it if they contain this share of its words.
KNOWN_SHARE: Final = 0.85
_PRIORITY: Final = tuple(LineSource)
_RANKED: Final = (LineSource.RULE, LineSource.MEMORY, LineSource.IMPORT)


@dataclass(frozen=True, slots=True)
class Budget:
    """The room of a block in characters, and the maximum number of imported lines."""

    chars: int = BLOCK_CHARS
    imports: int = MOST


@dataclass(frozen=True, slots=True)
class Filled:
    """The chosen lines in their order in the block, and the others, each with the reason."""

    chosen: tuple[Line, ...] = ()
    left_out: tuple[tuple[Line, str], ...] = ()

    @property
    def text(self) -> str:
        """Return the lines with one header for each part."""
        return "\n".join(_list_with_headers(self.chosen))


def fill(lines: Sequence[Line], budget: Budget, shown: Container[Key]) -> Filled:
    """Choose the lines of a block; each line is either chosen or has one reason.

    The lines of each source are given best first. Those of a source that comes first are chosen first.
    """
    ordered = sorted(lines, key=lambda line: _PRIORITY.index(_RANKED[1] if line.source in _RANKED[1:] else line.source))
    admitting = _Admission(budget, shown, sum(line.source is LineSource.RULE and not line.reason for line in lines))
    admitted = [whole for line in ordered if (whole := admitting.admit(line)) is not None]
    chosen, without_room = _fit(admitted, budget.chars)
    return Filled(tuple(chosen), (*admitting.left_out, *((line, NO_ROOM) for line in without_room)))


@dataclass(slots=True)
class _Admission:
    """Decides about each line by the lines before it, but not by their length."""

    budget: Budget
    shown: Container[Key]
    rules: int
    left_out: list[tuple[Line, str]] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)
    turns: set[object] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    hashes: set[str] = field(default_factory=set)
    counts: Counter[LineSource] = field(default_factory=Counter)
    ranked: int = 0

    def admit(self, line: Line) -> Line | None:
        """Return a line with its text; None if it is left out."""
        reason = line.reason or self._refuse(line)
        if reason is not None:
            self.left_out.append((line, reason))
            return None
        if not line.text and line.longer is not None:
            line = replace(line, text=line.longer(None))
        self.keys.add(line.key)
        self.counts[line.source] += 1
        if line.source is LineSource.MESSAGE:
            self.turns.add(-line.key[0])
        self.words.update(search_tokens(line.text))
        if line.hit is not None:
            self.hashes.add(line.hit.memory.content_hash)
        return line

    def _refuse(self, line: Line) -> str | None:
        is_shown = line.key in self.shown and not line.again
        if line.relevance < BARS.get(line.source, 0.0):
            return BELOW_BAR
        if line.follows is not None and line.follows not in self.keys:
            return ALONE
        if self._is_repeated(line):
            return DUPLICATE
        if line.source in _RANKED:
            # What was shown keeps its place: the next ones say less about the prompt.
            self.ranked += 1
            if self.ranked > self._most_ranked():
                return NO_ROOM
        if is_shown:
            return ALREADY_SHOWN
        most = self.budget.imports if line.source is LineSource.IMPORT else MOST_OF.get(line.source, MOST)
        return NO_ROOM if line.source is not LineSource.RULE and self.counts[line.source] >= most else None

    def _most_ranked(self) -> int:
        messages = self.counts[LineSource.MESSAGE]
        most = max(1, MOST_WITH_MESSAGES - messages) if messages else MOST
        return max(most, min(self.rules, MOST))

    def _is_repeated(self, line: Line) -> bool:
        if line.key in self.keys or (line.turn is not None and line.turn in self.turns):
            return True
        if line.hit is not None:
            return line.hit.memory.content_hash in self.hashes
        if line.source is not LineSource.DECISION:
            return False
        words = set(search_tokens(line.content))
        return len(words & self.words) >= KNOWN_SHARE * len(words)


def _fit(admitted: Sequence[Line], chars: int) -> tuple[list[Line], list[Line]]:
    """Return the lines that fit with their headers, in the order of the block, and those that do not."""
    decisions = [line for line in admitted if line.source is LineSource.DECISION]
    reserved = min(DECISIONS_CHARS, sum(1 + len(text) for text in _list_with_headers(decisions)))
    leading = None
    others = [line for line in admitted if line.source in _RANKED[1:]]
    if others and not reserved and not any(line.source is LineSource.MESSAGE for line in admitted):
        leading = max(others, key=lambda line: line.score)
    lead_chars = LONE_CHARS if len(others) == 1 else LEADING_CHARS
    chosen: list[Line] = []
    without_room: list[Line] = []
    headers = {""}
    used = -1
    for line in sorted(admitted, key=_rank):
        fitted = replace(line, text=line.longer(lead_chars)) if line is leading and line.longer is not None else line
        size = 1 + len(fitted.text) + (0 if line.header in headers else 1 + len(line.header))
        kept = reserved if line.source in (LineSource.PERSON, *_RANKED[1:], LineSource.WORK) else 0
        if used + size > chars - kept or (line.follows is not None and all(line.follows != one.key for one in chosen)):
            without_room.append(line)
            continue
        used += size
        headers.add(line.header)
        chosen.append(fitted)
    return sorted(chosen, key=lambda line: HEADERS.index(line.header)), without_room


def _rank(line: Line) -> tuple[int, int, float]:
    source = LineSource.MEMORY if line.source is LineSource.IMPORT else line.source
    return _PRIORITY.index(source), HEADERS.index(line.header), -line.score


def _list_with_headers(lines: Sequence[Line]) -> Iterator[str]:
    header = ""
    for line in lines:
        if line.header != header:
            yield line.header
        header = line.header
        yield line.text
