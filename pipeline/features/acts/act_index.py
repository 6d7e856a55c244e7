"""The memories of a workspace by what they name, in memory: updated from the change log, checked against the store."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from sqlite3 import Connection

from pipeline.features.acts import store
from pipeline.features.acts.history import History
from pipeline.features.acts.judgement import Statement
from pipeline.features.acts.keys import list_statement_keys
from pipeline.kernel.records import Kind, Memory, Source
from pipeline.kernel.store import changes, memories

KINDS = (Kind.LESSON, Kind.DECISION, Kind.FACT, Kind.KEYED_FACT)
# Memories that are read at once.
PAGE = 500
# The candidates of an act whose texts are compared: those with most of its words.
MOST_CANDIDATES = 48
# A word of more memories than this says too little.
COMMONEST = 400


class ActIndex:
    """Which memories name a file, a piece of code or a command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._seqs: dict[str, set[int]] = defaultdict(set)
        self._keys: dict[int, tuple[str, ...]] = {}
        self.statements: dict[int, Statement] = {}
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
            self._keys.clear()
            self.statements.clear()
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
        statement = Statement.of(memory)
        keys = list_statement_keys(statement)
        if not keys:
            return
        self.statements[memory.seq] = statement
        self._ids[memory.id] = memory.seq
        self._keys[memory.seq] = tuple(keys)
        for key in keys:
            self._seqs[key].add(memory.seq)

    def _drop(self, seq: int) -> None:
        self.statements.pop(seq, None)
        for key in self._keys.pop(seq, ()):
            self._seqs[key].discard(seq)

    def find(self, keys: Iterable[str]) -> list[int]:
        """Return the memories that share most keys with an act."""
        counts: Counter[int] = Counter()
        for key in keys:
            seqs = self._seqs.get(key, ())
            if len(seqs) <= COMMONEST:
                counts.update(seqs)
        return [seq for seq, _ in sorted(counts.items(), key=lambda item: (-item[1], -item[0]))[:MOST_CANDIDATES]]


def may_concern(memory: Memory) -> bool:
    """Return whether a memory may be shown before an act: no document, and no text that commands its reader."""
    is_kept = memory.archived_at is None and not memory.candidate and not memory.instructs
    return is_kept and memory.kind in KINDS and memory.source is not Source.IMPORT and memory.may_be_injected
