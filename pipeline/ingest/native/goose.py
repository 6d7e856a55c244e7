"""Read the memories of Goose: text files with blocks between blank lines, of which the first line may have tags."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped, read_item
from pipeline.ingest.native.drafts import NativeFile, NativeMemory, make_drafts, read_file
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects
from pipeline.records import Draft


class Reader:
    """Read the memories of Goose."""

    tool: ClassVar[str] = "goose"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the folders with memories of the user and of known projects."""
        windows = ("AppData", "Roaming", "Block", "goose", "config", "memory")
        own = places.home.joinpath(*windows)
        if places.platform != "win32":
            own = places.folder("XDG_CONFIG_HOME", ".config") / "goose" / "memory"
        for folder, project in ((own, None), *((known / ".goose" / "memory", known) for known in projects.folders)):
            if _list_files(folder):
                yield MemoryStore(self.tool, folder, places.shorten(folder), project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each category."""
        for path in _list_files(store.path):
            file = read_file(path, path.name, known)
            if isinstance(file, NativeFile):
                yield read_item(known, path.name, file.digest, _drafts(store, file))
            else:
                yield file


def _list_files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as listing:
            names = sorted(entry.name for entry in listing if entry.name.endswith(".txt") and not entry.is_symlink())
    except OSError:
        return []
    return [folder / name for name in names]


def _drafts(store: MemoryStore, file: NativeFile) -> Iterator[Draft]:
    category = file.key.removesuffix(".txt")
    for block in file.text.replace("\r\n", "\n").split("\n\n"):
        first, _, others = block.strip().partition("\n")
        tags = first[1:].split() if first.startswith("#") and others else []
        text = others if tags else block.strip()
        yield from make_drafts(
            store, f"{store.origin}/{file.key}", NativeMemory(text, tags=(category, tags)), file.modified_at
        )
