"""Read the memories of Gemini CLI: the list in `GEMINI.md` that its tool wrote, and the private memory of a project.

The rest of `GEMINI.md` is written by the user; `rules.py` reads it. Proposed patches in the inbox are not accepted yet.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped, read_item
from pipeline.ingest.native.drafts import NativeFile, NativeMemory, list_markdown, make_drafts, read_file
from pipeline.ingest.native.generated import strip_generated
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects
from pipeline.ingest.native.statements import split_statements
from pipeline.records import Draft

ADDED: Final = "Gemini Added Memories"
_UNKNOWN: Final = "its project's folder was not found on this machine"


class Reader:
    """Read the memories of Gemini CLI."""

    tool: ClassVar[str] = "gemini"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield a store for the list of added memories, and one for each project with a private memory."""
        root = places.home / ".gemini"
        if find_added(root / "GEMINI.md", ADDED):
            yield MemoryStore(self.tool, root / "GEMINI.md", places.shorten(root / "GEMINI.md"))
        for folder in sorted(root.glob("tmp/*/memory")):
            if not list_markdown(folder):
                continue
            project = projects.find_hash(folder.parent.name) or projects.find_short(folder.parent.name)
            origin = places.shorten(folder)
            yield Skipped(origin, _UNKNOWN) if project is None else MemoryStore(self.tool, folder, origin, project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield the list as an item, or an item for each file of a private memory."""
        if store.project is None:
            yield from read_added(store, known, ADDED)
            return
        for path in list_markdown(store.path):
            key = path.relative_to(store.path).as_posix()
            file = read_file(path, key, known)
            if isinstance(file, NativeFile):
                yield read_item(known, key, file.digest, list_drafts(store, file, f"{store.origin}/{key}"))
            else:
                yield file


def find_added(path: Path, heading: str) -> bool:
    """Return whether a file has a list of added memories."""
    file = read_file(path, path.name, {}) if path.is_file() else None
    return isinstance(file, NativeFile) and bool(split_added(file.text, heading)[0].strip())


def read_added(store: MemoryStore, known: Known, heading: str) -> Readings:
    """Yield the list of added memories in a file as an item."""
    file = read_file(store.path, store.path.name, known)
    if not isinstance(file, NativeFile):
        yield file
        return
    added, _ = split_added(file.text, heading)
    drafts = (
        draft
        for statement in split_statements(strip_generated(added))
        for draft in make_drafts(store, store.origin, NativeMemory(statement.text), file.modified_at)
    )
    yield read_item(known, file.key, file.digest, drafts)


def list_drafts(store: MemoryStore, file: NativeFile, shown: str) -> Iterator[Draft]:
    """Yield a draft for each statement of a file of memories."""
    for statement in split_statements(strip_generated(file.text)):
        memory = NativeMemory(statement.text, more={"section": " › ".join(statement.path)})
        yield from make_drafts(store, shown, memory, file.modified_at)


def split_added(text: str, heading: str) -> tuple[str, str]:
    """Return the list under a heading, which a tool wrote, and the text without it."""
    found = re.search(
        rf"^##[ \t]+{re.escape(heading)}[ \t]*$(.*?)(?=^#{{1,2}}[ \t]|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return ("", text) if found is None else (found[1], f"{text[: found.start()]}{text[found.end() :]}")
