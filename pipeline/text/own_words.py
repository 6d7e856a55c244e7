"""Split a message by origin: the person's own words, the host's text, and pasted or quoted text.

Every reader of users' messages uses this module. Doubtful text does not count as the person's.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from pipeline.text import pasted_text
from pipeline.text.lexicon import load_lexicon
from pipeline.text.pasted_text import REQUEST_NAMES, TAG, Block, Lines, count_notice_lines, isolate_host_tags

# No block starts with such a line; most lines are of this form.
_PROSE = re.compile(r" {0,3}(?!diff --git |npm )\w[\w\s.,;!?'’…-]*")
_LINE_END = re.compile(r"\r\n?|\n")
# Announcements of other people's text: "Translate: …", "here is the error:", "Bob wrote:", in four languages.
_READ_CHARS = 300

_BEFORE_COLON = r"(?:[^:：]|[:：](?=\S))"
_COLON = r"\s?[:：](?=\s|$)"
_BEGINNING = r"[^\w¿¡]{0,5}[¿¡]?"
_SENDER = (
    r"(?: (?:from|by|of|in|at|that|which|i|we|he|she|they|von|vom|aus|die|der|das|ich|wir|"
    rf"de|del|que|qui|d|du|des|dans|en)\b{_BEFORE_COLON}{{0,60}}?)?"
)
_SENT = (
    r"\W{0,5}(?:e-?mail|mail|message|nachricht|correo|mensaje|courriel)(?: (?:from|von|de)\b)"
    rf"{_BEFORE_COLON}{{1,60}}?"
)
# Statements of the speakers, or requests to remember, are their own words.
_SPEAKER = (
    r"\W{0,5}+(?!(?:please |bitte |por favor )?(?:i|we|you|ich|wir|du|yo|nosotros|tú|je|j'|nous|on|tu|"
    r"remember|merke?|recuerda|retiens|souviens|forget|vergiss|olvida|oublie)\b)"
    r"(?:[^\s:：]{1,40} ){1,5}?(?<!\bi )(?<!\bwe )(?<!\bich )(?<!\bwir )(?<!\bje )(?<!\bnous )(?<!\byo )"
)


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
    # Nearly all messages contain neither a tag nor a notice, and need not be split.
    has_tag = "<" in message or "&lt;" in message
    if not has_tag and not any(count_notice_lines(line, 1) for line in _LINE_END.split(message)):
        return message
    passages = split_message(message)
    texts = ["\n".join(passage.lines) for passage in passages if passage.origin is not Origin.HOST]
    return message if len(texts) == len(passages) else "\n\n".join(texts)


def is_host_notice(message: str) -> bool:
    """Return whether a host wrote the entire message."""
    passages = _split_lines(message)
    return next(passages, Passage(Origin.PERSON, ())).origin is Origin.HOST and all(
        passage.origin is Origin.HOST for passage in passages
    )


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


def find_announcement_end(line: str) -> int | None:
    """Return the offset after the colon with which a line announces another's text; None for other lines."""
    beginning = line[:_READ_CHARS]
    if ":" not in beginning and "：" not in beginning:
        return None
    announcement, *_ = _compile_announcements()
    match = announcement.match(beginning)
    return None if match is None else match.end()


def refers_to_text(line: str) -> bool:
    """Return whether a line asks for an action on a text in the message."""
    beginning, (_, request, pointer) = line[:_READ_CHARS], _compile_announcements()
    return request.match(beginning) is not None and pointer.search(beginning) is not None


# Compiled for the first message: it is slow, and the server imports this module at its start.
@cache
def _compile_announcements() -> tuple[re.Pattern[str], ...]:
    """Return expressions for a line that announces another's text, for a request, and for its pointer to a text."""
    lexicon = load_lexicon("announcements")
    opener = rf"(?:(?:{lexicon.alternatives('openers')})\b[,\s]{{1,3}})"
    asked = rf"(?:{lexicon.alternatives('requests')}|{lexicon.alternatives('questions')})(?!\w)"
    # German puts the verb last: "Kannst du das bitte zusammenfassen".
    request = rf"{_BEGINNING}(?:{opener}{{0,3}}{asked}|{opener}{{1,3}}{_BEFORE_COLON}{{0,120}}? {asked})"
    noun = rf"(?:[\w-]{{1,30}} ){{0,2}}(?:{lexicon.alternatives('nouns')})(?!\w)"
    presented = rf"{_BEGINNING}{opener}{{0,3}}(?:{lexicon.alternatives('presenters')})\s?{noun}{_SENDER}"
    label = rf"\W{{0,5}}(?:(?:{lexicon.alternatives('determiners')}) )?{noun}{_SENDER}"
    spoken = rf"{_SPEAKER}(?:{lexicon.alternatives('speech')})(?!\w){_BEFORE_COLON}{{0,60}}?"
    announcement = (
        rf"(?:(?:{request}{_BEFORE_COLON}{{0,200}}?|{presented}|{_SENT}|{spoken}){_COLON}|{label}{_COLON}\s*$)"
    )
    pointer = rf"(?<!\w)(?:{lexicon.alternatives('pointers')})(?!\w)"
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in (announcement, request, pointer))


# Messages that hosts write when a turn is interrupted or fails

USER = "user"
# Hosts write these as messages of the user.
_INTERRUPTED = re.compile(
    r"\A\s*(?:\[Request interrupted by user[^\]\n]*\]?|<turn_aborted>.*?(?:</turn_aborted>|\Z))", re.DOTALL
)
# Hosts write these as the agent's answer.
_FAILED = re.compile(
    r"\A\s*(?:\[?API Error(?:[:(·\]]|\s+[(·]|\s+\d{3}\b|\s*\Z)"
    r"|\{\s*\"(?:type\"\s*:\s*\"error\"|error\"\s*:\s*\{)"
    r"|(?:Prompt is too long|Credit balance is too low|Invalid API key|Execution error|Request timed out"
    r"|Internal server error|Connection error|Claude (?:AI )?usage limit reached|You've (?:hit|reached) your \w+ limit"
    r"|No response requested)[^\n]{0,120}\s*\Z)"
)


def is_host_text(role: str, content: str) -> bool:
    """Return whether a message is only a notice of an interruption, or an error instead of an answer."""
    if role != USER:
        return _FAILED.match(content) is not None
    notice = _INTERRUPTED.match(content)
    return notice is not None and not content[notice.end() :].strip()


# Blocks that a person marks as private: `<private>…</private>`. Nothing of them is stored.

_PRIVATE_TAG: Final = re.compile(r"(?:<|&lt;)(/?)private(?:>|&gt;)", re.IGNORECASE)
_OPEN_LINE: Final = re.compile(r"(?:^|\n)[ \t]*$")


def drop_private(text: str) -> str:
    """Return a text without its private blocks; a tag at the start of a line that is not closed hides the rest."""
    if _PRIVATE_TAG.search(text) is None:
        return text
    parts, end, opened = list[str](), 0, list[int]()
    for tag in _PRIVATE_TAG.finditer(text):
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
    return _PRIVATE_TAG.search(text) is not None and not drop_private(text).strip()
