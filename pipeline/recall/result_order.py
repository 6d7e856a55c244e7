"""The steps that order the hits of an answer after ranking, each with the name under which an explanation shows it.

Within the ranking, current values already come first: the feature `newest_first` (current_values.py).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pipeline.kernel.kinds import is_indexed, is_said
from pipeline.kernel.records.recall import Hit, Query
from pipeline.recall.relevance import RELEVANT, fitted
from pipeline.text.messages import list_own_words

# A word with this many letters more than the root is another word: "run" and "rundown".
LONGEST_ENDING = 5
_AGENT = re.compile(r"(?P<root>\w{3,}?)(?:ierer|er|ers|or|ors|ador|adora|adores|eur|eurs|euse)")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class OrderStep:
    """A step after ranking: its name, and the function that orders the hits of a query."""

    name: str
    order: Callable[[Sequence[Hit], Query], Sequence[Hit]]


def order_hits(hits: Sequence[Hit], query: Query, steps: Sequence[OrderStep]) -> tuple[Hit, ...]:
    """Return hits in the order of all steps."""
    for step in steps:
        hits = step.order(hits, query)
    return tuple(hits)


def explain_order(hits: Sequence[Hit], query: Query, steps: Sequence[OrderStep], memory_id: str) -> Iterator[str]:
    """Yield what each step does that changes the place of a memory."""
    for step in steps:
        place, hits = _find_place(hits, memory_id), step.order(hits, query)
        if place != (moved := _find_place(hits, memory_id)):
            yield f"{step.name}: moved from {place} to {moved}"


def _find_place(hits: Sequence[Hit], memory_id: str) -> str:
    places = (f"number {place}" for place, hit in enumerate(hits, 1) if hit.memory.id == memory_id)
    return next(places, "outside of the results")


def demote_missing(hits: Sequence[Hit]) -> list[Hit]:
    """Rank memories about missing or different code below all memories with at least half their relevance."""
    ordered = [hit for hit in hits if not (hit.annotations.missing or hit.annotations.broken)]
    for hit in hits:
        if hit.annotations.missing or hit.annotations.broken:
            before = [
                rank for rank, other in enumerate(ordered, 1) if fitted(other.relevance) >= fitted(hit.relevance) / 2
            ]
            rank = before[-1] if before else 0
            score = min(hit.score, ordered[rank - 1].score) if rank else hit.score
            ordered.insert(rank, replace(hit, score=score))
    return ordered


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


def merge_hits(own: Sequence[Hit], others: Sequence[Hit], query: Query) -> list[Hit]:
    """Merge the hits of another store, each before the first hit with a lower relevance."""
    hits = list(own)
    # A memory that its person shared here is in both stores.
    known = {hit.memory.id for hit in hits}
    index = 0
    for hit in others:
        if hit.memory.id in known:
            continue
        while index < len(hits) and hits[index].relevance >= hit.relevance:
            index += 1
        hits.insert(index, hit)
        index += 1
    if not query.text:
        # Without a question, hits are ordered by importance, which is their score.
        hits.sort(key=lambda hit: hit.score, reverse=True)
    return hits[: query.k]


# The steps of each store's answer.
OF_STORE: Final = (
    OrderStep("missing_code_last", lambda hits, _query: demote_missing(hits)),
    OrderStep("own_words_first", lambda hits, query: put_said_first(hits, query.text)),
)


def of_personal_store(others: Sequence[Hit]) -> OrderStep:
    """Return the step that merges the hits about the person."""
    return OrderStep("personal_store", lambda hits, query: merge_hits(hits, others, query))


def of_team(others: Sequence[Hit]) -> OrderStep:
    """Return the step that merges the hits of a team."""
    return OrderStep("team", lambda hits, query: merge_hits(hits, others, query))
