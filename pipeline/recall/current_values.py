"""Put current values first: among the best hits that give different values for one slot, the newest comes first.

So does a hit that says that it replaces another (announced_changes.py). A slot is taken literally from the text that
states it; if a text states it in fewer words, the query must name the rest. Only the top hits are examined, and they
only change places among themselves.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from sqlite3 import Connection

from pipeline.recall.announced_changes import announces_change, find_announced_changes
from pipeline.recall.query import is_literal
from pipeline.recall.rank import Ranking, join_groups, rank_newest_first
from pipeline.recall.relevance import RELEVANT, relevance
from pipeline.records import Kind, Memory, Trust
from pipeline.store import memories
from pipeline.text.similarity.stated_values import LEAST_WORDS, StatedValue, find_stated_values, slot_words
from pipeline.text.tokens import speaker_of

EXAMINED_HITS = 30
# Minimum share of the query's words that a slot must contain.
MIN_SLOT_SHARE = 0.6
# A text with more values is a table; only the values closest to the query are examined.
MOST_VALUES = 12
# Shorter slots are equal by chance: "a total of 30 pages".
MIN_SLOT_WORDS = 3
# A memory with this many more words of the query outside of the slot is relevant because of them.
EXTRA_WORDS = 2
# A memory with additional items of every kind that it lists is not replaced.
LISTING = frozenset({Kind.CODE, Kind.DOCUMENT, Kind.KEYED_FACT})
# A query for an earlier value does not ask for the current one.
_EARLIER = re.compile(
    r"\b(?:(?:original|previous|former|initial)(?:ly)?|earlier|before|at first|back then|used to|old)\b", re.IGNORECASE
)


def rank_current_first(db: Connection, ranking: Ranking, text: str) -> Ranking:
    """Return a ranking in which the newest of several values of a slot comes first."""
    if _EARLIER.search(text):
        return ranking
    top = ranking.order[:EXAMINED_HITS].tolist()
    positions = dict(zip(ranking.evidence.seqs[top].tolist(), top, strict=True))
    asked = frozenset(slot_words(text))
    contents = memories.contents(db, list(positions))
    stated = {seq: values for seq, content in contents.items() if (values := _find_asked_values(content, asked, text))}
    # A query for an identifier asks for what contains it, not for its successor.
    has_change = not is_literal(text) and any(map(announces_change, contents.values()))
    if len(stated) < 2 and not has_change:
        return ranking
    texts = memories.by_seqs(db, list(positions) if has_change else list(stated))
    groups = _group_by_slot({seq: texts[seq] for seq in stated}, stated, asked) if len(stated) > 1 else []
    replaced = _find_replaced([texts[seq] for seq in positions], ranking, text) if has_change else []
    ordered = rank_newest_first(
        ranking, [[positions[seq] for seq in group] for group in (*groups, *join_groups(replaced))]
    )
    return replace(ordered, replaced=[(positions[earlier], positions[later]) for earlier, later in replaced])


def _find_replaced(ranked: Sequence[Memory], ranking: Ranking, text: str) -> list[tuple[int, int]]:
    """Return the memories that a later one replaces by its own words, each with the later one, by row number."""
    probable = relevance(ranking)
    relevant = frozenset(ranking.evidence.seqs[probable >= RELEVANT].tolist())
    statements = [memory for memory in ranked if memory.kind not in LISTING and not memory.instructs]
    return [
        (earlier.seq, later.seq)
        for earlier, later in find_announced_changes(statements, relevant, text)
        if _outranks(later, earlier)
    ]


def _group_by_slot(
    texts: Mapping[int, Memory], stated: Mapping[int, list[StatedValue]], asked: frozenset[str]
) -> list[list[int]]:
    """Group memories, by row number, that give different values for one slot."""
    stated = {seq: stated[seq] for seq, memory in texts.items() if memory.kind not in LISTING and not memory.instructs}
    answering = {seq: [value for value in values if _answers(value, asked)] for seq, values in stated.items()}
    if any(answering.values()):
        stated = answering
    return join_groups(
        (seq, other)
        for seq, other in combinations(stated, 2)
        if any(_give_other_values(value, another, asked) for value, another in product(stated[seq], stated[other]))
        and _may_replace(texts[seq], texts[other])
    )


def _find_asked_values(content: str, asked: frozenset[str], text: str) -> list[StatedValue]:
    values = dict.fromkeys(value for value in find_stated_values(content) if _is_asked(value, asked, text))
    return sorted(values, key=lambda value: len(value.slot & asked), reverse=True)[:MOST_VALUES]


def _is_asked(value: StatedValue, asked: frozenset[str], text: str) -> bool:
    # A query that names a value asks about that value, current or not; its neighbor may be the better answer.
    return value.value not in text and len(value.beside & asked) < EXTRA_WORDS


def _answers(value: StatedValue, asked: frozenset[str]) -> bool:
    return len(value.slot & asked) >= max(LEAST_WORDS, MIN_SLOT_SHARE * len(asked))


def _may_replace(first: Memory, second: Memory) -> bool:
    """Return whether one memory may be an update of the other, regardless of their order."""
    older, newer = sorted((first, second), key=lambda memory: (memory.occurred_at, memory.seq))
    return speaker_of(older.content) == speaker_of(newer.content) and _outranks(newer, older)


def _outranks(newer: Memory, older: Memory) -> bool:
    """Return whether a memory may rank above an older one about the same subject."""
    return (
        (older.scope, older.branch) == (newer.scope, newer.branch)
        and (newer.trust is Trust.TRUSTED or older.trust is Trust.EVIDENCE)
        and not older.pinned
    )


def _give_other_values(first: StatedValue, second: StatedValue, asked: frozenset[str]) -> bool:
    if first.value == second.value:
        return False
    short, long = sorted((first.slot, second.slot), key=len)
    if short == long:
        return len(short) >= MIN_SLOT_WORDS
    return short < long and long - short <= asked and 2 * len(short & asked) >= len(asked)
