"""Expand a query's terms with their other names: common short forms, and the vocabulary bridges of the workspace."""

import threading
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from sqlite3 import Connection

import numpy as np

from pipeline.features.bridges import store
from pipeline.features.bridges.store import Bridge, BridgeSource
from pipeline.index.expansions import Expansion
from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import Seqs
from pipeline.kernel.records.recall import UsedBridge
from pipeline.kernel.store import changes, meta
from pipeline.recall.query import ParsedQuery
from pipeline.text.definitions import is_file_extension, list_short_forms
from pipeline.text.tokens import search_tokens

MAX_TERM_TOKENS = 6
MOST_EXPANSIONS = 8
MAX_SHORT_FORM_CHARS = 5

Names = Mapping[tuple[str, ...], Sequence[Expansion]]


class WorkspaceBridges:
    """The other names that a workspace uses, by search tokens; read again when bridges or memories change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._names: Names = {}

    def refresh(self, db: Connection) -> Names:
        """Return the other names of each name; those of the workspace take the place of common short forms."""
        state = meta.get_int(db, meta.BRIDGES_GENERATION), changes.generation(db)
        with self._lock:
            if state != self._state:
                # Without any bridge, as in most workspaces of a few memories, there is nothing to read.
                own = index_names(store.list_active(db)) if state[0] else {}
                self._names = {**_drop_names(_index_short_forms(), own), **own}
                self._state = state
            return self._names


def expand(question: ParsedQuery, names: Names) -> list[Expansion]:
    """Return the other names of a question's terms, longest terms first; a term in a longer one is not expanded."""
    expansions: list[Expansion] = []
    taken: set[int] = set()
    tokens = question.tokens
    for length in range(min(MAX_TERM_TOKENS, len(tokens)), 0, -1):
        for start in range(len(tokens) - length + 1):
            term, places = tokens[start : start + length], range(start, start + length)
            if term in names and taken.isdisjoint(places):
                expansions += [expansion for expansion in names[term] if not set(expansion.other) <= set(tokens)]
                taken.update(places)
    return expansions[:MOST_EXPANSIONS]


def describe_bridges(scores: LexicalScores | None, seqs: Seqs) -> dict[int, tuple[UsedBridge, ...]]:
    """Return the bridges by which each memory was found, by its row number."""
    used: dict[int, tuple[UsedBridge, ...]] = dict.fromkeys(seqs.tolist(), ())
    for term in () if scores is None else scores.expanded:
        for seq in np.intersect1d(seqs, term.holders).tolist():
            used[seq] += (term.expansion.bridge,)
    return used


def index_names(bridges: Iterable[Bridge]) -> Names:
    """Return the other names of each name, by search tokens."""
    names: defaultdict[tuple[str, ...], list[Expansion]] = defaultdict(list)
    for bridge in bridges:
        for term, other in ((bridge.first, bridge.second), (bridge.second, bridge.first)):
            if bridge.source is BridgeSource.SHORT_FORM and is_file_extension(other):
                continue
            used = UsedBridge(term, other, bridge.source, bridge.memory_id)
            for tokens in _list_spellings(term):
                # "ledger-db" contains "ledger": a search for the long name finds the short one anyway.
                added = tuple(token for token in search_tokens(other) if token not in tokens)
                expansion = Expansion(tokens, added, used)
                if tokens and added and expansion not in names[tokens]:
                    names[tokens].append(expansion)
    return {name: expansions for name, expansions in names.items() if expansions}


@cache
def _index_short_forms() -> Names:
    pairs = ((short, long) for short, longs in list_short_forms().items() for long in longs)
    return index_names(Bridge(short, long, BridgeSource.SHORT_FORM) for short, long in pairs)


def _drop_names(names: Names, own: Names) -> Names:
    """Return the names without those that are also in `own`, on either side."""
    return {
        name: [expansion for expansion in expansions if expansion.other not in own]
        for name, expansions in names.items()
        if name not in own
    }


def _list_spellings(name: str) -> Iterator[tuple[str, ...]]:
    """Yield a name, and the plurals of a short form: "PRs" is no word, so no stemmer restores it."""
    is_short = len(name) <= MAX_SHORT_FORM_CHARS and name.isalnum()
    for spelling in [name, f"{name.upper()}s", f"{name.lower()}s"] if is_short else [name]:
        yield tuple(search_tokens(spelling))
