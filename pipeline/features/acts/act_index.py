"""The rules of a workspace by their words, in memory: updated from the change log, checked against the store."""

import re
import threading
from collections import defaultdict
from collections.abc import Iterable
from sqlite3 import Connection

from pipeline.features.acts import store
from pipeline.features.acts.history import History
from pipeline.kernel.kinds import render_rule
from pipeline.kernel.records import Kind, Memory, Source
from pipeline.kernel.store import changes, memories

KINDS = (Kind.LESSON,)
# Memories that are read at once.
PAGE = 500
# The rules that an act is compared with: those with most of its words, rare ones first.
MOST_CANDIDATES = 48
_WORD = re.compile(r"[^\W_]+")


def list_words(text: str) -> set[str]:
    """Return the words of a text in lower case; the parts of a compound name are words."""
    return set(_WORD.findall(text.casefold()))


class ActIndex:
    """The texts of rules, and which of them contain a word."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._seqs: dict[str, set[int]] = defaultdict(set)
        self.rules: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self.history = History()
        self.ready = threading.Event()

    def is_far_behind(self, db: Connection) -> bool:
        """Return whether so much changed since the last call that a call cannot wait; the index is then not ready."""
        if changes.last_written(db) - self._generation <= PAGE:
            return False
        self.ready.clear()
        return True

    def refresh(self, db: Connection) -> None:
        """Read what changed since the last call."""
        with self._lock:
            generation = changes.last_written(db)
            if generation != self._generation:
                self._read_changes(db)
                self._generation = generation
            self.history.refresh(db)
            self.ready.set()

    def _read_changes(self, db: Connection) -> None:
        changed = changes.after(db, self._generation, PAGE + 1) if self._generation >= 0 else []
        if self._generation < 0 or len(changed) > PAGE:
            self._seqs.clear()
            self.rules.clear()
            self._ids.clear()
            self._add_all(db)
            return
        ids = {change.memory_id for change in changed}
        known = memories.by_ids(db, ids)
        for memory_id in ids:
            self._drop(self._ids.pop(memory_id, -1))
            if (memory := known.get(memory_id)) is not None:
                self._add(memory)

    def _add_all(self, db: Connection) -> None:
        after = 0
        while page := store.list_searchable(db, KINDS, after, PAGE):
            after = page[-1].seq
            for memory in page:
                self._add(memory)

    def _add(self, memory: Memory) -> None:
        if not may_concern(memory):
            return
        self.rules[memory.seq] = render_rule(memory)
        self._ids[memory.id] = memory.seq
        for word in list_words(self.rules[memory.seq]):
            self._seqs[word].add(memory.seq)

    def _drop(self, seq: int) -> None:
        for word in list_words(self.rules.pop(seq, "")):
            self._seqs[word].discard(seq)

    def find(self, words: Iterable[str]) -> list[int]:
        """Return the rules that share most words with an act; all of them, if they are few."""
        shared = dict.fromkeys(self.rules, 0.0)
        for word in words:
            seqs = self._seqs.get(word, ())
            for seq in seqs:
                shared[seq] += 1 / len(seqs)
        return sorted(shared, key=lambda seq: (-shared[seq], -seq))[:MOST_CANDIDATES]


def may_concern(memory: Memory) -> bool:
    """Return whether a memory may be shown before an act: no document, and no text that commands its reader."""
    is_kept = memory.archived_at is None and not memory.candidate and not memory.instructs
    return is_kept and memory.kind in KINDS and memory.source is not Source.IMPORT and memory.may_be_injected
