"""Recognize by their words the sentences that sum up, replace, reject, accept, or leave open a decision."""

import re
from functools import cache

from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import QUESTION_MARKS

# An acknowledgement and an article may precede the words that sum up.
_BEFORE_RECAP = (
    r"^\W*(?:(?:{acknowledgement})\b[\s,.:;—–-]+){{0,2}}(?:(?:the|a|an|so|and|here's|die|der|das|la|le|el)\s+)?"
)
# A consent may name nothing: a longer message says more than that.
LONGEST_CONSENT = 40
# A path is searched from the start of a word only: a search from each of its letters would be quadratic.
_PATH_OR_CODE = re.compile(r"`[^`]*+`|(?<![^\s`])[^\s/_`]*+[/_]\S*")


@cache
def _pattern(name: str) -> "re.Pattern[str]":
    return re.compile(load_lexicon("conclusions").alternatives(name), re.IGNORECASE)


@cache
def _recap() -> "re.Pattern[str]":
    lexicon = load_lexicon("conclusions")
    before = _BEFORE_RECAP.format(acknowledgement=lexicon.alternatives("acknowledgement"))
    return re.compile(rf"{before}(?:{lexicon.alternatives('recap')})", re.IGNORECASE)


@cache
def _start(name: str) -> "re.Pattern[str]":
    return re.compile(rf"^\W*(?:{load_lexicon('conclusions').alternatives(name)})", re.IGNORECASE)


@cache
def _acknowledgement() -> "re.Pattern[str]":
    alternatives = load_lexicon("conclusions").alternatives("acknowledgement")
    return re.compile(rf"^\W*(?:{alternatives})\b\s*[,.:;!—–-]", re.IGNORECASE)


@cache
def _consent() -> "re.Pattern[str]":
    alternatives = load_lexicon("conclusions").alternatives("consents")
    return re.compile(rf"\W*(?:(?:{alternatives})\b\W*)+", re.IGNORECASE)


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question."""
    return sentence.rstrip("\"'”»)* ").endswith(QUESTION_MARKS)


def sums_up(sentence: str) -> bool:
    """Return whether a sentence says that it states what was decided."""
    return _recap().match(sentence) is not None


def acknowledges(sentence: str) -> bool:
    """Return whether a sentence starts by confirming what the other said."""
    return _acknowledgement().match(sentence) is not None


def replaces(text: str) -> bool:
    """Return whether a text says that a decision replaces an earlier one."""
    return _pattern("replaces").search(text) is not None


def leaves_open(sentence: str) -> bool:
    """Return whether a sentence says that something is not decided."""
    return _pattern("open").search(sentence) is not None


def rejects(sentence: str) -> bool:
    """Return whether a sentence rules something out."""
    return _pattern("rejects").search(sentence) is not None


def count_rule_words(text: str) -> int:
    """Count the different words of rules, and numbers, in a text without names of code."""
    plain = _PATH_OR_CODE.sub(" ", text)
    return len({word.lower() for word in _pattern("rules").findall(plain)})


def consents(message: str) -> bool:
    """Return whether a message does nothing but accept."""
    return len(message) <= LONGEST_CONSENT and _consent().fullmatch(message.strip()) is not None


def proposes(sentence: str) -> bool:
    """Return whether a sentence starts as a proposal."""
    return _start("proposals").match(sentence) is not None


def reports_work(sentence: str) -> bool:
    """Return whether a sentence starts as a report of work done or about to begin."""
    return _start("reports").match(sentence) is not None


def offers(sentence: str) -> bool:
    """Return whether a question only offers help."""
    return _pattern("offers").search(sentence) is not None
