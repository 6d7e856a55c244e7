"""The bridges job: mine pairs of names for one thing, by which recall also finds memories that use the other name.

    entities that users merged, if a memory contains a name               →  both names
    definitions in memories ("the aquarium, i.e. the staging cluster")    →  both names
    common short forms ("k8s"), if a memory contains the long form        →  both names
    a short and a long form of one word that memories use together        →  both names
    rare words with the nearest vectors                                   →  both words

Only memories that the entire workspace may see and that are not private are read. A bridge that a user removed is
not mined again.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial

from pipeline.index.encoder import Encoder, rarity
from pipeline.jobs.mining.word_pairs import MAX_NEIGHBOR_WORDS, find_co_mentioned, find_neighbors
from pipeline.jobs.mining.workspace_words import WorkspaceWords
from pipeline.jobs.runner import JobRun, Report
from pipeline.recall.fact_names import NameVectors
from pipeline.store import bridges as store, changes, entity_aliases
from pipeline.store.bridges import BridgeSource, MinedBridge
from pipeline.store.entity_aliases import Alias
from pipeline.text.definitions import Definition, choose_name, find_definitions, list_short_forms
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


def mine_bridges(job: JobRun, encoder: Callable[[], Encoder]) -> Report:
    """Replace the mined bridges of a workspace."""
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
    vectors = cache(lambda: NameVectors(encoder(), MAX_NEIGHBOR_WORDS))
    texts = [*_connect_merged(words, merged), *_name_definitions(words, definitions), *_find_short_forms(words)]
    mined = choose_bridges(words, [*texts, *_mine_vectors(words, vectors)])
    with job.database.write() as db:
        # The names may be those of a memory that was purged during the run.
        if changes.has_logged(db, changes.PURGE, generation):
            return Report(more=True)
        store.replace(db, mined, job.at)
    counts = Counter(str(bridge.source) for bridge in mined)
    return Report({"bridges": len(mined)} | {str(source): counts[str(source)] for source in BridgeSource})


def choose_bridges(words: WorkspaceWords, found: Iterable[MinedBridge]) -> list[MinedBridge]:
    """Return each useful bridge once, the surest first; a name with many partners connects nothing."""
    order = list(BridgeSource)
    chosen: dict[str, MinedBridge] = {}
    partners: defaultdict[tuple[str, ...], list[MinedBridge]] = defaultdict(list)
    for bridge in sorted(found, key=lambda bridge: order.index(bridge.source)):
        names = [tuple(search_tokens(name)) for name in (bridge.first, bridge.second)]
        surer = [known for name in names for known in partners[name] if known.source is not bridge.source]
        if bridge.id in chosen or surer or not _connects(words, bridge, *names):
            continue
        chosen[bridge.id] = bridge
        for name in names:
            partners[name].append(bridge)
    crowded = {bridge.id for known in partners.values() if len(known) > MAX_PARTNERS for bridge in known}
    return [bridge for bridge in chosen.values() if bridge.id not in crowded][:MOST_BRIDGES]


def _read_pages(job: JobRun) -> Iterator[list[tuple[int, str]]]:
    before, count = None, 0
    while count < MOST_MEMORIES:
        with job.database.read() as db:
            page = store.list_public_texts(db, before, PAGE)
        if not page:
            return
        yield page
        before, count = page[-1][0], count + len(page)


def _connect_merged(words: WorkspaceWords, merged: Iterable[Alias]) -> Iterator[MinedBridge]:
    for alias in merged:
        first, second = alias.name[1], alias.target[1]
        if holders := words.find_literal(first) or words.find_literal(second):
            yield MinedBridge(first, second, BridgeSource.MERGE, max(holders))


def _name_definitions(words: WorkspaceWords, definitions: Sequence[tuple[int, Definition]]) -> Iterator[MinedBridge]:
    for seq, definition in definitions:
        is_used = partial(words.is_used, seq)
        first, second = choose_name(definition.first, is_used), choose_name(definition.second, is_used)
        if first and second:
            yield MinedBridge(" ".join(first), " ".join(second), BridgeSource.DEFINITION, seq)


def _find_short_forms(words: WorkspaceWords) -> Iterator[MinedBridge]:
    for short, longs in list_short_forms().items():
        for long in longs:
            holders = words.find_literal(long) or words.find_literal(short)
            if holders:
                yield MinedBridge(short, long, BridgeSource.SHORT_FORM, max(holders))


def _mine_vectors(words: WorkspaceWords, vectors: Callable[[], NameVectors]) -> Iterator[MinedBridge]:
    for first, second, seq in find_co_mentioned(words, vectors):
        yield MinedBridge(first, second, BridgeSource.CO_MENTION, seq)
    for first, second, seq in find_neighbors(words, vectors):
        yield MinedBridge(first, second, BridgeSource.NEIGHBOR, seq)


def _connects(words: WorkspaceWords, bridge: MinedBridge, first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether two names are different, telling, and rare enough."""
    if not (first and second) or set(first) >= set(second) >= set(first):
        return False
    most = max(SMALL_WORKSPACE, MAX_SHARE * len(words.texts))
    return all(
        len(name) <= MAX_NAME_CHARS
        and any(rarity(token) >= LEAST_RARITY and not token.isdigit() for token in tokens)
        and len(words.find_phrase(tokens)) <= most
        for name, tokens in ((bridge.first, first), (bridge.second, second))
    )
