"""Put current values first: among the best hits that give different values for one slot, the newest comes first.

So does a hit that says that it replaces another (announced_changes.py). A slot is taken literally from the text that
states it; if a text states it in fewer words, the query must name the rest. Only the top hits are examined, and they
only change places among themselves.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import chain, combinations
from sqlite3 import Connection

from pipeline.index.encoder import rarity
from pipeline.kernel.records import Kind, Source, Trust
from pipeline.kernel.store.memory_columns import StatementRow, read_statements
from pipeline.recall.query import is_literal
from pipeline.recall.rank import Ranking, join_groups, rank_newest_first, split_by_literals
from pipeline.recall.relevance import RELEVANT, relevance
from pipeline.text.similarity.choices import LEAST_WORDS, StatedValue, slot_words
from pipeline.text.similarity.statements import LONGEST_CHARS, Statements
from pipeline.text.tokens import list_tokens, search_tokens, speaker_of

EXAMINED_HITS = 30
# Minimum share of the query's words that a slot must contain.
MIN_SLOT_SHARE = 0.6
# A text with more values is a table; only the values closest to the query are examined.
MOST_VALUES = 12
# Shorter slots are equal by chance: "a total of 30 pages".
MIN_SLOT_WORDS = 3
# A memory with this many more words of the query outside of the slot is relevant because of them.
EXTRA_WORDS = 2
# Up to so many words, a query with an identifier asks for what contains it.
MOST_WORDS_OF_IDENTIFIER = 10
# A memory with additional items of every kind that it lists is not replaced.
LISTING = frozenset({Kind.CODE, Kind.DOCUMENT, Kind.KEYED_FACT})
# A query for an earlier value does not ask for the current one.
_EARLIER = re.compile(
    r"\b(?:(?:original|previous|former|initial)(?:ly)?|earlier|before|at first|back then|used to|old)\b", re.IGNORECASE
)

# Minimum shares of the shorter text's words, and of the query's words in the earlier text, weighted by their rarity
# among the hits.
SHARED, SHARED_OF_QUERY = 0.3, 0.4
LEAST_SHARED = 2
# Among fewer hits, every word would be common.
MANY_HITS = 30


def rank_current_first(db: Connection, ranking: Ranking, text: str) -> Ranking:
    """Return a ranking in which the newest of several values of a slot comes first."""
    if _EARLIER.search(text):
        return ranking
    top = ranking.order[:EXAMINED_HITS].tolist()
    positions = dict(zip(ranking.evidence.seqs[top].tolist(), top, strict=True))
    rows = read_statements(db, list(positions))
    current = [row for seq in positions if (row := rows.get(seq)) and _may_be_current(row)]
    stated = {row.seq: Statements(row.content, row.statements) for row in current}
    # A query for an identifier asks for what contains it, not for its successor.
    replaced = [] if is_literal(text) else _find_replaced(current, stated, ranking, text)
    slots = split_by_literals(
        ranking.evidence, [[positions[seq] for seq in group] for group in _group_by_slot(current, stated, text)]
    )
    replacing = [[positions[seq] for seq in group] for group in join_groups(replaced)]
    at = {positions[row.seq]: row for row in current}
    groups = [_drop_outranked(group, at) for group in join_groups([*slots, *replacing])]
    return rank_newest_first(ranking, [group for group in groups if len(group) > 1])


def _drop_outranked(group: Sequence[int], rows: Mapping[int, StatementRow]) -> list[int]:
    """Return the members of a group that may rank above each older one.

    Groups are joined by common members: the newest one may replace the oldest, but not what is pinned or more trusted
    between them.
    """
    kept: list[int] = []
    for position in sorted(group, key=lambda position: (rows[position].occurred_at, rows[position].seq)):
        if all(_outranks(rows[position], rows[older]) for older in kept):
            kept.append(position)
    return sorted(kept)


def _may_be_current(row: StatementRow) -> bool:
    """Return whether a memory states something that can change.

    A commit reports an event, which later commits do not replace, and ends with a list of files.
    """
    is_commit = row.kind == Kind.MILESTONE and row.source == Source.IMPORT
    return row.kind not in LISTING and not is_commit and not row.instructs


def _find_replaced(
    rows: Sequence[StatementRow], stated: Mapping[int, Statements], ranking: Ranking, text: str
) -> list[tuple[int, int]]:
    """Return the memories that a later one replaces by its own words, each with the later one, by row number."""
    changing = frozenset(seq for seq, statements in stated.items() if statements.announces_change)
    if not changing:
        return []
    probable = relevance(ranking)
    relevant = frozenset(ranking.evidence.seqs[probable >= RELEVANT].tolist())
    # In a long query, such as a bug report, an identifier is one of many words.
    is_long = len(search_tokens(text)) > MOST_WORDS_OF_IDENTIFIER
    literal_sets = dict(zip(ranking.evidence.seqs.tolist(), ranking.evidence.literal_sets.tolist(), strict=True))
    return [
        (earlier.seq, later.seq)
        for earlier, later in find_announced_changes(rows, changing, relevant, text)
        if _outranks(later, earlier) and (is_long or literal_sets[earlier.seq] == literal_sets[later.seq])
    ]


def _group_by_slot(rows: Sequence[StatementRow], stated: Mapping[int, Statements], text: str) -> list[list[int]]:
    """Group memories, by row number, that give different values for one slot."""
    asked = frozenset(slot_words(text))
    every = {row.seq: stated[row.seq].values for row in rows}
    sharing = _list_sharing(every, asked)
    if not sharing:
        return []
    by_seq = {row.seq: row for row in rows}

    def choose(seq: int) -> list[StatedValue]:
        return _choose_asked_values(stated[seq], asked, text)

    chosen = {seq: choose(seq) for seq in sharing}
    may_answer = [seq for seq, values in every.items() if any(_answers(value, asked) for value in values)]
    if any(_answers(value, asked) for seq in may_answer for value in choose(seq)):
        chosen = {seq: [value for value in values if _answers(value, asked)] for seq, values in chosen.items()}
    holders: dict[frozenset[str], list[tuple[StatedValue, StatementRow]]] = defaultdict(list)
    for seq, values in chosen.items():
        for value in values:
            holders[_comparable_words(value, asked)].append((value, by_seq[seq]))
    groups = SlotGroups()
    for same in holders.values():
        for (value, row), (other_value, other) in combinations(same, 2):
            if (
                not groups.are_joined(row.seq, other.seq)
                and _give_other_values(value, other_value, asked)
                and _may_replace(row, other)
            ):
                groups.join(row.seq, other.seq)
    return groups.list_groups()


class SlotGroups:
    """Groups of memories, by row number, that grow by pairs."""

    def __init__(self) -> None:
        self._group_of: dict[int, list[int]] = {}

    def are_joined(self, seq: int, other: int) -> bool:
        """Return whether two memories are one, or in one group."""
        return seq == other or (seq in self._group_of and self._group_of[seq] is self._group_of.get(other))

    def join(self, seq: int, other: int) -> None:
        """Put two memories that are not joined, and their groups, into one group."""
        group = self._group_of.setdefault(seq, [seq])
        group += self._group_of.get(other, [other])
        self._group_of |= dict.fromkeys(group, group)

    def list_groups(self) -> list[list[int]]:
        """List each group in row order."""
        return [sorted(group) for group in {id(group): group for group in self._group_of.values()}.values()]


def _list_sharing(stated: Mapping[int, Sequence[StatedValue]], asked: frozenset[str]) -> set[int]:
    """Return the memories, by row number, that may have a value of the same slot as another one: usually few have."""
    holders: dict[frozenset[str], set[int]] = defaultdict(set)
    for seq, values in stated.items():
        for value in values:
            holders[_comparable_words(value, asked)].add(seq)
    return set[int]().union(*(seqs for seqs in holders.values() if len(seqs) > 1))


def _comparable_words(value: StatedValue, asked: frozenset[str]) -> frozenset[str]:
    """Return words that are the same for all values that may have one slot."""
    # Slots that differ have the same words outside of the query, which names the rest of them.
    return value.slot - asked if 2 * len(value.slot & asked) >= len(asked) else value.slot


def _choose_asked_values(stated: Statements, asked: frozenset[str], text: str) -> list[StatedValue]:
    # A query that names a value asks about that value, current or not; its neighbor may be the better answer.
    values = [value for value in stated.values if value.value not in text]
    if not values:
        return []
    sentences = stated.sentence_stems
    stems = frozenset[str]().union(*sentences)
    common = asked & stems
    if len(common) >= EXTRA_WORDS:
        values = [
            value for value in values if len(common.difference(value.slot, sentences[value.sentence])) < EXTRA_WORDS
        ]
    if len(values) <= MOST_VALUES:
        return values
    elsewhere = [stems.difference(value.slot, sentences[value.sentence]) for value in values]
    values = list(
        {(value.value, value.slot, rest): value for value, rest in zip(values, elsewhere, strict=True)}.values()
    )
    return sorted(values, key=lambda value: len(value.slot & asked), reverse=True)[:MOST_VALUES]


def _answers(value: StatedValue, asked: frozenset[str]) -> bool:
    return len(value.slot & asked) >= max(LEAST_WORDS, MIN_SLOT_SHARE * len(asked))


def _may_replace(first: StatementRow, second: StatementRow) -> bool:
    """Return whether one memory may be an update of the other, regardless of their order."""
    older, newer = sorted((first, second), key=lambda row: (row.occurred_at, row.seq))
    return speaker_of(older.content) == speaker_of(newer.content) and _outranks(newer, older)


def _outranks(newer: StatementRow, older: StatementRow) -> bool:
    """Return whether a memory may rank above an older one about the same subject."""
    return (
        (older.scope_kind, older.scope_id, older.branch) == (newer.scope_kind, newer.scope_id, newer.branch)
        and (newer.trust == Trust.TRUSTED or older.trust == Trust.EVIDENCE)
        and not older.pinned
    )


def _give_other_values(first: StatedValue, second: StatedValue, asked: frozenset[str]) -> bool:
    if first.value == second.value:
        return False
    short, long = sorted((first.slot, second.slot), key=len)
    if short == long:
        return len(short) >= MIN_SLOT_WORDS
    return short < long and long - short <= asked and 2 * len(short & asked) >= len(asked)


def find_announced_changes(
    ranked: Sequence[StatementRow], changing: AbstractSet[int], relevant: AbstractSet[int], query: str
) -> Iterator[tuple[StatementRow, StatementRow]]:
    """Yield the ranked memories that say that they change something, each below the memory that it changes.

    `changing` are the row numbers of those that say so, `relevant` those of the relevant ones.
    """
    ranked = [row for row in ranked if len(row.content) <= LONGEST_CHARS]
    places = [place for place, row in enumerate(ranked) if place and row.seq in changing]
    if not places:
        return
    hits = HitWords(ranked, query)
    for place in places:
        later = ranked[place]
        for earlier in ranked[:place]:
            are_relevant = relevant >= {earlier.seq, later.seq}
            # The messages of an imported session may all have the same time.
            is_earlier = (earlier.occurred_at, earlier.seq) < (later.occurred_at, later.seq)
            if is_earlier and hits.are_about_same(earlier.seq, later.seq, are_relevant):
                yield earlier, later
                break


class HitWords:
    """The words of the query and of its hits, and how rare each is among the hits."""

    def __init__(self, ranked: Sequence[StatementRow], query: str) -> None:
        self._asked = frozenset(search_tokens(query))
        self._words = {row.seq: frozenset(list_tokens(row.content)) for row in ranked}
        self._counts = Counter(chain.from_iterable(self._words.values()))
        self._weights: dict[str, float] = {}
        self._totals: dict[int, float] = {}

    def are_about_same(self, earlier: int, later: int, are_relevant: bool) -> bool:
        """Return whether two hits, by row number, are about the same subject."""
        common = self._words[earlier] & self._words[later]
        if len(common) < LEAST_SHARED:
            return False
        if self._weigh(common) >= SHARED * min(self._weigh_hit(earlier), self._weigh_hit(later)):
            return True
        asked = self._words[earlier] & self._asked
        return are_relevant and self._weigh(common & asked) >= SHARED_OF_QUERY * self._weigh(asked)

    def _weigh_hit(self, seq: int) -> float:
        if seq not in self._totals:
            self._totals[seq] = self._weigh(self._words[seq])
        return self._totals[seq]

    def _weigh(self, words: AbstractSet[str]) -> float:
        for word in words - self._weights.keys():
            size = max(len(self._words), MANY_HITS)
            self._weights[word] = rarity(word) * math.log((size + 1) / (self._counts[word] + 0.5))
        return sum(map(self._weights.__getitem__, words))
