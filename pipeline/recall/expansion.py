"""Expand a query's terms with their other names, by the vocabulary bridges of the workspace."""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from sqlite3 import Connection

import numpy as np

from pipeline.index.expansions import Expansion
from pipeline.index.lexical import LexicalScores
from pipeline.index.row_arrays import Seqs
from pipeline.recall.query import ParsedQuery
from pipeline.records.recall import UsedBridge
from pipeline.store import bridges as store, changes, meta
from pipeline.store.bridges import Bridge, BridgeSource
from pipeline.text.definitions import is_file_extension
from pipeline.text.tokens import search_tokens

# Words of similar meaning are looked for only if the workspace rarely uses those of the query.
RARE = 3
MAX_TERM_TOKENS = 6
MOST_EXPANSIONS = 8
MAX_SHORT_FORM_CHARS = 5
ALIASES = frozenset(BridgeSource) - {BridgeSource.NEIGHBOR}

Names = Mapping[tuple[str, ...], Sequence[Expansion]]


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
    tokens = question.tokens if names else ()
    for length in range(min(MAX_TERM_TOKENS, len(tokens)), 0, -1):
        for start in range(len(tokens) - length + 1):
            term, places = tokens[start : start + length], range(start, start + length)
            if term not in names or not taken.isdisjoint(places):
                continue
            useful = [
                expansion for expansion in names[term] if expansion.is_alias or max(map(count_holders, term)) <= RARE
            ]
            expansions += [expansion for expansion in useful if not set(expansion.other) <= set(tokens)]
            taken.update(places if useful else ())
    return expansions[:MOST_EXPANSIONS]


def describe_bridges(db: Connection, scores: LexicalScores | None, seqs: Seqs) -> dict[int, tuple[UsedBridge, ...]]:
    """Return the bridges by which each memory was found, by its row number."""
    expanded = [] if scores is None else scores.expanded
    stored = {term.expansion.bridge_id: store.get(db, term.expansion.bridge_id) for term in expanded}
    used: dict[int, list[UsedBridge]] = {seq: [] for seq in seqs.tolist()}
    for term in expanded:
        bridge = stored[term.expansion.bridge_id]
        if bridge is not None:
            names = (bridge.first, bridge.second) if term.expansion.is_forward else (bridge.second, bridge.first)
            for seq in np.intersect1d(seqs, term.holders).tolist():
                used[seq].append(UsedBridge(bridge.id, *names, bridge.source, bridge.memory_id))
    return {seq: tuple(bridges) for seq, bridges in used.items()}


def _index_names(bridges: Sequence[Bridge]) -> Names:
    names: defaultdict[tuple[str, ...], list[Expansion]] = defaultdict(list)
    for bridge in bridges:
        is_alias = bridge.source in ALIASES
        for term, other, is_forward in ((bridge.first, bridge.second, True), (bridge.second, bridge.first, False)):
            if bridge.source is BridgeSource.SHORT_FORM and is_file_extension(other):
                continue
            for spelling in _list_spellings(term):
                tokens = tuple(search_tokens(spelling))
                # "ledger-db" contains "ledger": a search for the long name finds the short one anyway.
                added = tuple(token for token in search_tokens(other) if token not in tokens)
                expansion = Expansion(bridge.id, tokens, added, is_alias, is_forward)
                if tokens and added and expansion not in names[tokens]:
                    names[tokens].append(expansion)
    return {name: expansions for name, expansions in names.items() if expansions}


def _list_spellings(name: str) -> list[str]:
    """Return a name, and the plurals of a short form: "PRs" is no word, so no stemmer restores it."""
    is_short = len(name) <= MAX_SHORT_FORM_CHARS and name.isalnum()
    return [name, f"{name.upper()}s", f"{name.lower()}s"] if is_short else [name]
