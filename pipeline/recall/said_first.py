"""The user's own words before commits and outlines about the same thing, which are longer and more numerous."""

import re
from collections.abc import Sequence
from dataclasses import replace

from pipeline.kinds import is_indexed, is_said
from pipeline.recall.relevance import RELEVANT
from pipeline.records.recall import Hit
from pipeline.text.messages import list_own_words

# A word with this many letters more than the root is another word: "run" and "rundown".
LONGEST_ENDING = 5
_AGENT = re.compile(r"(?P<root>\w{3,}?)(?:ierer|er|ers|or|ors|ador|adora|adores|eur|eurs|euse)")
_WORD = re.compile(r"[^\W\d_]+")


def put_said_first(hits: Sequence[Hit], query: str) -> list[Hit]:
    """Return hits in their order, but those indexed from a project after the user's words about the same thing.

    The user's words are about it if they are relevant, or if they say what the tool that the query asks for does:
    "we format with ruff" answers "which formatter do we use". Other relevant hits keep their place before them. A hit
    that moves back gets the score of the last hit before it, so that scores still descend.
    """
    first = next((place for place, hit in enumerate(hits) if is_indexed(hit.memory)), None)
    if first is None:
        return list(hits)
    roots = list_activity_roots(query)
    answers = [
        is_said(hit.memory) and (hit.relevance >= RELEVANT or names_activity(hit.memory.content, roots)) for hit in hits
    ]
    last = max((place for place, is_answer in enumerate(answers) if is_answer), default=-1)
    if last < first:
        return list(hits)
    stays = [
        place < first or answers[place] or (place < last and hit.relevance >= RELEVANT and not is_indexed(hit.memory))
        for place, hit in enumerate(hits)
    ]
    before = [hit for hit, stay in zip(hits, stays, strict=True) if stay]
    moved = [hit for hit, stay in zip(hits, stays, strict=True) if not stay]
    lowest = before[-1].score
    return [*before, *(replace(hit, score=min(hit.score, lowest)) for hit in moved)]


def list_activity_roots(question: str) -> list[str]:
    """Return the roots of the activities whose tools a question names: "format" for "which formatter do we use"."""
    matches = (_AGENT.fullmatch(word) for word in list_own_words(question))
    return [_undouble(match["root"]) for match in matches if match]


def names_activity(text: str, roots: list[str]) -> bool:
    """Return whether a text contains a word with one of some roots."""
    words = [word.casefold() for word in _WORD.findall(text)] if roots else []
    return any(word.startswith(root) and len(word) <= len(root) + LONGEST_ENDING for word in words for root in roots)


def _undouble(root: str) -> str:
    return root[:-1] if root[-1] == root[-2] and len(root) > len("run") else root
