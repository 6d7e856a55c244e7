"""Split a message by origin: the person's own words, the host's text, and pasted or quoted text.

Every reader of users' messages uses this module. Doubtful text does not count as the person's.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from pipeline.text import pasted_text
from pipeline.text.announcements import find_announcement_end
from pipeline.text.host_tags import REQUEST_NAMES, TAG, count_notice_lines, isolate_host_tags
from pipeline.text.pasted_text import Block, Lines

# No block starts with such a line; most lines are of this form.
_PROSE = re.compile(r" {0,3}(?!diff --git |npm )\w[\w\s.,;!?'’…-]*")
_LINE_END = re.compile(r"\r\n?|\n")


class Origin(StrEnum):
    """The author of a passage."""

    PERSON = "person"
    HOST = "host"
    PASTED = "pasted"


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of one origin; a person's passage is a paragraph."""

    origin: Origin
    lines: tuple[str, ...]


def split_message(message: str) -> list[Passage]:
    """Split a message into passages, in order; a request that a host tagged is split like a message."""
    passages = list(_split_lines(message))
    others = [number for number, passage in enumerate(passages) if passage.origin is not Origin.HOST]
    if len(others) == 1 and (request := _read_request(passages[others[0]])) is not None:
        passages[others[0] : others[0] + 1] = _split_lines(request)
    return passages


def list_own_lines(message: str) -> list[str]:
    """Return the lines that are the person's own words."""
    return [line for passage in split_message(message) if passage.origin is Origin.PERSON for line in passage.lines]


def join_own_lines(message: str) -> str:
    """Return the person's own words in one line."""
    return " ".join(" ".join(list_own_lines(message)).split())


def drop_host_text(message: str) -> str:
    """Return a message without the passages of the host; unchanged if there are none."""
    if not _may_contain_host_text(message):
        return message
    passages = split_message(message)
    texts = ["\n".join(passage.lines) for passage in passages if passage.origin is not Origin.HOST]
    return message if len(texts) == len(passages) else "\n\n".join(texts)


def is_host_notice(message: str) -> bool:
    """Return whether a host wrote the entire message."""
    origin = None
    for passage in _split_lines(message):
        origin = passage.origin
        if origin is not Origin.HOST:
            return False
    return origin is Origin.HOST


def _may_contain_host_text(message: str) -> bool:
    """Return whether a message contains a tag or a notice; nearly all messages do not, and need not be split."""
    return "<" in message or "&lt;" in message or any(count_notice_lines(line, 1) for line in _LINE_END.split(message))


def _read_request(passage: Passage) -> str | None:
    """Return the content of a tag for the person's request; None for other passages.

    Next to other text such a block is pasted: a host tags everything that the person wrote.
    """
    tag = TAG.match(passage.lines[0].lstrip())
    if tag is None or tag["name"].lower() not in REQUEST_NAMES:
        return None
    text = "\n".join(passage.lines).lstrip()[tag.end() :]
    end = text.rfind("</")
    return text if end < 0 else text[:end]


def _split_lines(message: str) -> Iterator[Passage]:
    lines = Lines(_LINE_END.split(isolate_host_tags(message)))
    number, paragraph = 0, list[str]()
    while number < lines.count:
        block = _find_block(lines, number)
        own = lines.lines[number] if block is None else block.own
        if own.strip():
            paragraph.append(own)
        if paragraph and (block is not None or not own.strip()):
            yield Passage(Origin.PERSON, tuple(paragraph))
            paragraph = []
        if block is not None:
            origin = Origin.HOST if block.from_host else Origin.PASTED
            yield Passage(origin, tuple(lines.lines[number : block.end]))
        number = number + 1 if block is None else block.end
    if paragraph:
        yield Passage(Origin.PERSON, tuple(paragraph))


def _find_block(lines: Lines, number: int) -> Block | None:
    line = lines.lines[number]
    if not line.strip():
        return None
    notice = _find_notice(lines, number)
    if notice is not None or _PROSE.fullmatch(line):
        return notice
    return next((block for find in _FINDERS if (block := find(lines, number)) is not None), None)


def _find_notice(lines: Lines, number: int) -> Block | None:
    count = count_notice_lines(lines.lines[number], lines.count - number)
    return Block(number + count, from_host=True) if count else None


def _find_announced(lines: Lines, number: int) -> Block | None:
    line = lines.lines[number]
    colon_end = find_announcement_end(line)
    if colon_end is None:
        return None
    end = lines.count
    if not line[colon_end:].strip():
        text = lines.skip(number + 1, lambda inner: not inner.strip())
        marked = text < end and (pasted_text.find_marked_block(lines, text) or pasted_text.find_fence(lines, text))
        # The tags of a block mark the end of announced text.
        end = marked.end if marked else end
    return Block(end, line[:colon_end])


_FINDERS: tuple[Callable[[Lines, int], Block | None], ...] = (
    pasted_text.find_marked_block,
    pasted_text.find_fence,
    pasted_text.find_mail,
    pasted_text.find_heredoc,
    pasted_text.find_diff,
    pasted_text.find_json,
    pasted_text.find_yaml,
    pasted_text.find_indented_code,
    pasted_text.find_program_lines,
    _find_announced,
    pasted_text.find_quotation,
)
