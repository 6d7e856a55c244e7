"""What a prompt asks of the memory itself: "remember this: …" and "forget that", in four languages."""

import re
from dataclasses import dataclass
from enum import StrEnum


class CommandType(StrEnum):
    """What is to be done."""

    REMEMBER = "remember"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class MemoryCommand:
    """What a prompt asks for; `text` is what to remember, or what to forget is about, empty for what was kept last."""

    type: CommandType
    text: str


# Only at the beginning of a line: within a sentence the words are told, not meant.
_OPENING = r"^\s*(?:(?:please|ok|okay|bitte|por favor|s'il te pla[iî]t)[,:]?\s+)?"
_REMEMBER = re.compile(
    rf"{_OPENING}(?:remember|merke?(?: dir)?|recuerda|retiens|souviens-toi)\s*"
    r"(?:(?:this|that|das|esto|que|ceci|de ceci)\s*)?(?:(?P<colon>\s*:)\s*|(?<=that)\s+|(?<=que)\s+)(?P<text>\S.*)",
    re.IGNORECASE,
)
_FORGET = re.compile(
    rf"{_OPENING}(?:forget|vergiss|olvida|oublie)\s+"
    r"(?:(?P<last>(?:that|this|das|eso|esto|[cç]a|cela)(?:\s+(?:please|bitte|again|wieder))?\s*[.!]*$)"
    r"|(?:(?:that|what I said about|everything about|dass|was ich (?:über|zu)|que|"
    r"lo (?:que dije )?de|ce que j'ai dit sur)"
    r"\s*:?\s+)(?P<about>\S.*))",
    re.IGNORECASE,
)
_FORGET_TEXT = re.compile(rf"{_OPENING}(?:forget|vergiss|olvida|oublie)\s*:\s*(?P<about>\S.*)", re.IGNORECASE)


def read_commands(message: str) -> list[MemoryCommand]:
    """Return what a message asks of the memory, line by line."""
    return [command for line in message.splitlines() if (command := read_command(line)) is not None]


def read_command(line: str) -> MemoryCommand | None:
    """Return what a line asks of the memory; a question asks for nothing."""
    if line.rstrip().endswith("?"):
        return None
    if found := _REMEMBER.match(line):
        return MemoryCommand(CommandType.REMEMBER, found["text"].strip())
    if found := _FORGET.match(line) or _FORGET_TEXT.match(line):
        about = found.groupdict().get("about") or ""
        return MemoryCommand(CommandType.FORGET, about.strip().rstrip("."))
    return None
