"""Keep a person's changes to a section of a document that moved: a file was renamed or split, or a section was moved.

The section is read as a new memory under its new heading. If a memory that a person pinned, edited or confirmed has the
same text below its heading and is in no item any more, it takes the place of the new memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.kernel.records import Memory
from pipeline.kernel.store import changes, history, ingested, memories
from pipeline.text.normalize import content_hash
from pipeline.write.reindex import reindex
from pipeline.write.revise import archive_memory, edit_text

# Between a heading and the text below it, and between the steps of a heading.
_BREAK, _STEP = "\n\n", " › "
# A text of this length is the same section under another heading, too.
DISTINCT_CHARS = 60


@dataclass(frozen=True, slots=True)
class _Section:
    """A memory with the heading and the text under which its source offered it."""

    memory: Memory
    heading: str
    body: str

    def is_same_as(self, other: "_Section") -> bool:
        """Return whether two sections have the same text, and a text or a heading that distinguishes it."""
        if self.body != other.body:
            return False
        names = [section.heading.rpartition(_STEP)[2].casefold() for section in (self, other)]
        # Without headings in the text, the heading is the name of the file.
        are_whole_files = _STEP not in self.heading + other.heading
        return names[0] == names[1] or are_whole_files or len(self.body) >= DISTINCT_CHARS


def follow_moved_sections(db: Connection, source: str, created: Iterable[str], at: str) -> tuple[str, ...]:
    """Put memories that a person changed in the place of created ones of the same section; return their ids."""
    left = [section for seq, name in ingested.list_left_behind(db, source) if (section := _find_offered(db, seq, name))]
    followed: list[str] = []
    for memory_id in created if left else ():
        memory = memories.get(db, memory_id)
        if memory is None or memory.archived_at is not None or not ingested.is_fresh(db, memory.seq, source):
            continue
        arrived = _split(memory, memory.content)
        same = [section for section in left if section.is_same_as(arrived)]
        if same:
            same.sort(key=lambda section: section.heading.casefold() != arrived.heading.casefold())
            left.remove(same[0])
            _replace(db, arrived, same[0], at)
            followed.append(same[0].memory.id)
    return tuple(followed)


def _find_offered(db: Connection, seq: int, name: str) -> _Section | None:
    """Return the section of a memory as it was offered, before a person edited it; None if that text is gone."""
    memory = memories.by_seqs(db, [seq])[seq]
    offered = name.partition(ingested.NAME_SEPARATOR)[0]
    texts = [memory.content, *(entry.content for entry in history.of(db, seq) if entry.content is not None)]
    return next((_split(memory, text) for text in texts if content_hash(text) == offered), None)


def _split(memory: Memory, text: str) -> _Section:
    heading, _, body = text.partition(_BREAK)
    return _Section(memory, heading, body)


def _replace(db: Connection, arrived: _Section, left: _Section, at: str) -> None:
    archive_memory(db, arrived.memory, at)
    ingested.move_links(db, arrived.memory.seq, left.memory.seq)
    moved = {"details": arrived.memory.details, "session_id": arrived.memory.session_id}
    moved |= {"metadata": {**left.memory.metadata, **arrived.memory.metadata}}
    memories.update(db, left.memory.seq, moved, at)
    changes.append(db, changes.EDIT, [left.memory.id])
    current = memories.by_seqs(db, [left.memory.seq])[left.memory.seq]
    heading = f"{left.heading}{_BREAK}"
    if current.content.startswith(heading):
        edit_text(db, current, f"{arrived.heading}{_BREAK}{current.content.removeprefix(heading)}", at)
    else:
        reindex(db, current)
