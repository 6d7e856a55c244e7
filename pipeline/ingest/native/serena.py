"""Read the memories of Serena: a Markdown file for each, in the project or for all projects."""

from collections.abc import Iterator
from typing import ClassVar

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.documents import read_documents
from pipeline.ingest.native.drafts import list_markdown
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects


class Reader:
    """Read the memories of Serena."""

    tool: ClassVar[str] = "serena"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the folders with memories of the user and of known projects."""
        for project in (None, *projects.folders):
            folder = (project or places.home) / ".serena" / "memories"
            if list_markdown(folder):
                yield MemoryStore(self.tool, folder, places.shorten(folder), project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each file."""
        yield from read_documents(store, known)
