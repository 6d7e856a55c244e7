"""The vocabulary job: the words that stand nearly everywhere in a workspace, and the pairs that belong together.

A window is a memory and the next one of its session. Two words belong together when they share more windows than
chance would have it, by pointwise mutual information (Church and Hanks, "Word Association Norms, Mutual Information,
and Lexicography", 1990). Each run derives both lists anew from the newest memories and writes them at once.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.jobs.night import Night, Report
from pipeline.store import changes
from pipeline.store import vocabulary as store
from pipeline.store.vocabulary import Bridge, StopWord, Text
from pipeline.text.tokens import search_tokens

NEWEST = 20_000
PAGE = 500
# In fewer memories no word can be told to stand everywhere.
LEAST_MEMORIES = 50
STOP_SHARE = 0.2
MOST_STOP_WORDS = 100
# The most frequent words between the rare and the common may form bridges: their pairs fill a table of this width.
WORDS = 2048
LEAST_HOLDERS = 3
LEAST_TOGETHER = 5
LEAST_PMI = 2.0
MOST_BRIDGES = 2000

Ids = NDArray[np.int64]
Together = NDArray[np.uint32]


def vocabulary(night: Night) -> Report:
    """Learn the words of a workspace from what reaches all of it."""
    with night.database.read() as db:
        generation = changes.generation(db)
    read = _read(night)
    if read is None:
        return Report(more=True)
    texts, tokens = read
    holders = Counter(token for distinct in tokens for token in distinct)
    common = stop_words(holders, len(texts))
    middling = _middling(holders, {one.word for one in common})
    counted = _count(night, _windows(texts, tokens, {word: place for place, word in enumerate(middling)}))
    if counted is None:
        return Report(more=True)
    found = bridges(middling, *counted)
    with night.database.write() as db:
        # What was purged since may be among the words.
        if changes.happened(db, changes.PURGE, generation):
            return Report(more=True)
        store.replace(db, common, found)
    return Report({"memories": len(texts), "stop_words": len(common), "bridges": len(found)})


def stop_words(holders: Counter[str], memories: int) -> list[StopWord]:
    """Return the words that at least a share of all memories hold, the most frequent first."""
    if memories < LEAST_MEMORIES:
        return []
    frequent = [(word, count / memories) for word, count in holders.items() if count >= STOP_SHARE * memories]
    frequent.sort(key=lambda one: (-one[1], one[0]))
    return [StopWord(word, round(share, 4)) for word, share in frequent[:MOST_STOP_WORDS]]


def bridges(words: Sequence[str], together: Together, windows: int) -> list[Bridge]:
    """Return the pairs that belong together; `together` counts windows by the words' places, a word's own beside it.

    Of too many those stay that tell most: information times the windows that it is found in.
    """
    alone = np.diag(together).astype(np.float64)
    first, second = np.nonzero(np.triu(together, 1) >= LEAST_TOGETHER)
    shared = together[first, second].astype(np.float64)
    pmi = np.log2(shared * windows / (alone[first] * alone[second]))
    kept = np.flatnonzero(pmi >= LEAST_PMI)
    kept = kept[np.argsort(-(pmi * shared)[kept], kind="stable")][:MOST_BRIDGES]
    pairs = ((*sorted((words[first[at]], words[second[at]])), round(float(pmi[at]), 3)) for at in kept)
    return [Bridge(*pair) for pair in pairs]


def _read(night: Night) -> tuple[list[Text], list[frozenset[str]]] | None:
    texts: list[Text] = []
    tokens: list[frozenset[str]] = []
    before = 2**62
    while len(texts) < NEWEST:
        if night.pausing():
            return None
        with night.database.read() as db:
            page = store.texts(db, min(PAGE, NEWEST - len(texts)), before)
        if not page:
            break
        texts += (text._replace(content="") for text in page)
        tokens += (frozenset(search_tokens(text.content)) for text in page)
        before = page[-1].seq
        night.progress(len(texts), NEWEST)
    return texts, tokens


def _middling(holders: Counter[str], common: set[str]) -> list[str]:
    fit = [(-count, word) for word, count in holders.items() if count >= LEAST_HOLDERS and word not in common]
    # A number alone names nothing.
    return [word for _, word in sorted(fit) if not word.isdecimal()][:WORDS]


def _windows(texts: Sequence[Text], tokens: Sequence[frozenset[str]], places: dict[str, int]) -> Iterator[Ids]:
    order = sorted(range(len(texts)), key=lambda at: (texts[at].session_id or "", texts[at].occurred_at, texts[at].seq))
    for here, following in pairwise([*order, None]):
        assert here is not None
        session = texts[here].session_id
        words = set(tokens[here])
        if following is not None and session is not None and texts[following].session_id == session:
            words |= tokens[following]
        yield np.array(sorted(places[word] for word in words if word in places), dtype=np.int64)


def _count(night: Night, windows: Iterable[Ids]) -> tuple[Together, int] | None:
    """Count for every two words the windows that hold both; None when asked to pause."""
    together = np.zeros((WORDS, WORDS), np.uint32)
    seen = 0
    for seen, held in enumerate(windows, 1):
        together[np.ix_(held, held)] += 1
        if seen % PAGE == 0 and night.pausing():
            return None
    return together, seen
