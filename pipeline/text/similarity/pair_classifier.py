"""The pair classifier: what two memories are to each other, and what blocks the merge of two that say the same.

A cosine cannot tell a paraphrase from a memory with another number, so a merge needs more than one: every word that
carries meaning must stand in both texts, in an order that says the same. What a merge would destroy cannot be told from
the text that remains; a pair that waits costs a look. The rules therefore err towards waiting.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.records import Kind, Memory
from pipeline.text.lexicon import load_lexicon
from pipeline.text.similarity.normalizer import normalize_pair
from pipeline.text.similarity.token_diff import (
    diff_tokens,
    find_denial,
    find_hard_differences,
    find_soft_differences,
    to_active_voice,
)

MERGE_COSINE: Final = 0.92
PAIR_COSINE: Final = 0.80
# From here a denial counts as one of the same subject: the rules for it are strict, a cosine alone says little.
DENIAL_COSINE: Final = 0.60

# What happened twice happened twice, however alike it is told.
EVENTS: Final = frozenset({Kind.ACTIVITY, Kind.EPISODE, Kind.MILESTONE})

_DAYS: Final = load_lexicon("similarity").table("of_its_day")
_OF_ITS_DAY: Final = re.compile(
    rf"\b(?:{_DAYS.alternatives('words')})\b|{_DAYS.alternatives('unspaced')}", re.IGNORECASE
)


class Relation(StrEnum):
    """What two memories are to each other."""

    SAME = "same"
    BORDERLINE = "borderline"
    CONTRADICTS = "contradicts"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A relation and why, in fixed phrases that hold nothing of the memories."""

    relation: Relation
    reasons: tuple[str, ...] = ()


def classify_pair(first: str, second: str, cosine: float) -> Judgement:
    """Decide what two memories of one kind and scope are to each other, whichever comes first."""
    if not cosine >= min(DENIAL_COSINE, PAIR_COSINE):
        return Judgement(Relation.DIFFERENT, ("not similar",))
    if first == second and cosine >= MERGE_COSINE:
        return Judgement(Relation.SAME)
    one, other = normalize_pair(*sorted((first, second)))
    one, other = to_active_voice(one, other), to_active_voice(other, one)
    comparison = diff_tokens(one, other)
    if cosine >= DENIAL_COSINE and (how := find_denial(comparison)):
        return Judgement(Relation.CONTRADICTS, (how,))
    if hard := find_hard_differences(comparison):
        return Judgement(Relation.DIFFERENT, tuple(hard))
    if cosine < PAIR_COSINE:
        return Judgement(Relation.DIFFERENT, ("not similar",))
    soft = find_soft_differences(comparison) if one.words else ["too little to compare"]
    if cosine < MERGE_COSINE:
        soft.insert(0, "not similar enough to merge")
    return Judgement(Relation.BORDERLINE if soft else Relation.SAME, tuple(soft))


def find_merge_blockers(survivor: Memory, absorbed: Memory) -> tuple[str, ...]:
    """Say in fixed phrases why one memory may not speak for another; nothing when it may."""
    found = []
    if survivor.occurred_at[:10] != absorbed.occurred_at[:10] and any(
        _OF_ITS_DAY.search(memory.content) for memory in (survivor, absorbed)
    ):
        found.append("each speaks of its own day")
    if absorbed.kind in EVENTS:
        found.append("events may happen twice")
    if survivor.details != absorbed.details:
        found.append("their fields differ")
    if survivor.anchor != absorbed.anchor:
        found.append("they are about different code")
    if survivor.branch != absorbed.branch:
        found.append("they belong to different branches")
    newer = max(survivor, absorbed, key=lambda memory: memory.seq)
    if absorbed.pinned:
        found.append(f"the {'newer' if absorbed is newer else 'older'} one is pinned")
    if survivor.candidate and not absorbed.candidate:
        found.append(f"the {'newer' if survivor is newer else 'older'} one waits for review")
    return tuple(found)
