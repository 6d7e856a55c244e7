"""Expand a query's terms with their other names, by the vocabulary bridges of the workspace."""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from sqlite3 import Connection

from pipeline.index.expansions import Expansion
from pipeline.recall.query import ParsedQuery
from pipeline.store import bridges as store, changes, meta
from pipeline.store.bridges import Bridge, BridgeSource
from pipeline.text.tokens import search_tokens

# Words of similar meaning are looked for only if the workspace rarely uses those of the query.
RARE = 3
MAX_TERM_TOKENS = 6
MOST_EXPANSIONS = 8
ALIASES = frozenset(BridgeSource) - {BridgeSource.NEIGHBOR}

Names = Mapping[tuple[str, ...], Sequence[tuple[Expansion, Bridge]]]


class WorkspaceBridges:
    """The bridges of a workspace by their names as search tokens, read again when they or the memories change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: Hashable = None
        self._names: Names = {}

    def refresh(self, db: Connection) -> Names:
        """Return the bridges from each name."""
        state = meta.get_int(db, meta.BRIDGES_GENERATION), changes.generation(db)
        with self._lock:
            if state != self._state:
                # Without any bridge, as in most workspaces of a few memories, there is nothing to read.
                self._names = _index_names(store.list_active(db)) if state[0] else {}
                self._state = state
            return self._names


def expand(question: ParsedQuery, names: Names, count_holders: Callable[[str], int]) -> list[Expansion]:
    """Return the other names of a question's terms, longest terms first; a term in a longer one is not expanded.

    `count_holders` returns the number of memories with a token.
    """
    expansions: list[Expansion] = []
    taken: set[int] = set()
    tokens = question.tokens
    for length in range(min(MAX_TERM_TOKENS, len(tokens)), 0, -1):
        for start in range(len(tokens) - length + 1):
            term, places = tokens[start : start + length], range(start, start + length)
            if term not in names or not taken.isdisjoint(places):
                continue
            useful = [
                expansion
                for expansion, _ in names[term]
                if expansion.is_alias or max(map(count_holders, term)) <= RARE
            ]
            expansions += [expansion for expansion in useful if not set(expansion.other) <= set(tokens)]
            taken.update(places if useful else ())
    return expansions[:MOST_EXPANSIONS] if names else []


def _index_names(bridges: Sequence[Bridge]) -> Names:
    names: defaultdict[tuple[str, ...], list[tuple[Expansion, Bridge]]] = defaultdict(list)
    for bridge in bridges:
        first, second = (tuple(search_tokens(name)) for name in (bridge.first, bridge.second))
        is_alias = bridge.source in ALIASES
        for term, other in ((first, second), (second, first)):
            # "ledger-db" contains "ledger": a search for the long name finds the short one anyway.
            added = tuple(token for token in other if token not in term)
            if term and added:
                names[term].append((Expansion(bridge.id, term, added, is_alias), bridge))
    return dict(names)
