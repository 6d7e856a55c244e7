"""Which of two texts says everything that the other says.

A merge keeps one text in the answers, so that the other must be in it: word for word, or as its beginning, followed by
a clause that only adds. What restricts ("only", "unless", "might") makes another claim of what stands before it. Rules
for this are known for English; of other texts each says more than the other until a person has looked.
"""

import re
from collections.abc import Iterator

from pipeline.text.similarity.normalizer import normalize_pair
from pipeline.text.similarity.pair_classifier import MERGE_COSINE, Relation, classify_pair

MAX_CHARS = 1_000
MAX_EXTRA_WORDS = 14

# Where a clause may end: before a new sentence, a coordinate clause, a reason, or a remark in brackets.
_BOUNDARY = re.compile(
    r"(?<=[.!])\s+(?=[A-Z])|\s*;\s+|,?\s+(?=(?:and|because|so that)\s)|,\s+(?=(?:since|as|so)\s)|\s+(?=\()",
)
_RESTRICTS = re.compile(
    # A clause that begins with "it" speaks of the whole of what stands before it.
    r"\Ait\b|\b(?:not?|never|none|neither|nor|without|except|unless|until|only|just|if|when|whenever|where|while"
    r"|but|however|although|though|otherwise|else|instead|rather|or|may|might|could|would|should|perhaps|maybe|possibly"
    r"|probably|sometimes|mostly|usually|often|rarely|almost|nearly|was|were|used to|formerly|previously|before|after"
    r"|planned|tentative|temporar\w+|for now|at first|this|that|these|those|which|both|wrong|false|untrue|deprecated"
    r"|obsolete|cancel\w*|revert\w*|undone|same|different)\b|n't\b|\?",
    re.IGNORECASE,
)
_NEGATES = re.compile(r"\b(?:not?|never|none|nobody|nothing|neither|without|either|between)\b|n't\b", re.IGNORECASE)


def says_more(text: str, other: str) -> bool:
    """Tell whether a text is the other, lightly reworded at most, and one clause more that only adds to it."""
    if max(len(text), len(other)) > MAX_CHARS or len(text) <= len(other):
        return False
    return any(classify_pair(head, other, MERGE_COSINE).relation is Relation.SAME for head in _heads(text))


def _heads(text: str) -> Iterator[str]:
    """Yield what stands before each clause that only adds."""
    for boundary in _BOUNDARY.finditer(text):
        head, extra = text[: boundary.start()], text[boundary.end() :]
        begins_anew = head.endswith((".", "!")) or boundary[0].lstrip().startswith(";")
        # Who is denied one thing "and" another may be denied both.
        if not begins_anew and _NEGATES.search(head):
            continue
        if len(extra.split()) > MAX_EXTRA_WORDS or _RESTRICTS.search(_without_lead(extra)):
            continue
        if normalize_pair(head, extra)[0].english:
            yield head


def _without_lead(extra: str) -> str:
    return re.sub(r"\A\(?(?:because|so that|since|so|as|and)\s", "", extra)
