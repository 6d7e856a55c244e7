"""How a person says that a text is another's: "Translate: …", "here is the error:", "Bob wrote:", in four languages."""

import re

from pipeline.text.lexicon import load_lexicon

_LEXICON = load_lexicon("announcements")
_READ_CHARS = 300

_BEFORE_COLON = r"(?:[^:：]|[:：](?=\S))"
_COLON = r"\s?[:：](?=\s|$)"
_OPENER = rf"(?:(?:{_LEXICON.alternatives('openers')})\b[,\s]{{1,3}})"
_BEGINNING = r"[^\w¿¡]{0,5}[¿¡]?"
_ASKED = rf"(?:{_LEXICON.alternatives('requests')}|{_LEXICON.alternatives('questions')})(?!\w)"
# German puts the verb last: "Kannst du das bitte zusammenfassen".
_REQUEST = rf"{_BEGINNING}(?:{_OPENER}{{0,3}}{_ASKED}|{_OPENER}{{1,3}}{_BEFORE_COLON}{{0,120}}? {_ASKED})"
_NOUN = rf"(?:[\w-]{{1,30}} ){{0,2}}(?:{_LEXICON.alternatives('nouns')})(?!\w)"
_SENDER = (
    r"(?: (?:from|by|of|in|at|that|which|i|we|he|she|they|von|vom|aus|die|der|das|ich|wir|"
    rf"de|del|que|qui|d|du|des|dans|en)\b{_BEFORE_COLON}{{0,60}}?)?"
)
_PRESENTED = rf"{_BEGINNING}{_OPENER}{{0,3}}(?:{_LEXICON.alternatives('presenters')})\s?{_NOUN}{_SENDER}"
_LABEL = rf"\W{{0,5}}(?:(?:{_LEXICON.alternatives('determiners')}) )?{_NOUN}{_SENDER}"
_SENT = (
    r"\W{0,5}(?:e-?mail|mail|message|nachricht|correo|mensaje|courriel)(?: (?:from|von|de)\b)"
    rf"{_BEFORE_COLON}{{1,60}}?"
)
# What the speakers themselves said, or want to be remembered, is not another's.
_SPOKEN = (
    r"\W{0,5}+(?!(?:please |bitte |por favor )?(?:i|we|you|ich|wir|du|yo|nosotros|tú|je|j'|nous|on|tu|"
    r"remember|merke?|recuerda|retiens|souviens|forget|vergiss|olvida|oublie)\b)"
    r"(?:[^\s:：]{1,40} ){1,5}?(?<!\bi )(?<!\bwe )(?<!\bich )(?<!\bwir )(?<!\bje )(?<!\bnous )(?<!\byo )"
    rf"(?:{_LEXICON.alternatives('speech')})(?!\w){_BEFORE_COLON}{{0,60}}?"
)
_ANNOUNCEMENT = re.compile(
    rf"(?:(?:{_REQUEST}{_BEFORE_COLON}{{0,200}}?|{_PRESENTED}|{_SENT}|{_SPOKEN}){_COLON}|{_LABEL}{_COLON}\s*$)",
    re.IGNORECASE,
)
_REQUESTED = re.compile(_REQUEST, re.IGNORECASE)
_POINTER = re.compile(rf"(?<!\w)(?:{_LEXICON.alternatives('pointers')})(?!\w)", re.IGNORECASE)


def find_announcement_end(line: str) -> int | None:
    """Return the offset behind the colon with which a line announces another's text; None for other lines."""
    beginning = line[:_READ_CHARS]
    found = _ANNOUNCEMENT.match(beginning) if ":" in beginning or "：" in beginning else None
    return None if found is None else found.end()


def points_at_text(line: str) -> bool:
    """Return whether a line asks for something to be done with a text on the page."""
    beginning = line[:_READ_CHARS]
    return _REQUESTED.match(beginning) is not None and _POINTER.search(beginning) is not None
