"""The user's own words before commits and outlines about the same thing, which are longer and more numerous."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.kinds import is_indexed, is_said
from pipeline.recall.relevance import RELEVANT
from pipeline.records.recall import Hit
from pipeline.text.agent_nouns import list_activity_roots, names_activity


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
