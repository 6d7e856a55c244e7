"""Decide whether to store an offered memory: seven rule-based features, one score, three classes.

Memories that are written, imported or synced explicitly are stored, unless they would end a fact that a person or an
agent stated. The rules apply to agents' ambient notes and to captured messages: lasting statements are stored,
passing remarks are not. Substance counts equally in every language. Language-specific words (small closed classes in
nine languages) only add to the score or explain a loss.
"""

import re
from collections.abc import Callable, Set as AbstractSet
from dataclasses import dataclass
from enum import IntEnum

from pipeline.kernel.records import Kind, Scope, ScopeKind, Source
from pipeline.kernel.records.extraction import NO_EXTRACTION, Disposition, Extraction
from pipeline.text.lexicon import load_lexicon
from pipeline.text.redaction.formats import MARKER, NOTHING
from pipeline.text.tokens import STOP_WORDS

ACTIVE_FROM = 0.5
MIDDLE_FROM = 0.44
REPEATS_TO_ADMIT = 3  # offers before this one
REPETITION_WEIGHT = 0.05
SURE_FROM = 0.5  # the certainty of an extractor below which a person reviews the offer

WEAK = 0.35  # a feature below it is named as a reason

DELIBERATE = frozenset({Source.USER, Source.IMPORT, Source.SYNC})

NOTHING_LEFT = "no letters or digits"
ONLY_SECRETS = "nothing but secrets"
REVIEW_IS_OFF = "needs review, and review is off"
OFFERED_REPEATEDLY = "offered again and again"
DELIBERATELY_WRITTEN = "written on purpose"
UNSURE = "the extractor is not sure"
ADVISED_REVIEW = "the extractor asks for a review"
ADVISED_DROP = "the extractor advises against it"

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
_SENTENCE = re.compile(r"[^\s.!?。！？].*?(?:[.!?](?=\s|$)|[。！？\n]|$)", re.DOTALL)
_ASKS = re.compile(r"[?？؟]\W{0,9}\Z")

# A line of program output.
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


@dataclass(frozen=True, slots=True)
class Offer:
    """An offered memory. Its content is redacted; `redactions` counts removed secrets, `repeats` earlier offers."""

    content: str
    kind: Kind
    source: Source
    scope: Scope
    importance: float | None
    redactions: int
    repeats: int
    contradicts: bool
    extraction: Extraction = NO_EXTRACTION


class AdmissionVerdict(IntEnum):
    """The policy's verdict on an offer, the lowest first."""

    REJECTED = 0
    CANDIDATE = 1
    ACTIVE = 2


@dataclass(frozen=True, slots=True)
class Admission:
    """The verdict, the score from 0 to 1, and fixed phrases for the reasons, which never quote the memory."""

    verdict: AdmissionVerdict
    score: float
    reasons: tuple[str, ...]


def admit(offer: Offer, *, review: bool) -> Admission:
    """Decide about an offer; without review, an offer that needs review is rejected."""
    if offer.source not in DELIBERATE and NOTHING.fullmatch(offer.content):
        return Admission(
            AdmissionVerdict.REJECTED, 0.0, (ONLY_SECRETS if "[REDACTED:" in offer.content else NOTHING_LEFT,)
        )
    values = [(feature, feature.value(offer)) for feature in FEATURES]
    score = round(sum(feature.weight * value for feature, value in values), 3)
    weak = tuple(feature.weakness for feature, value in values if value < WEAK and feature.weakness is not None)
    limit, doubts = _limit_of(offer.extraction)
    verdict, reasons = min(_judge_offer(offer, score), limit), (*doubts, *weak)
    if verdict is AdmissionVerdict.ACTIVE:
        merit = DELIBERATELY_WRITTEN if offer.source in DELIBERATE else OFFERED_REPEATEDLY
        reasons = () if score >= ACTIVE_FROM else (merit,)
    elif verdict is AdmissionVerdict.CANDIDATE and not review:
        verdict, reasons = AdmissionVerdict.REJECTED, (*reasons, REVIEW_IS_OFF)
    return Admission(verdict, score, reasons)


