"""Read the notes of basic-memory. Its Markdown files are the memories; its database is only an index.

Only the folders that it names as its projects are read. Notes in a known project belong to it, others to the user.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.documents import read_documents
from pipeline.ingest.native.drafts import list_markdown
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects, read_json


class Reader:
    """Read the notes of basic-memory."""

    tool: ClassVar[str] = "basic-memory"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the folders of its projects."""
        configured = [places.folder("BASIC_MEMORY_CONFIG_DIR", ".basic-memory"), places.xdg_config / "basic-memory"]
        folders: list[Path | None] = []
        for folder in dict.fromkeys(configured):
            settings = read_json(folder / "config.json")
            named = settings.get("projects") if isinstance(settings, dict) else None
            folders += [_path_of(value, places) for value in named.values()] if isinstance(named, dict) else []
        folders.append(places.folder("BASIC_MEMORY_HOME", "basic-memory"))
        for folder in dict.fromkeys(path for path in folders if path is not None and path != places.home):
            if list_markdown(folder):
                project = next((known for known in projects.folders if folder.is_relative_to(known)), None)
                yield MemoryStore(self.tool, folder, places.shorten(folder), project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each note."""
        yield from read_documents(store, known)


def _path_of(value: Any, places: Places) -> Path | None:
    named = value.get("path") if isinstance(value, dict) else value
    path = places.expand(named) if isinstance(named, str) else None
    return path if path is not None and path.is_absolute() else None
