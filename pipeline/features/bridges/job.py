"""The bridges job: find names that memories define or that users merged, by which recall finds other memories too.

    entities that users merged, if a memory contains a name               →  both names
    definitions in memories ("the aquarium, i.e. the staging cluster")    →  both names

Only memories that the entire workspace may see and that are not private are read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pipeline.features.bridges import store
from pipeline.features.entities import alias_store as entity_aliases
from pipeline.index.encoder import rarity
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.store import changes
from pipeline.text.definitions import Definition, choose_name, find_definitions
from pipeline.text.tokens import search_tokens

PAGE = 500
# The newest memories define the names in use.
MOST_MEMORIES = 10_000
MOST_BRIDGES = 500
MAX_NAME_CHARS = 60
# A name in more memories than this share of a workspace distinguishes none of them.
MAX_SHARE = 0.2
SMALL_WORKSPACE = 20
# A name with more partners is an ordinary word.
MAX_PARTNERS = 3
# Of the tokens of a name, one is rarer among the background messages than this.
LEAST_RARITY = 0.5


def mine_bridges(job: JobRun) -> Report:
    """Replace the bridges of a workspace."""
    with job.database.read() as db:
        generation = changes.generation(db)
        merged = entity_aliases.list_merged_by_users(db)
    words = WorkspaceWords()
    definitions: list[tuple[int, Definition]] = []
    for page in _read_pages(job):
        if job.pausing():
            return Report(more=True)
        for seq, text in page:
            words.add(seq, text)
            definitions += [(seq, definition) for definition in find_definitions(text)]
    mined = choose_bridges(words, [*_connect_merged(words, merged), *_name_definitions(words, definitions)])
    with job.database.write() as db:
        # The names may be those of a memory that was purged during the run.
        if changes.has_erased(db, generation):
            return Report(more=True)
        store.replace(db, mined)
    return Report({"bridges": len(mined)} | Counter(str(bridge.source) for bridge in mined))


class WorkspaceWords:
    """The tokens of memories in order, by row number."""

    def __init__(self) -> None:
        self.tokens: dict[int, list[str]] = {}
        self._holders: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, seq: int, text: str) -> None:
        """Add a memory."""
        self.tokens[seq] = search_tokens(text)
        for token in self.tokens[seq]:
            self._holders[token].add(seq)

    def find_phrase(self, tokens: Sequence[str]) -> set[int]:
        """Return the memories with some tokens in this order."""
        holders = set.intersection(*(self._holders.get(token, set()) for token in tokens)) if tokens else set()
        phrase = f" {' '.join(tokens)} "
        return {seq for seq in holders if phrase in f" {' '.join(self.tokens[seq])} "}

    def is_used(self, seq: int, name: Sequence[str]) -> bool:
        """Return whether a memory other than the given one contains a name."""
        return bool(self.find_phrase(search_tokens(" ".join(name))) - {seq})


def choose_bridges(words: WorkspaceWords, found: Iterable[store.MinedBridge]) -> list[store.MinedBridge]:
    """Return each useful bridge once, merges first; a name with many partners connects nothing."""
    chosen: dict[frozenset[str], store.MinedBridge] = {}
    partners: defaultdict[tuple[str, ...], list[store.MinedBridge]] = defaultdict(list)
    for bridge in found:
        names = [tuple(search_tokens(name)) for name in (bridge.first, bridge.second)]
        key = frozenset({bridge.first.casefold(), bridge.second.casefold()})
        is_settled = any(known.source is not bridge.source for name in names for known in partners[name])
        if key in chosen or is_settled or not _connects(words, bridge, *names):
            continue
        chosen[key] = bridge
        for name in names:
            partners[name].append(bridge)
    crowded = {bridge for known in partners.values() if len(known) > MAX_PARTNERS for bridge in known}
    return [bridge for bridge in chosen.values() if bridge not in crowded][:MOST_BRIDGES]


def _read_pages(job: JobRun) -> Iterator[list[tuple[int, str]]]:
    before, count = None, 0
    while count < MOST_MEMORIES:
        with job.database.read() as db:
            page = store.list_public_texts(db, before, PAGE)
        if not page:
            return
        yield page
        before, count = page[-1][0], count + len(page)


def _connect_merged(words: WorkspaceWords, merged: Iterable[entity_aliases.Alias]) -> Iterator[store.MinedBridge]:
    for alias in merged:
        first, second = alias.name[1], alias.target[1]
        if holders := words.find_phrase(search_tokens(first)) or words.find_phrase(search_tokens(second)):
            yield store.MinedBridge(first, second, store.BridgeSource.MERGE, max(holders))


def _name_definitions(
    words: WorkspaceWords, definitions: Sequence[tuple[int, Definition]]
) -> Iterator[store.MinedBridge]:
    for seq, definition in definitions:
        is_used = partial(words.is_used, seq)
        first, second = choose_name(definition.first, is_used), choose_name(definition.second, is_used)
        if first and second:
            yield store.MinedBridge(" ".join(first), " ".join(second), store.BridgeSource.DEFINITION, seq)


def _connects(words: WorkspaceWords, bridge: store.MinedBridge, first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether two names are different, telling, and rare enough."""
    if not (first and second) or set(first) == set(second):
        return False
    most = max(SMALL_WORKSPACE, MAX_SHARE * len(words.tokens))
    return all(
        len(name) <= MAX_NAME_CHARS
        and any(rarity(token) >= LEAST_RARITY and not token.isdigit() for token in tokens)
        and len(words.find_phrase(tokens)) <= most
        for name, tokens in ((bridge.first, first), (bridge.second, second))
    )
