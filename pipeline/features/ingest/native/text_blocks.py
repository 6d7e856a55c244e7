"""Read text files with several memories each: a memory for each block, statement or line.

| tool | file |
|---|---|
| Codex | Its handbook `MEMORY.md`, in groups of tasks. Its notes on sessions repeat the handbook and are left out. |
| Goose | Text files with blocks between blank lines, of which the first line may have tags. |
| MCP memory server | The graph in JSON lines. A variable in the settings of an agent names the file. |
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pipeline.features.ingest.fields import (
    Known,
    Readings,
    Skipped,
    digest_of,
    digest_of_json,
    id_of,
    name_of,
    text_of,
    time_of,
)
from pipeline.features.ingest.native.memory_stores import (
    UNKNOWN_PROJECT,
    Discovery,
    Entry,
    MemoryStore,
    NativeFile,
    NativeMemory,
    read_entries,
    read_file,
    read_files,
    split_statements,
    strip_generated,
)
from pipeline.features.ingest.native.projects import read_json

_HANDBOOK: Final = "MEMORY.md"
# Lists of files and search words, which say nothing alone.
_LEFT_OUT: Final = frozenset({"rollout_summary_files", "keywords"})
_GROUP: Final = re.compile(r"^# +(.*)$", re.MULTILINE)
_APPLIES: Final = re.compile(r"^applies_to:.*?\bcwd=([^;\n]+)", re.MULTILINE)
_SESSION_FOLDER: Final = re.compile(r"\(cwd=([^,)\n]+)")
_UPDATED: Final = re.compile(r"\bupdated_at=([0-9T:.+Z-]{10,35})")
_FIELD: Final = re.compile(r"^(?:scope|applies_to):.*\n?", re.MULTILINE)
# "[Task 2]" refers to a heading of the group.
_REFERENCE: Final = re.compile(r"\s*(?:\[Task [\d, Task]+\])+\s*$")

MCP_VARIABLE: Final = "MEMORY_FILE_PATH"
# Settings of agents that may start the MCP memory server.
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


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of Codex's tasks: its title, its text, the folder that it names, and the time of its last session."""

    title: str
    text: str
    folder: str
    updated_at: str | None


