"""Announcements of other people's text: "Translate: …", "here is the error:", "Bob wrote:", in four languages."""

import re
from functools import cache
from typing import NamedTuple

from pipeline.text.lexicon import load_lexicon

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


class _Patterns(NamedTuple):
    announcement: re.Pattern[str]
    request: re.Pattern[str]
    pointer: re.Pattern[str]


def find_announcement_end(line: str) -> int | None:
    """Return the offset after the colon with which a line announces another's text; None for other lines."""
    beginning = line[:_READ_CHARS]
    if ":" not in beginning and "：" not in beginning:
        return None
    match = _compile_patterns().announcement.match(beginning)
    return None if match is None else match.end()


def refers_to_text(line: str) -> bool:
    """Return whether a line asks for an action on a text in the message."""
    beginning, patterns = line[:_READ_CHARS], _compile_patterns()
    return patterns.request.match(beginning) is not None and patterns.pointer.search(beginning) is not None


# Compiled for the first message: it is slow, and the server imports this module at its start.
@cache
def _compile_patterns() -> _Patterns:
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
    return _Patterns(*(re.compile(pattern, re.IGNORECASE) for pattern in (announcement, request, pointer)))
