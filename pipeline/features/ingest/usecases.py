"""Read sources in the process of the caller: projects, histories, documents, exports of other tools.

A reader yields changed, unchanged and skipped items, the last with a reason. The caller sends the items to the server.

Memories and rule files of other programs on this machine are found first, and the caller chooses their workspaces.
"""

import hashlib
import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from config.places import Places
from pipeline.features.ingest.fields import Known, Progress, Readings, Skipped
from pipeline.features.ingest.native.memory_stores import Discovery, MemoryStore, Tool
from pipeline.features.ingest.native.projects import Projects, is_project, list_projects
from pipeline.kernel.store.ingested import RULES_TOOL


@dataclass(frozen=True, slots=True)
class FoundStores:
    """The stores of a tool, and what cannot be imported with the reasons."""

    tool: str
    label: str
    stores: tuple[MemoryStore, ...]
    skipped: tuple[Skipped, ...]


def list_tools() -> Mapping[str, Tool]:
    """Return the tools whose memories can be imported, by name."""
    # Imported here because the readers load libraries that most commands do not need.
    from pipeline.features.ingest.native.tools import TOOLS

    return TOOLS


def find_stores(places: Places, here: Path | None, tools: Sequence[str]) -> Iterator[FoundStores]:
    """Yield what is found of each tool, of those that were ever used on this machine.

    Rule files are read for the current project and for the projects with memories.
    """
    here = here if here is not None and is_project(here, places.home) else None
    known = list_projects(places, here)
    folders = dict.fromkeys([here] if here is not None else [])
    for tool in tools:
        label, discover, _ = list_tools()[tool]
        projects = Projects(tuple(folders)) if tool == RULES_TOOL else known
        found = tuple(discover(Discovery(tool, places, projects)))
        stores = tuple(entry for entry in found if isinstance(entry, MemoryStore))
        folders |= dict.fromkeys(store.project for store in stores if store.project is not None)
        if found:
            skipped = tuple(entry for entry in found if isinstance(entry, Skipped))
            yield FoundStores(tool, label, stores, skipped)


def open_store(store: MemoryStore) -> Callable[[Known], Readings]:
    """Return a function that reads a store, given the digests of known items."""
    return partial(list_tools()[store.tool].read, store)


SLUG_CHARS: Final = 48


@dataclass(frozen=True, slots=True)
class SourceType:
    """A type of source: the module of its reader, a summary, and whether each path is a separate source."""

    module: str
    summary: str
    by_path: bool = True


_EXPORT: Final = "its ZIP, its folder or a file of it"
# The function `read_<name>` of each module reads the source; the module is loaded on first use.
SOURCES: Final[Mapping[str, SourceType]] = {
    "project": SourceType("project.read", "the files of a project"),
    "git": SourceType("git", "the commits of a repository"),
    "pdf": SourceType("pdf", "a PDF file, or all PDF files of a folder"),
    "chatgpt": SourceType("conversation_exports", f"the conversations of a ChatGPT export: {_EXPORT}", by_path=False),
    "claude": SourceType("conversation_exports", f"the conversations of a Claude export: {_EXPORT}", by_path=False),
    "markdown": SourceType("markdown", "notes in Markdown: a file, or a folder with all below it"),
    "jsonl": SourceType("jsonl", "memories from a file of JSON lines, one a line"),
    "mem0": SourceType("memory_exports", "the memories of a mem0 export", by_path=False),
    "pmb": SourceType("memory_exports", "the memories of a PMB database or export", by_path=False),
}
IMPORTS: Final = ("chatgpt", "claude", "markdown", "jsonl", "mem0", "pmb")


def open_reader(name: str, path: Path, progress: Progress, **options: object) -> Callable[[Known], Readings]:
    """Return a function that reads a source of a type from a path, given the digests of known items."""
    reader = getattr(importlib.import_module(f"pipeline.features.ingest.{SOURCES[name].module}"), f"read_{name}")

    def read(known: Known) -> Readings:
        readings: Readings = reader(path, known, progress, **options)
        return readings

    return read


def source_name(name: str, path: Path) -> str:
    """Return the name of a source, from its type and its folder or file."""
    # Imported here because it loads the settings, which the list of commands does not need.
    from pipeline.features.workspaces.usecases import history_of_folder

    if not SOURCES[name].by_path:
        return name
    folder = (history_of_folder(path) if name == "git" else path).resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:SLUG_CHARS] or "root"
    return f"{name}:{slug}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"


def has_secret(text: str) -> bool:
    """Return whether redaction would change a text."""
    # Imported here because compiling its expressions is slow, and most commands read no source.
    from pipeline.text.redaction import redact

    return redact(text).text != text