def discover_codex(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield a store for each project that the handbook names, and one for the user."""
    path = found.places.folder("CODEX_HOME", ".codex") / "memories" / _HANDBOOK
    file = read_file(path, _HANDBOOK, {}) if path.exists() else None
    for folder in sorted({group.folder for group in _split_groups(file.text)} if isinstance(file, NativeFile) else ()):
        project = found.projects.find_folder(folder) if folder else None
        is_gone = folder and project is None
        yield Skipped(folder, UNKNOWN_PROJECT) if is_gone else found.store(path, project, folder)


def discover_goose(found: Discovery) -> Iterator[MemoryStore]:
    """Yield the folders with memories of the user and of known projects."""
    home = found.places.home.joinpath("AppData", "Roaming", "Block", "goose", "config", "memory")
    if found.places.platform != "win32":
        home = found.places.folder("XDG_CONFIG_HOME", ".config") / "goose" / "memory"
    for folder, project in ((home, None), *((path / ".goose" / "memory", path) for path in found.projects.folders)):
        if _list_text_files(folder):
            yield found.store(folder, project)


def discover_mcp_memory(found: Discovery) -> Iterator[MemoryStore]:
    """Yield the files that the environment and the settings of agents name, and those of installed servers."""
    places = found.places
    packages = [folder for name in _INSTALLED for folder in sorted(places.home.glob(f"{name}{_PACKAGE}"))]
    named: dict[Path, Path | None] = {folder / _DEFAULT: None for folder in packages}
    for folder in found.projects.folders:
        for name in _PROJECT_SETTINGS:
            for text in _find_named(read_json(folder / name)):
                named |= {base / places.expand(text): folder for base in (folder, *packages)}
    texts = [text for name in _SETTINGS for text in _find_named(read_json(places.home / name))]
    for text in [*texts, *filter(None, [places.environment.get(MCP_VARIABLE)])]:
        named |= {base / places.expand(text): None for base in (places.home, *packages)}
    for path, project in named.items():
        if path.is_file():
            yield found.store(path, project)


def read_goose(store: MemoryStore, known: Known) -> Readings:
    """Yield an item for each category."""
    yield from read_files(store, known, _list_text_files(store.path), _list_blocks)


def read_parts(
    store: MemoryStore, known: Known, list_entries: Callable[[MemoryStore, str], Iterator[Entry | Skipped]]
) -> Readings:
    """Yield an item for each entry of a store's file."""
    # The key of the whole source: entries that were not read are not deleted ones.
    file = read_file(store.path, ".", {})
    if isinstance(file, NativeFile):
        yield from read_entries(store, known, list_entries(store, file.text), file.modified_at)
    else:
        yield file


def list_groups(store: MemoryStore, text: str) -> Iterator[Entry]:
    """Yield the groups of Codex's handbook that apply to the store's project."""
    titles: Counter[str] = Counter()
    for group in _split_groups(text):
        if group.folder == store.part:
            titles[group.title] += 1
            key = f"{_HANDBOOK}#{group.title}#{titles[group.title]}"
            yield Entry(key, digest_of(["codex 1", group.title, group.text]), _list_statements(group))


def _split_groups(text: str) -> list[_Group]:
    text = strip_generated(text)
    heads = list(_GROUP.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    groups = [_read_group(name_of(head[1]), text[head.end() : end]) for head, end in zip(heads, ends, strict=True)]
    start = text[: heads[0].start()] if heads else text
    return [*([_read_group("memories", start)] if start.strip() else []), *groups]


def _read_group(title: str, text: str) -> _Group:
    named = _APPLIES.search(text) or _SESSION_FOLDER.search(text)
    folder = named[1].strip().strip("`\"'") if named else ""
    times = [at for at in map(time_of, _UPDATED.findall(text)) if at]
    title = re.sub(r"^Task Group:\s*", "", title)
    # A cwd that is no path names a kind of work, for all projects.
    return _Group(title, text, folder if Path(folder).is_absolute() else "", max(times, default=None))


def _list_statements(group: _Group) -> Iterator[NativeMemory]:
    for statement in split_statements(_FIELD.sub("", group.text)):
        if _LEFT_OUT.isdisjoint(statement.path):
            section = name_of(" › ".join([group.title, *statement.path]))
            yield NativeMemory(_REFERENCE.sub("", statement.text), group.updated_at, more={"section": section})


def _list_text_files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as listing:
            names = sorted(entry.name for entry in listing if entry.name.endswith(".txt") and not entry.is_symlink())
    except OSError:
        return []
    return [folder / name for name in names]


def _list_blocks(_store: MemoryStore, file: NativeFile) -> Iterator[NativeMemory]:
    category = file.key.removesuffix(".txt")
    for block in file.text.replace("\r\n", "\n").split("\n\n"):
        first, _, others = block.strip().partition("\n")
        tags = first[1:].split() if first.startswith("#") and others else []
        yield NativeMemory(others if tags else block.strip(), tags=(category, tags))


def list_graph(_store: MemoryStore, text: str) -> Iterator[Entry | Skipped]:
    """Yield the entities and the relations of the MCP memory server."""
    # The server writes other line separators of Unicode as they are.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            yield Skipped(".", f"cannot be read: line {number} is not JSON")
            continue
        key, texts = _read_line(value)
        if key:
            yield Entry(key, digest_of_json("mcp memory 1", value), map(NativeMemory, texts))
        else:
            yield Skipped(f"line {number}", "not an entity or a relation")


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
    named = value.get(MCP_VARIABLE) if isinstance(value, dict) else None
    return [*found, *([named] if isinstance(named, str) and named else [])]
