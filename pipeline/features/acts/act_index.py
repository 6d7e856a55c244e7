"""The rules of a workspace by their words, and its history, in memory: updated from the change log and the journal."""

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
from pipeline.kernel.store.database import Database

# Memories that are read at once, and the changes that a call waits for.
PAGE = 500
# The rules that an act is compared with: those with most of its words, rare ones first.
MOST_CANDIDATES = 48
_WORD = re.compile(r"[^\W_]+")


def list_words(text: str) -> set[str]:
    """Return the words of a text in lower case; the parts of a compound name are words."""
    return set(_WORD.findall(text.casefold()))


class ActIndex:
    """The texts of rules, which of them contain a word, and what happened before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._seqs: dict[str, set[int]] = defaultdict(set)
        self._rules: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        self.history = History()

    def refresh(self, database: Database, *, with_rules: bool, patience_s: float | None = None) -> bool:
        """Read what changed since the last call.

        With `patience_s`, return False if another call locks the index for longer, or if much has changed.
        """
        if not self._lock.acquire(timeout=-1 if patience_s is None else patience_s):
            return False
        try:
            # Read under the lock: an earlier state of the store would look as if rows had been deleted.
            with database.read() as db:
                if patience_s is not None and self._count_waiting(db, with_rules=with_rules) > PAGE:
                    return False
                self.history.refresh(db)
                if with_rules:
                    self._read_rules(db)
                return True
        finally:
            self._lock.release()

    def find(self, words: Iterable[str]) -> list[tuple[int, str]]:
        """Return the rules that share most words with an act, with their texts; all of them, if they are few."""
        with self._lock:
            shared = dict.fromkeys(self._rules, 0.0)
            for word in words:
                seqs = self._seqs.get(word, ())
                for seq in seqs:
                    shared[seq] += 1 / len(seqs)
            best = sorted(shared, key=lambda seq: (-shared[seq], -seq))[:MOST_CANDIDATES]
            return [(seq, self._rules[seq]) for seq in best]

    def _count_waiting(self, db: Connection, *, with_rules: bool) -> int:
        """Return about how many rows a call would read."""
        rules = changes.last_written(db) - self._generation if with_rules else 0
        return max(rules, self.history.count_waiting(db))

    def _read_rules(self, db: Connection) -> None:
        generation = changes.last_written(db)
        if generation == self._generation:
            return
        changed = changes.after(db, self._generation, PAGE + 1) if self._generation >= 0 else []
        if self._generation < 0 or len(changed) > PAGE:
            self._seqs.clear()
            self._rules.clear()
            self._ids.clear()
            self._add_all(db)
        else:
            ids = {change.memory_id for change in changed}
            known = memories.by_ids(db, ids)
            for memory_id in ids:
                self._drop(self._ids.pop(memory_id, -1))
                if (memory := known.get(memory_id)) is not None:
                    self._add(memory)
        self._generation = generation

    def _add_all(self, db: Connection) -> None:
        after = 0
        while page := store.list_lessons(db, after, PAGE):
            after = page[-1].seq
            for memory in page:
                self._add(memory)

    def _add(self, memory: Memory) -> None:
        if not may_concern(memory):
            return
        self._rules[memory.seq] = render_rule(memory)
        self._ids[memory.id] = memory.seq
        for word in list_words(self._rules[memory.seq]):
            self._seqs[word].add(memory.seq)

    def _drop(self, seq: int) -> None:
        for word in list_words(self._rules.pop(seq, "")):
            self._seqs[word].discard(seq)


def may_concern(memory: Memory) -> bool:
    """Return whether a memory may be shown before an act: no document, and no text that commands its reader."""
    is_kept = memory.archived_at is None and not memory.candidate and not memory.instructs
    return is_kept and memory.kind is Kind.LESSON and memory.source is not Source.IMPORT and memory.may_be_injected
