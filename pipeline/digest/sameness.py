"""What two memories are to each other: the rules behind deduplication and the detection of contradictions.

A cosine cannot tell a paraphrase from a memory with another number, so a merge needs more than one: every word that
carries meaning must stand in both texts, in an order that says the same. What a merge would destroy cannot be told from
the text that remains; a pair that waits costs a look. The rules therefore err towards waiting.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pipeline.digest.differences import active, compare, denial, hard_differences, soft_differences
from pipeline.digest.wording import read_both

MERGE_COSINE: Final = 0.92
PAIR_COSINE: Final = 0.80
# From here a denial counts as one of the same subject: the rules for it are strict, a cosine alone says little.
DENIAL_COSINE: Final = 0.60


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


def judge(first: str, second: str, cosine: float) -> Judgement:
    """Decide what two memories of one kind and scope are to each other, whichever comes first."""
    if not cosine >= min(DENIAL_COSINE, PAIR_COSINE):
        return Judgement(Relation.DIFFERENT, ("not similar",))
    if first == second and cosine >= MERGE_COSINE:
        return Judgement(Relation.SAME)
    one, other = read_both(*sorted((first, second)))
    one, other = active(one, other), active(other, one)
    comparison = compare(one, other)
    if cosine >= DENIAL_COSINE and (how := denial(comparison)):
        return Judgement(Relation.CONTRADICTS, (how,))
    if hard := hard_differences(comparison):
        return Judgement(Relation.DIFFERENT, tuple(hard))
    if cosine < PAIR_COSINE:
        return Judgement(Relation.DIFFERENT, ("not similar",))
    soft = soft_differences(comparison) if one.words else ["too little to compare"]
    if cosine < MERGE_COSINE:
        soft.insert(0, "not similar enough to merge")
    return Judgement(Relation.BORDERLINE if soft else Relation.SAME, tuple(soft))