def _judge_offer(offer: Offer, score: float) -> AdmissionVerdict:
    verdict = AdmissionVerdict.ACTIVE if offer.source in DELIBERATE else _judge_score(score)
    if offer.repeats >= REPEATS_TO_ADMIT:
        # Repetition raises an offer by one class, so it cannot make chatter active.
        fresh = _judge_score(score - REPETITION_WEIGHT * repetition(offer))
        verdict = max(verdict, AdmissionVerdict(min(fresh + 1, AdmissionVerdict.ACTIVE)))
    # Repetition does not make an offer true, so this check comes last.
    is_contradicting = offer.contradicts and offer.source is not Source.USER
    return min(verdict, AdmissionVerdict.CANDIDATE) if is_contradicting else verdict


def _limit_of(extraction: Extraction) -> tuple[AdmissionVerdict, tuple[str, ...]]:
    """Return the highest class that an extractor's certainty and advice permit from any source, and the reasons."""
    if extraction.disposition is Disposition.DROP:
        return AdmissionVerdict.REJECTED, (ADVISED_DROP,)
    doubts = (ADVISED_REVIEW,) if extraction.disposition is Disposition.REVIEW else ()
    if extraction.confidence is not None and extraction.confidence < SURE_FROM:
        doubts = (*doubts, UNSURE)
    return (AdmissionVerdict.CANDIDATE if doubts else AdmissionVerdict.ACTIVE), doubts


def _judge_score(score: float) -> AdmissionVerdict:
    # One class for each limit that the score reaches.
    return AdmissionVerdict((score >= MIDDLE_FROM) + (score >= ACTIVE_FROM))


# The features: each from 0 to 1, higher speaks for keeping

_TOLD_KINDS = frozenset({Kind.DECISION, Kind.LESSON, Kind.GOAL, Kind.KEYED_FACT})
_EXPLICIT = {Source.USER: 1.0, Source.IMPORT: 1.0, Source.SYNC: 1.0, Source.AGENT: 0.4, Source.AMBIENT: 0.1}
_RELIABLE = {Source.USER: 1.0, Source.IMPORT: 0.9, Source.SYNC: 0.9, Source.AGENT: 0.5, Source.AMBIENT: 0.3}
_OWNED = frozenset({ScopeKind.AGENT, ScopeKind.TASK})


def explicitness(offer: Offer) -> float:
    """Return how explicitly a user or agent asked to keep this: by weight, kind and source."""
    if offer.importance is not None:
        return 1.0
    return max(_EXPLICIT[offer.source], 0.7 if offer.kind in _TOLD_KINDS else 0.0)


def durability(offer: Offer) -> float:
    """Return the share of the text that is still meaningful next month."""
    if offer.source in DELIBERATE:
        # The result does not depend on it, so skip the analysis: imports write entire conversations turn by turn.
        glance = offer.content[:_GLANCE].lower()
        return _saturate(_substance(glance, set(glance.split())))
    text = offer.content[:_READ]
    lowered = text.lower()
    words = _words(lowered)
    value = _saturate(_substance(lowered, words))
    lasting = is_lasting(lowered, words)
    value += 0.2 * lasting + 0.1 * (_ANCHOR.search(text) is not None)
    return min(1.0, value) * measure_durable_share(lowered, lasting=lasting, answers=offer.kind is Kind.QA)


def scope_clarity(offer: Offer) -> float:
    """Return how clear the memory's audience is."""
    if offer.scope.kind in _OWNED and offer.scope.id is None:
        return 0.3
    return 0.6 if offer.scope.kind is ScopeKind.SESSION else 0.8


def repetition(offer: Offer) -> float:
    """Return how often the same text was offered before, up to REPEATS_TO_ADMIT."""
    return min(offer.repeats / REPEATS_TO_ADMIT, 1.0)


def agreement(offer: Offer) -> float:
    """Return whether the offer agrees with current facts; a user may always correct them."""
    return 0.0 if offer.contradicts and offer.source is not Source.USER else 1.0


def discretion(offer: Offer) -> float:
    """Return the share of the text that was not secret, counting a secret as eight words."""
    if not offer.redactions:
        return 1.0
    lowered = offer.content[:_READ].lower()
    substance = _substance(lowered, _words(lowered))
    return substance / (substance + 8 * offer.redactions)


