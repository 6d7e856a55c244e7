"""Questions that a project's past sessions answer, in the words of the sessions.

A question is only made where its form is natural English: from a decision with its reason, from a decision about a
named thing, or from a question that the person asked an agent. The caller checks that a search finds the answer.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pipeline.text.languages import may_be_foreign
from pipeline.text.messages import list_own_words, says_little

LONGEST_QUESTION = 90
SHORTEST_TITLE, LEAST_TITLE_WORDS, LEAST_OWN_WORDS = 18, 4, 3

# Verbs of decisions in the past, and the same verbs in a question.
_PAST = {
    "chose": "choose",
    "decided": "decide",
    "agreed": "agree",
    "switched": "switch",
    "moved": "move",
    "dropped": "drop",
    "picked": "pick",
    "settled": "settle",
    "went": "go",
    "kept": "keep",
    "replaced": "replace",
    "removed": "remove",
    "added": "add",
    "migrated": "migrate",
    "pinned": "pin",
    "disabled": "disable",
    "stopped": "stop",
}
_PRESENT = (
    "use|keep|store|run|pin|build|deploy|cache|retry|skip|avoid|log|round|sort|return|treat|send|write|test|freeze|"
    "ship|release|split|limit|disable|require|allow|reject|ignore|prefer|publish|generate|validate"
)
# What is decided is short and contains no other clause; another clause may precede the reason.
_OBJECT = r"[^.;:,()“”\"?!\n]{3,60}?"
_REASON = r"(?:,[^.;:,]{1,40})?(?:,? because\b|,? since\b|,? so that\b|,? as it\b)"
_DECIDED = re.compile(rf"\b[Ww]e (?:have )?(?P<verb>{'|'.join(_PAST)}) (?P<object>{_OBJECT}){_REASON}")
_DO = re.compile(rf"\b[Ww]e (?:now |always |only )?(?P<verb>{_PRESENT}) (?P<object>{_OBJECT}){_REASON}")
_DOES = re.compile(
    rf"\b(?P<subject>[Tt]he (?:[\w./-]+ ){{1,3}}?)(?P<verb>{_PRESENT})(?:s|es) (?P<object>{_OBJECT}){_REASON}"
)
_IS = re.compile(
    rf"(?:^|[.:;,] )(?P<subject>(?:[Tt]he )?(?:[\w./-]+ ){{1,3}}?)(?P<verb>is|are) "
    rf"(?P<object>(?:[a-z]+ )?[a-z]+ed {_OBJECT}){_REASON}"
)
_WHY = (
    (_DECIDED, "Why did we {verb} {object}?"),
    (_DO, "Why do we {verb} {object}?"),
    (_DOES, "Why does {subject} {verb} {object}?"),
    (_IS, "Why {verb} {subject} {object}?"),
)
_FIRST_QUESTION = re.compile(r"[^.?!]+\?")
_ASKS = re.compile(r"(?:how|why|what|which|where|when|who|do|does|is|are|can|should) .*\w\?", re.IGNORECASE)
# Words that refer to something that the question would not name.
_REFERS = re.compile(r"\b(?:this|that|these|those|it|they|them|he|she|above|below|here|there)\b", re.IGNORECASE)
# A path, an identifier, or a word with a capital letter after its first.
_NAME = re.compile(r"(?=[\w./@-]{3,40}$)[\w@][\w./@-]*(?:[_/.-]\w|[a-z]\d|\w[A-Z])[\w./@-]*")


@dataclass(frozen=True, slots=True)
class Stated:
    """A conclusion of a session and its topic, or the title of a session, which has no topic."""

    session_id: str
    text: str
    topic: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the session that answers it."""

    text: str
    session_id: str


def make_questions(conclusions: Sequence[Stated], titles: Sequence[Stated]) -> Iterator[Question]:
    """Yield questions, the most natural first: why, what the person asked, and what was decided about a thing."""
    for conclusion in conclusions:
        text = _ask_why(conclusion.text)
        if text is not None:
            yield Question(text, conclusion.session_id)
    for title in titles:
        text = _find_question(title.text)
        if text is not None:
            yield Question(text, title.session_id)
    common = _list_common([conclusion.topic for conclusion in conclusions])
    for conclusion in conclusions:
        name = _find_name(conclusion, common)
        if name is not None:
            yield Question(f"What did we decide about {name}?", conclusion.session_id)


def _ask_why(text: str) -> str | None:
    """Return the question for the reason that a decision states."""
    if may_be_foreign(text):
        return None
    for pattern, form in _WHY:
        match = pattern.search(text)
        if match is not None and _REFERS.search(match["object"]) is None:
            parts = {name: value.strip() for name, value in match.groupdict().items()}
            subject = parts.pop("subject", "")
            verb = _PAST.get(parts["verb"], parts["verb"])
            lower = subject if subject[:2].isupper() else subject[:1].lower() + subject[1:]
            question = form.format(subject=lower, verb=verb, object=parts["object"])
            return question if len(question) <= LONGEST_QUESTION else None
    return None


def _find_question(title: str) -> str | None:
    """Return the question with which a title starts, if it is clear without its session."""
    question = _FIRST_QUESTION.match(" ".join(title.split()))
    return question[0] if question is not None and _is_question(question[0]) else None


def _is_question(title: str) -> bool:
    """Return whether a text is a question that is clear without its session."""
    if not SHORTEST_TITLE <= len(title) <= LONGEST_QUESTION or len(title.split()) < LEAST_TITLE_WORDS:
        return False
    is_vague = _REFERS.search(title) is not None or len(list_own_words(title)) < LEAST_OWN_WORDS or says_little(title)
    return _ASKS.fullmatch(title) is not None and not is_vague


def _list_common(topics: Sequence[Sequence[str]]) -> set[str]:
    """Return the names that are in so many topics that a question about them has many answers."""
    return {name for topic in topics for name in topic if sum(name in other for other in topics) > 2}


def _find_name(conclusion: Stated, common: Collection[str]) -> str | None:
    """Return the name that a decision in English is about: one of its topic, as the decision writes it."""
    if may_be_foreign(conclusion.text):
        return None
    for name in conclusion.topic:
        written = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", conclusion.text, re.IGNORECASE)
        if written is not None and name not in common and _NAME.fullmatch(written[0]) is not None:
            return written[0]
    return None
