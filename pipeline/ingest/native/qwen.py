"""Read the memories of Qwen Code: typed notes as those of Claude Code, and the list of added memories in `QWEN.md`."""

from collections.abc import Iterator
from typing import ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.claude_code import list_note_stores, read_notes
from pipeline.ingest.native.gemini import find_added, read_added
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects

ADDED: Final = "Qwen Added Memories"


class Reader:
    """Read the memories of Qwen Code."""

    tool: ClassVar[str] = "qwen"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the list of added memories, and stores for each project with notes."""
        root = places.home / ".qwen"
        if find_added(root / "QWEN.md", ADDED):
            yield MemoryStore(self.tool, root / "QWEN.md", places.shorten(root / "QWEN.md"))
        base = places.folder("QWEN_CODE_MEMORY_BASE_DIR", ".qwen")
        for folder in sorted(base.glob("projects/*/memory")):
            yield from list_note_stores(self.tool, folder, places, projects.find_slug(folder.parent.name))
        for project in projects.folders:
            yield from list_note_stores(self.tool, project / ".qwen" / "memory", places, project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield the list as an item, or an item for each note."""
        if store.path.name == "QWEN.md":
            yield from read_added(store, known, ADDED)
        else:
            yield from read_notes(store, known)