def reliability(offer: Offer) -> float:
    """Return the reliability of the source; the certainty of an extractor counts as much."""
    confidence, source = offer.extraction.confidence, _RELIABLE[offer.source]
    return source if confidence is None else (source + confidence) / 2


@dataclass(frozen=True, slots=True)
class AdmissionFeature:
    """An aspect of an offer: its function, its weight in the score, and the name of its weakness."""

    value: Callable[[Offer], float]
    weight: float
    weakness: str | None


FEATURES = (
    AdmissionFeature(explicitness, 0.20, "not requested by anyone"),
    AdmissionFeature(durability, 0.35, "little lasting content"),
    AdmissionFeature(scope_clarity, 0.05, "unclear audience"),
    # A new text is no weakness.
    AdmissionFeature(repetition, REPETITION_WEIGHT, None),
    AdmissionFeature(agreement, 0.10, "contradicts a current fact"),
    AdmissionFeature(discretion, 0.10, "mostly secrets"),
    AdmissionFeature(reliability, 0.15, "captured automatically"),
)

# Substance

_READ = 1500  # characters that are judged; more say no more about the whole
_GLANCE = 200
_HALF_OF_ENOUGH = 4  # content words

_MARKER = re.compile(MARKER, re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+")
_ANCHOR = re.compile(r"[^\W\d_][-_.:]*\d|\d[-_.:%]*[^\W\d_]|[a-z][A-Z]|\w[_./\\@#=]+\w|\d\d|`")


def _words(lowered: str) -> set[str]:
    if "[redacted:" in lowered:
        lowered = _MARKER.sub(" ", lowered)
    return set(_WORD.findall(lowered))


def _substance(lowered: str, words: set[str]) -> float:
    """Return the number of distinct content words; in scripts without spaces, two characters are a word."""
    count = len(words - STOP_WORDS)
    if lowered.isascii():
        return count
    return count + len(set("".join(_UNSPACED.findall(lowered)))) / 2


def _saturate(substance: float) -> float:
    return substance / (substance + _HALF_OF_ENOUGH)


def is_lasting(text: str, words: AbstractSet[str]) -> bool:
    """Return whether a lower-case text gives a reason, a rule, a decision or a solution."""
    if not _LASTING_WORDS.isdisjoint(words) or any(phrase in text for phrase in _LASTING_PHRASES):
        return True
    return not text.isascii() and any(phrase in text for phrase in _LASTING_BEYOND_ASCII)


def measure_durable_share(text: str, *, lasting: bool, answers: bool) -> float:
    """Return the lasting share of a lower-case text; `answers` if it answers its own question.

    A request, a question or a postponement discounts its own sentence, not the statements next to it.
    """
    share = 1.0 - _noise_share(text)
    # Few texts postpone anything: only then is each sentence split into words.
    may_put_off = not lasting and _puts_off(text, _words(text))
    sentences = [(match[0], len(match[0])) for match in _SENTENCE.finditer(text)]
    total = sum(length for _, length in sentences)
    if not total:
        return share
    return (
        share
        * sum(
            length * _keep(sentence, lasting=lasting, answers=answers, may_put_off=may_put_off)
            for sentence, length in sentences
        )
        / total
    )


def _keep(sentence: str, *, lasting: bool, answers: bool, may_put_off: bool) -> float:
    weight = 1.0
    opening = _OPENING.match(sentence)
    if opening is not None and not (lasting or (answers and opening.lastgroup == "request")):
        weight *= _KEPT[str(opening.lastgroup)]
    if not answers and _ASKS.search(sentence, max(0, len(sentence) - 10)):
        weight *= _QUESTION_KEEPS
    if may_put_off and _puts_off(sentence, _words(sentence)):
        weight *= _LATER_KEEPS
    return weight


def _puts_off(text: str, words: AbstractSet[str]) -> bool:
    return not _LATER_WORDS.isdisjoint(words) or any(phrase in text for phrase in _LATER_PHRASES)


def _noise_share(text: str) -> float:
    """Return the share of program output in the text's lines, by length."""
    lines = text.split("\n")
    noise = sum(len(line) for line in lines if _NOISE.match(line))
    return noise / max(1, len(text) - len(lines) + 1)
