"""The interface of readers of native memories: find a tool's stores on this machine, and read their memories.

A reader only reads. A store belongs to one project or to the user; a database or file with memories of several projects
gives one store for each of them.
"""

import hashlib
import importlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Protocol

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped
from pipeline.ingest.native.projects import Projects

# The start of the names of all sources of native memories and rule files; the name of the tool follows.
SOURCE_PREFIX: Final = "memory:"
SLUG_CHARS: Final = 40
# The tool of rule files, which people write.
RULES: Final = "rules"


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """A file, folder or database of a tool, or the part of it that is about one project.

    `origin` is the path that is shown and stored, with `~` for the user's home. `project` is the folder of the project,
    None for memories about the user. `part` is the tool's name for the part of a shared store.
    """

    tool: str
    path: Path
    origin: str
    project: Path | None = None
    part: str = ""

    @property
    def source(self) -> str:
        """Return the name of the source, the same for every import from this store."""
        named = self.project or self.path
        slug = re.sub(r"[^a-z0-9]+", "-", named.name.lower()).strip("-")[:SLUG_CHARS] or "store"
        reach = "" if self.project is None else "project"
        digest = hashlib.sha256(b"\0".join([os.fsencode(self.path), self.part.encode(), reach.encode()])).hexdigest()
        return f"{SOURCE_PREFIX}{self.tool}:{slug}-{digest[:8]}"


class MemoryReader(Protocol):
    """Read the memories of one tool."""

    tool: ClassVar[str]

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the tool's stores, and what cannot be imported; nothing if the tool was never used here."""

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield the items of a store, given the digests of known items."""


# By the tool's name: its module in this package, and its name for people. Rule files are last, because they are read
# for the projects of the other stores.
TOOLS: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": ("claude_code", "Claude Code auto memory"),
    "codex": ("codex", "Codex memories"),
    "gemini": ("gemini", "Gemini CLI memories"),
    "qwen": ("qwen", "Qwen Code memories"),
    "goose": ("goose", "Goose memories"),
    "serena": ("serena", "Serena memories"),
    "cline": ("cline", "Cline memory bank"),
    "claude-mem": ("claude_mem", "claude-mem"),
    "basic-memory": ("basic_memory", "basic-memory"),
    "engram": ("engram", "engram"),
    "memorix": ("memorix", "memorix"),
    "mcp-memory-service": ("mcp_memory_service", "mcp-memory-service"),
    "mcp-memory": ("mcp_memory", "MCP memory server"),
    "mempalace": ("mempalace", "MemPalace"),
    "mem0": ("mem0_local", "mem0 and OpenMemory"),
    RULES: ("rules", "rule files"),
}


def load_reader(tool: str) -> MemoryReader:
    """Return the reader of a tool. Its module is loaded on first use."""
    reader: MemoryReader = importlib.import_module(f"pipeline.ingest.native.{TOOLS[tool][0]}").Reader()
    return reader
