"""Durability: how much of a text that nobody asked to keep will still say something later.

Small closed classes of words in nine languages tell the passing from the lasting. A language that no class knows loses
nothing: its text is judged by its substance and its shape.
"""

import re
from collections.abc import Set as AbstractSet

from pipeline.text.lexicon import load_lexicon

_LEXICON = load_lexicon("durability")
_LASTING_WORDS = frozenset(_LEXICON.words("lasting_words"))
_LASTING_PHRASES = _LEXICON.words("lasting_phrases")
_LASTING_BEYOND_ASCII = _LEXICON.words("lasting_phrases_beyond_ascii")
_LATER_WORDS = frozenset(_LEXICON.words("later_words"))
_LATER_PHRASES = _LEXICON.words("later_phrases")

_WORK_ORDER = rf"(?:{_LEXICON.alternatives('request_verbs')}) (?:{_LEXICON.alternatives('request_objects')})\b"
_OPENING = re.compile(
    rf"\W{{0,4}}(?:(?:{_LEXICON.alternatives('consent')})(?:\W{{1,3}}|$))?"
    rf"(?:(?P<intent>{_LEXICON.alternatives('intent')})|(?P<polite>{_LEXICON.alternatives('polite')}|$)"
    rf"|(?P<request>{_LEXICON.alternatives('request')}|{_WORK_ORDER}))"
)
_ASKS = re.compile(r"[?？؟]\W{0,9}\Z")

# A line that a program wrote.
_LEVEL = r"\[?(?:debug|info|warn(?:ing)?|error|trace|notice)(?:\]|: )|npm (?:warn|err|notice)"
_TRACE = (
    r"traceback \(|file \"[^\"\n]{1,200}\", line \d|at \S{1,200} ?\(?\S{0,200}:\d|caused by: \S|\.{3} \d+ more"
    r"|\w{1,60}(?:error|exception): .{0,200}$|exit (?:code|status)|process exited"
)
_REPORT = (
    r"(?:pass|fail|ok|skip(?:ped)?) \S{0,200}[./]\w|[✓✔✗✘●⠋⠙⠹⠸]|[=\-_#*~+│├└]{4}"
    r"|[\d.,]{1,12}\s?(?:%|[kmg]i?b\b)"
    r"|\[[=#>\-. ]{3}|\d{1,9} (?:passed|failed|tests?|packages|files? changed|insertions|warnings|errors)\b"
    r"|(?:tests?|test suites|snapshots|time|duration): .{0,40}\d|ran \d{1,6} tests"
)
_PROGRESS = rf"(?:{_LEXICON.alternatives('progress')}) .{{0,80}}(?:\d|\.\.\.|…|$)"
_TOOLS = (
    r"[$>#%❯]\s|\[?\d{4}-\d\d-\d\d[t ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|[-dl][rwx-]{9} |total \d{1,9}$|diff --git"
    r"|index [0-9a-f]{7}|@@ -|[+-]{3} [ab]/|on branch |your branch |nothing to commit|commit [0-9a-f]{7,40}\b"
    r"|[\]\[{}(),;]{1,20}$|[!-~]++$"
)
_NOISE = re.compile(rf"\s*+(?:{_TOOLS}|{_LEVEL}|{_TRACE}|{_REPORT}|{_PROGRESS})")

_KEPT = {"intent": 0.25, "polite": 0.25, "request": 0.4}
_QUESTION_KEEPS, _LATER_KEEPS = 0.35, 0.4


def is_lasting(text: str, words: AbstractSet[str]) -> bool:
    """Tell whether a text in lower case gives a reason, a rule, a decision or a way out."""
    if not _LASTING_WORDS.isdisjoint(words) or any(phrase in text for phrase in _LASTING_PHRASES):
        return True
    return not text.isascii() and any(phrase in text for phrase in _LASTING_BEYOND_ASCII)


def measure_durable_share(text: str, words: AbstractSet[str], *, lasting: bool, answers: bool) -> float:
    """Return the share of a lower-case text's worth that outlives the moment; `answers` if it answers its question."""
    kept = 1.0 - _noise_share(text)
    opening = _OPENING.match(text)
    if opening is not None and not (lasting or (answers and opening.lastgroup == "request")):
        kept *= _KEPT[str(opening.lastgroup)]
    if not answers and _ASKS.search(text, max(0, len(text) - 10)):
        kept *= _QUESTION_KEEPS
    if not lasting and _puts_off(text, words):
        kept *= _LATER_KEEPS
    return kept


def _puts_off(text: str, words: AbstractSet[str]) -> bool:
    return not _LATER_WORDS.isdisjoint(words) or any(phrase in text for phrase in _LATER_PHRASES)


def _noise_share(text: str) -> float:
    """Return the share of the text's lines, by length, that a program wrote."""
    lines = text.split("\n")
    noise = sum(len(line) for line in lines if _NOISE.match(line))
    return noise / max(1, len(text) - len(lines) + 1)
