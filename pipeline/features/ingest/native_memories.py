"""Find the memories and rule files that other programs keep on this machine, in the process of the caller.

discover the stores of each tool → the caller chooses their workspaces → read each store as a source
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from config.places import Places
from pipeline.features.ingest.fields import Known, Readings, Skipped
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
