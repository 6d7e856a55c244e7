"""Read the memory bank that Cline keeps in a project. Its files on current work age fast and keep their date."""

from collections.abc import Iterator
from typing import ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.documents import read_documents
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects

# A folder with this name is Cline's if it has one of these files.
_FILES: Final = ("projectbrief", "productContext", "activeContext", "systemPatterns", "techContext", "progress")


class Reader:
    """Read Cline's memory bank."""

    tool: ClassVar[str] = "cline"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the memory banks of known projects."""
        for project in projects.folders:
            folder = project / "memory-bank"
            if any((folder / f"{name}.md").is_file() for name in _FILES):
                yield MemoryStore(self.tool, folder, places.shorten(folder), project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each file."""
        yield from read_documents(store, known)
