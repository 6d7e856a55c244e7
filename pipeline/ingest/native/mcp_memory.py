"""Read the graph of the MCP memory server: a memory for each observation and relation of its JSON lines.

The file is named by a variable in the settings of an agent.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped, digest_of_json, id_of, read_item, text_of
from pipeline.ingest.native.drafts import NativeFile, NativeMemory, make_drafts, read_file
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects, read_json

VARIABLE: Final = "MEMORY_FILE_PATH"
# Settings of agents that may start the server.
_SETTINGS: Final = (
    *(".claude.json", ".cursor/mcp.json", ".codeium/windsurf/mcp_config.json", ".gemini/settings.json"),
    *(".config/Claude/claude_desktop_config.json", ".config/Code/User/mcp.json", ".copilot/mcp-config.json"),
    "Library/Application Support/Claude/claude_desktop_config.json",
    "AppData/Roaming/Claude/claude_desktop_config.json",
)
_PROJECT_SETTINGS: Final = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json")
_DEPTH: Final = 8
# Without the variable, and with a relative path, the file is next to the server's code: as npx or npm installed it.
_PACKAGE: Final = "node_modules/@modelcontextprotocol/server-memory/dist"
_INSTALLED: Final = (".npm/_npx/*/", ".npm-global/lib/", ".nvm/versions/node/*/lib/", ".local/lib/", "")
_DEFAULT: Final = "memory.jsonl"


class Reader:
    """Read the graph of the MCP memory server."""

    tool: ClassVar[str] = "mcp-memory"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield the files that the environment and the settings of agents name, and those of installed servers."""
        packages = [folder for name in _INSTALLED for folder in sorted(places.home.glob(f"{name}{_PACKAGE}"))]
        named: dict[Path, Path | None] = {folder / _DEFAULT: None for folder in packages}
        for folder in projects.folders:
            for name in _PROJECT_SETTINGS:
                for text in _find_named(read_json(folder / name)):
                    named |= {base / places.expand(text): folder for base in (folder, *packages)}
        texts = [text for name in _SETTINGS for text in _find_named(read_json(places.home / name))]
        for text in [*texts, *filter(None, [places.environment.get(VARIABLE)])]:
            named |= {base / places.expand(text): None for base in (places.home, *packages)}
        for path, project in named.items():
            if path.is_file():
                yield MemoryStore(self.tool, path, places.shorten(path), project)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each entity, and one for each relation."""
        file = read_file(store.path, ".", {})
        if not isinstance(file, NativeFile):
            yield file
            return
        # The server writes other line separators of Unicode as they are.
        for number, line in enumerate(file.text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                # The key of the whole source: an entity that was not read was not deleted.
                yield Skipped(".", f"cannot be read: line {number} is not JSON")
                continue
            key, texts = _read_line(value)
            if not key:
                yield Skipped(f"line {number}", "not an entity or a relation")
                continue
            drafts = (
                draft
                for text in texts
                for draft in make_drafts(store, store.origin, NativeMemory(text), file.modified_at)
            )
            yield read_item(known, key, digest_of_json("mcp memory 1", value), drafts)


def _read_line(value: Any) -> tuple[str, list[str]]:
    """Return the key and the texts of an entity or a relation."""
    if not isinstance(value, dict):
        return "", []
    if value.get("type") == "relation":
        parts = [id_of(value.get(name)) for name in ("from", "relationType", "to")]
        return (f"relation:{'|'.join(parts)}", [" ".join(parts).replace("_", " ")]) if all(parts) else ("", [])
    name = id_of(value.get("name"))
    if value.get("type") != "entity" or not name:
        return "", []
    observations = value.get("observations")
    texts = [text for text in observations if text_of(text)] if isinstance(observations, list) else []
    return f"entity:{name}", [f"{name}: {text}" for text in texts]


def _find_named(value: Any, depth: int = 0) -> list[str]:
    """Return the files that settings name, wherever in them a server has the variable."""
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    found = [text for part in inner for text in _find_named(part, depth + 1)] if depth < _DEPTH else []
    named = value.get(VARIABLE) if isinstance(value, dict) else None
    return [*found, *([named] if isinstance(named, str) and named else [])]
