"""The current one first: of the best that give one slot different values, the one that was said last stands first.

A slot is taken from how a text states it, word for word; where one says it in fewer words, the question must name what
is left out. Only what stands near the top is looked at, and it changes places among itself alone.
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
# Of a question that one stated slot answers, so much of its words stands in that slot.
ANSWERED = 0.6
# A text that states more values is a table; of those, what shares most with the question is looked at.
MOST_VALUES = 12
# Two slots of fewer words are the same by chance: "a total of 30 pages".
SURE_WORDS = 3
# What holds so many more words of the question elsewhere is about the question by those.
MORE_BESIDE = 2
# What holds something of its own of every kind it lists is replaced by nothing.
LISTING = frozenset({Kind.CODE, Kind.DOCUMENT, Kind.KEYED_FACT})
# Who asks for an earlier value does not ask for the current one.
_EARLIER = re.compile(
    r"\b(?:(?:original|previous|former|initial)(?:ly)?|earlier|before|at first|back then|used to|old)\b", re.IGNORECASE
)


def put_current_first(db: Connection, ranking: Ranking, text: str) -> Ranking:
    """Return a ranking in which of values of one slot the newest stands first."""
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
    """Group memories, by row number, that give one slot different values."""
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
    # Who names a value asks about that one, whatever holds by now; and what stands beside it may be the better answer.
    return one.value not in text and len(one.beside & asked) < MORE_BESIDE


def _answers(one: StatedValue, asked: frozenset[str]) -> bool:
    return len(one.slot & asked) >= max(LEAST_WORDS, ANSWERED * len(asked))


def _may_replace(one: Memory, other: Memory) -> bool:
    """Return whether what one memory says may be meant as a change of what another says, whichever is newer."""
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
