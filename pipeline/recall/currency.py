"""Put current values first: among the best hits that give different values for one slot, the newest comes first.

A slot is taken literally from the text that states it; if a text states it in fewer words, the query must name the
rest. Only the top hits are examined, and they only change places among themselves.
"""

import re
from collections.abc import Mapping
from itertools import combinations, product
from sqlite3 import Connection

from pipeline.recall.rank import Ranking, join_groups, put_newest_first
from pipeline.records import Kind, Memory, Trust
from pipeline.store import memories
from pipeline.text.similarity.stated_values import LEAST_WORDS, StatedValue, find_stated_values, slot_words
from pipeline.text.tokens import speaker_of

LOOKED_AT = 30
# Minimum share of the query's words that a slot must contain.
ANSWERED = 0.6
# A text with more values is a table; only the values closest to the query are examined.
MOST_VALUES = 12
# Shorter slots are equal by chance: "a total of 30 pages".
SURE_WORDS = 3
# A memory with this many more words of the query outside of the slot is relevant because of them.
MORE_BESIDE = 2
# A memory with additional items of every kind that it lists is not replaced.
LISTING = frozenset({Kind.CODE, Kind.DOCUMENT, Kind.KEYED_FACT})
# A query for an earlier value does not ask for the current one.
_EARLIER = re.compile(
    r"\b(?:(?:original|previous|former|initial)(?:ly)?|earlier|before|at first|back then|used to|old)\b", re.IGNORECASE
)


def put_current_first(db: Connection, ranking: Ranking, text: str) -> Ranking:
    """Return a ranking in which the newest of several values of a slot comes first."""
    if _EARLIER.search(text):
        return ranking
    top = ranking.order[:LOOKED_AT].tolist()
    places = dict(zip(ranking.evidence.seqs[top].tolist(), top, strict=True))
    asked = frozenset(slot_words(text))
    stated = {
        seq: values
        for seq, content in memories.contents(db, list(places)).items()
        if (values := _find_asked_values(content, asked, text))
    }
    groups = _group_by_slot(memories.by_seqs(db, stated), stated, asked) if len(stated) > 1 else []
    return put_newest_first(ranking, [[places[seq] for seq in group] for group in groups])


def _group_by_slot(
    told: Mapping[int, Memory], stated: Mapping[int, list[StatedValue]], asked: frozenset[str]
) -> list[list[int]]:
    """Group memories, by row number, that give different values for one slot."""
    stated = {seq: stated[seq] for seq, memory in told.items() if memory.kind not in LISTING and not memory.instructs}
    answering = {seq: [one for one in values if _answers(one, asked)] for seq, values in stated.items()}
    if any(answering.values()):
        stated = answering
    return join_groups(
        (seq, other)
        for seq, other in combinations(stated, 2)
        if any(_give_other_values(one, another, asked) for one, another in product(stated[seq], stated[other]))
        and _may_replace(told[seq], told[other])
    )


def _find_asked_values(content: str, asked: frozenset[str], text: str) -> list[StatedValue]:
    values = dict.fromkeys(one for one in find_stated_values(content) if _is_asked(one, asked, text))
    return sorted(values, key=lambda one: len(one.slot & asked), reverse=True)[:MOST_VALUES]


def _is_asked(one: StatedValue, asked: frozenset[str], text: str) -> bool:
    # A query that names a value asks about that value, current or not; its neighbor may be the better answer.
    return one.value not in text and len(one.beside & asked) < MORE_BESIDE


def _answers(one: StatedValue, asked: frozenset[str]) -> bool:
    return len(one.slot & asked) >= max(LEAST_WORDS, ANSWERED * len(asked))


def _may_replace(one: Memory, other: Memory) -> bool:
    """Return whether one memory may be an update of the other, regardless of their order."""
    older, newer = sorted((one, other), key=lambda memory: (memory.occurred_at, memory.seq))
    return (
        (older.scope, older.branch, speaker_of(older.content)) == (newer.scope, newer.branch, speaker_of(newer.content))
        and (newer.trust is Trust.TRUSTED or older.trust is Trust.EVIDENCE)
        and not older.pinned
    )


def _give_other_values(one: StatedValue, other: StatedValue, asked: frozenset[str]) -> bool:
    if one.value == other.value:
        return False
    short, long = sorted((one.slot, other.slot), key=len)
    if short == long:
        return len(short) >= SURE_WORDS
    return short < long and long - short <= asked and 2 * len(short & asked) >= len(asked)
