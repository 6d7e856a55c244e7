"""The documents of a lexical index: what is indexed, and where the store names the segment.

Memories are edited and archived, so a write stores their words in a tail, and each segment is built from the store.
Turns never change: the tail is the turns after the segment's last one, and a segment takes over the words of the one
before it.
"""

from collections.abc import Callable, Set as AbstractSet
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from pipeline.index.postings import WordCounter
from pipeline.index.segment import Document, Segment, index_counted, index_documents
from pipeline.kernel.store import changes, index_state, memories, meta, turns
from pipeline.text.memory_terms import memory_terms
from pipeline.text.tokens import search_tokens

PAGE = 5000
# A segment is extended when the turns outside of it exceed this share of it.
TAIL_SHARE = 16

TailRow = tuple[int, int, list[str]]


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """The keys of a workspace's values: the current segment, the position that it covers, a request for another."""

    name: str
    covers: str
    wanted: str


class MemoryDocuments:
    """The active memories of a workspace."""

    keys = SegmentKeys(meta.SEGMENT, meta.SEGMENT_COVERS, meta.SEGMENT_WANTED)
    most_tail_rows = 2**62

    def generation(self, db: Connection) -> int:
        """Return the number of the last change."""
        return changes.generation(db)

    def list_tail(self, db: Connection, after: int) -> list[TailRow]:
        """List the tail after a change number."""
        return index_state.list_tail_after(db, after)

    def list_dropped(self, db: Connection, seqs: AbstractSet[int]) -> list[int]:
        """List the memories that were archived or purged since they were written."""
        if index_state.count_tail(db) >= len(seqs):
            return []
        return sorted(seqs - index_state.list_tail_seqs(db))

    def needs_segment(self, db: Connection, tail_rows: int) -> bool:
        """Return whether the tail exceeds a number of rows, or a purge or a broken segment requires a new one."""
        return index_state.count_tail(db) >= tail_rows or meta.get(db, meta.SEGMENT_WANTED) is not None

    def trim_tail(self, db: Connection, covered: int) -> None:
        """Drop the rows up to a change number."""
        index_state.trim_tail(db, covered)

    def index(self, db: Connection, _load: Callable[[str], Segment | None]) -> Segment:
        """Index every active memory."""
        documents: list[Document] = []
        last = 0
        while page := memories.list_searchable(db, last, PAGE):
            documents.extend((memory.seq, memory_terms(memory)) for memory in page)
            last = page[-1].seq
        return index_documents(documents)

    def index_without_storage(self, db: Connection) -> Segment:
        """Index the store itself."""
        return self.index(db, lambda _name: None)


class TurnDocuments:
    """The turns of a workspace's sessions."""

    keys = SegmentKeys(meta.TURN_SEGMENT, meta.TURN_SEGMENT_COVERS, meta.TURN_SEGMENT_WANTED)

    @property
    def most_tail_rows(self) -> int:
        """Return the number of turns outside of the segment that a reader can find."""
        return index_state.MOST_TAIL_TURNS

    def generation(self, db: Connection) -> int:
        """Return the row number of the last turn."""
        return max(turns.last_seq(db), meta.get_int(db, self.keys.covers))

    def list_tail(self, db: Connection, after: int) -> list[TailRow]:
        """List the first turns after a row number; the rest can be found once the next segment contains them."""
        covered = meta.get_int(db, self.keys.covers)
        room = index_state.MOST_TAIL_TURNS - max(after - covered, 0)
        rows = turns.list_texts_after(db, max(after, covered), room) if room > 0 else []
        return [(seq, seq, search_tokens(text)) for seq, text in rows]

    def list_dropped(self, _db: Connection, _seqs: AbstractSet[int]) -> list[int]:
        """Return nothing: a deleted turn requests a new segment."""
        return []

    def needs_segment(self, db: Connection, tail_rows: int) -> bool:
        """Return whether many turns are outside of the segment, or turns were deleted."""
        if meta.get(db, self.keys.wanted) is not None:
            return True
        covered = meta.get_int(db, self.keys.covers)
        enough = min(max(tail_rows, covered // TAIL_SHARE), index_state.MOST_TAIL_TURNS)
        return turns.last_seq(db) > covered and turns.count_after(db, covered) >= enough

    def trim_tail(self, db: Connection, covered: int) -> None:
        """Do nothing: the tail is what the segment does not cover."""

    def index(self, db: Connection, load: Callable[[str], Segment | None]) -> Segment:
        """Add the later turns to the current segment, without the deleted ones; without a segment, index all turns."""
        name = None if index_state.is_turn_segment_wanted_anew(db) else meta.get(db, self.keys.name)
        before = None if name is None else load(name)
        counter, last, rows = WordCounter(), 0, []
        if before is not None:
            kept = np.isin(before.rows, np.array(turns.all_seqs(db), np.int64))
            counter.add_counted(before.counted, kept)
            rows, last = before.rows[kept].tolist(), meta.get_int(db, self.keys.covers)
            del before
        while page := turns.list_texts_after(db, last, PAGE):
            for seq, text in page:
                rows.append(seq)
                counter.add_text(text)
            last = page[-1][0]
        return index_counted(np.array(rows, np.int64), counter.finish(), {})

    def index_without_storage(self, _db: Connection) -> Segment:
        """Return nothing: a search does not wait for the words of all turns."""
        return index_documents([])


# A family of documents with one lexical index.
Documents = MemoryDocuments | TurnDocuments

MEMORIES, TURNS = MemoryDocuments(), TurnDocuments()
