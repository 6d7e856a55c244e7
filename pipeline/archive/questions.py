"""Questions that a project's past sessions answer, in the words of the sessions.

A question is only made where its form is natural English: from a decision with its reason, from a decision about a
named thing, or from a question that the person asked an agent. The caller checks that a search finds the answer.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pipeline.text.languages import may_be_foreign
from pipeline.text.messages import is_follow_up, says_little

LONGEST_QUESTION = 90
SHORTEST_TITLE, LEAST_TITLE_WORDS = 18, 4
LEAST_NAME_CHARS = 3

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
_REASON = r"(?:,? because\b|,? since\b|,? so that\b|,? as it\b|;? (?:the )?reason\b)"
# What is decided must be short and must not contain another clause.
_OBJECT = r"[^.;:,()“”\"?!\n]{3,60}?"
_DECIDED = re.compile(rf"\b[Ww]e (?:have )?(?P<verb>{'|'.join(_PAST)}) (?P<object>{_OBJECT}){_REASON}")
_DO = re.compile(rf"\b[Ww]e (?:now |always |only )?(?P<verb>{_PRESENT}) (?P<object>{_OBJECT}){_REASON}")
_ASKS = re.compile(r"(?:how|why|what|which|where|when|who|do|does|is|are|can|should) .*\w\?", re.IGNORECASE)
# Words that refer to something that the question would not name.
_REFERS = re.compile(r"\b(?:this|that|these|those|it|they|them|he|she|above|below|here|there)\b", re.IGNORECASE)
_NAME = re.compile(r"[\w./@-]*[A-Za-z][\w./@-]*")


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
        if _is_question(title.text):
            yield Question(title.text.strip(), title.session_id)
    common = _list_common([conclusion.topic for conclusion in conclusions])
    for conclusion in conclusions:
        name = _find_name(conclusion, common)
        if name is not None:
            yield Question(f"What did we decide about {name}?", conclusion.session_id)


def _ask_why(text: str) -> str | None:
    """Return the question for the reason that a decision states."""
    for pattern, ask in ((_DECIDED, "Why did we"), (_DO, "Why do we")):
        match = pattern.search(text)
        if match is not None and not may_be_foreign(text) and _REFERS.search(match["object"]) is None:
            verb = _PAST.get(match["verb"], match["verb"])
            question = f"{ask} {verb} {match['object'].strip()}?"
            return question if len(question) <= LONGEST_QUESTION else None
    return None


def _is_question(title: str) -> bool:
    """Return whether a title is a question that is clear without its session."""
    title = " ".join(title.split())
    if not SHORTEST_TITLE <= len(title) <= LONGEST_QUESTION or len(title.split()) < LEAST_TITLE_WORDS:
        return False
    is_vague = _REFERS.search(title) is not None or is_follow_up(title) or says_little(title)
    return _ASKS.fullmatch(title) is not None and not is_vague


def _list_common(topics: Sequence[Sequence[str]]) -> set[str]:
    """Return the names that are in so many topics that a question about them has many answers."""
    return {name for topic in topics for name in topic if sum(name in other for other in topics) > 2}


def _find_name(conclusion: Stated, common: Collection[str]) -> str | None:
    """Return the name that a decision in English is about: one of its topic that it contains."""
    if may_be_foreign(conclusion.text):
        return None
    names = [name for name in conclusion.topic if _names_thing(name) and name not in common]
    return next((name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", conclusion.text)), None)


def _names_thing(name: str) -> bool:
    return len(name) >= LEAST_NAME_CHARS and _NAME.fullmatch(name) is not None
