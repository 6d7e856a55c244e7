"""The user's own words before commits and outlines about the same thing, which are longer and more numerous."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.kinds import is_indexed, is_said
from pipeline.recall.relevance import RELEVANT
from pipeline.records.recall import Hit


def put_said_first(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits in their order, but those indexed from a project after the relevant ones that the user said.

    A hit that moves gets the score of the last hit before it, so that scores still descend.
    """
    said = [index for index, hit in enumerate(hits) if is_said(hit.memory) and hit.relevance >= RELEVANT]
    if not said:
        return list(hits)
    before, after = hits[: said[-1] + 1], hits[said[-1] + 1 :]
    lowest = before[-1].score
    moved = [replace(hit, score=min(hit.score, lowest)) for hit in before if is_indexed(hit.memory)]
    return [*(hit for hit in before if not is_indexed(hit.memory)), *moved, *after]
