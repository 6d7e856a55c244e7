"""Detect prompt injection by rules: text that tries to instruct the agent that reads it.

A pattern of `lexicon/injections.toml` is only tried at one of its plain heads. Every repetition in the patterns is
bounded, so the time is linear in the text.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pipeline.text.lexicon import load_lexicon
from pipeline.text.normalize import limit_marks

_NO_WIDTH = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]+"
)
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Invisible letters. Only a black flag may be followed by some: the flag of England is encoded so.
_HIDDEN = re.compile("(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007e]{4}|[\U000e0100-\U000e01ef]{4}")
_WIDE = str.maketrans("，：；！？（）", ",:;!?()")
_MIXED_SCRIPTS = re.compile("[a-z][\u0370-\u052f]|[\u0370-\u052f][a-z]")
# Lower-case letters of Cyrillic and Greek, and the Latin letters that they imitate.
_LOOKALIKES = str.maketrans("авеіјкмнорѕстухԁһԛԝӏгпαβεηικνορτυχω", "abeijkmhopsctyxdhqwlrnabenikvoptuxw")

_WORD = re.compile(r"[^\W_]+")
_BEGINNING = 3  # letters
_WITHOUT_SPACES = re.compile("[\u3040-\u30ff\u3400-\u9fff]")

_BLANKS = re.compile(r"[^\S\n]++")
_BETWEEN = r"(?:[\W_]{1,3}+)"
_GAP = r"(?:[\w'’-]{1,24}+[^\w.!?\n]{1,3}+){0,4}?"

# An order counts only if it is neither negated nor reported.
_BEFORE_ORDER = 40  # characters looked back over
_SENTENCE = re.compile(r"[.!?;\n]")
_NEGATED = re.compile(
    r"(?:\b(?:never|not|cannot|nicht|nie|niemals|no|nunca|ne|nao|не|ні|никогда|ніколи)|n't)\W{1,3}(?:\w{1,20}\W{1,3})?$"
)
_REPORTED = re.compile(
    r"\b(?:to|we|they|i|he|she|it|can|could|would|will|may|might|must|should|that|which|who|did|does|do|let'?s|users?"
    r"|clients?|servers?|models?|agents?|tests?|parsers?|wir|sie|er|es|ich|zu|мы|они|он|ми|вони)"
    r"\W{1,3}(?:(?:\w{1,20}ly|just|also)\W{1,3})?$"
)
_ADDRESSED = re.compile(r"\b(?:you|please)\b")


_PART = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class _InjectionRule:
    pattern: re.Pattern[str]
    anchored: bool  # whether the pattern starts with its head
    order: bool


# The literal start of a rule's matches, and the rule.
_Head = tuple[str, _InjectionRule]


def instructs(text: str) -> bool:
    """Return whether a text (NFC) tries to instruct the agent: prompt injection, not a rule about the work."""
    if text.isascii():
        return _breaks_in(text.lower())
    if _NO_WIDTH.search(text):
        if _HIDDEN.search(text):
            return True
        text = _NO_WIDTH.sub("", text)
    folded = _fold(limit_marks(text))
    if _breaks_in(folded):
        return True
    return _MIXED_SCRIPTS.search(folded) is not None and _breaks_in(folded.translate(_LOOKALIKES))


def _fold(text: str) -> str:
    """Return a text without compatibility forms, accents and case."""
    # Chinese has many full-width marks, and normalizing them one by one takes three times as long.
    return _strip_accents(unicodedata.normalize("NFKC", text.translate(_WIDE)).casefold())


def _strip_accents(text: str) -> str:
    """Return a text without accents; a pattern keeps its case, which is significant in expressions."""
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))


def _breaks_in(folded: str) -> bool:
    if "  " in folded or "\t" in folded:
        folded = _BLANKS.sub(" ", folded)
    worded, unspaced = _rules()
    beginnings = {word[:_BEGINNING] for word in _WORD.findall(folded)}
    # A head may span a line break; its position stays the same.
    line = folded.replace("\n", " ")
    for beginning in worded.keys() & beginnings:
        if _any_found(worded[beginning], folded, line):
            return True
    if folded.isascii() or not _WITHOUT_SPACES.search(folded):
        return False
    return _any_found(unspaced, folded, line)


def _any_found(heads: Sequence[_Head], folded: str, line: str) -> bool:
    # Called several times for every text, so without a generator.
    for head, rule in heads:  # noqa: SIM110
        if head in line and _matches_rule(rule, head, folded, line):
            return True
    return False


def _matches_rule(rule: _InjectionRule, head: str, folded: str, line: str) -> bool:
    if not rule.anchored:
        return rule.pattern.search(folded) is not None
    at = line.find(head)
    while at >= 0:
        if rule.pattern.match(folded, at) and (not rule.order or _is_order(folded[max(0, at - _BEFORE_ORDER) : at])):
            return True
        at = line.find(head, at + 1)
    return False


def _is_order(before: str) -> bool:
    sentence = _SENTENCE.split(before)[-1]
    if _NEGATED.search(sentence):
        return False
    return _ADDRESSED.search(sentence) is not None or _REPORTED.search(sentence) is None


def _read_rules(table: str, *, anchored: bool, order: bool) -> Iterator[_Head]:
    """Yield each head of a table with its rule."""
    lexicon = load_lexicon("injections").entries
    parts = {name: "".join(pattern) for name, pattern in lexicon["parts"].items()}
    for entry in lexicon[table]:
        whole = _PART.sub(lambda match: parts[match[1]], "".join(entry["pattern"]))
        spelt = _strip_accents(whole).replace(" ", _BETWEEN).replace("…", _GAP)
        rule = _InjectionRule(re.compile(spelt, re.MULTILINE), anchored, order)
        yield from ((_strip_accents(head), rule) for head in entry["heads"])


# Compiled for the first text: most programs that import this never need it.
@cache
def _rules() -> tuple[Mapping[str, Sequence[_Head]], Sequence[_Head]]:
    """Return the heads by the start of their first word, and the heads in scripts without spaces."""
    heads = (
        *_read_rules("orders", anchored=True, order=True),
        *_read_rules("statements", anchored=True, order=False),
        *_read_rules("anywhere", anchored=False, order=False),
    )
    worded: dict[str, list[_Head]] = {}
    for head, rule in heads:
        if first := None if _WITHOUT_SPACES.search(head) else _WORD.search(head):
            worded.setdefault(first[0][:_BEGINNING], []).append((head, rule))
    return worded, tuple(head for head in heads if _WITHOUT_SPACES.search(head[0]))
