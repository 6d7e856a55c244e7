"""Read folders of Markdown files (documents, a memory for each section; notes, a memory for each file) and rule files.

| tool | folder |
|---|---|
| basic-memory | Those that it names as its projects; its database is only an index of them. |
| Claude Code | Typed notes for each project; `MEMORY.md` is an index that repeats their descriptions. |
| Cline | The memory bank of a project; files on current work age fast and keep their date. |
| Gemini CLI | The private memory of a project; proposed patches in the inbox are not accepted yet. |
| Qwen Code | Typed notes as those of Claude Code. |
| Serena | A file for each memory, in the project or for all projects. |

`GEMINI.md` and `QWEN.md` have a list that the tool wrote. Their other text is that of the user: a rule file.

Rule files are what people write for agents: CLAUDE.md, AGENTS.md, rules of editors, steering files. They are indexed,
so that people find them and contradictions are seen. Agents read them anyway: memories of rule files carry a tag and
are never injected (`Memory.is_of_rule_file`). Included files are read only if they are in the project.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from config.places import Places
from pipeline.features.ingest.fields import Known, Readings, Skipped, name_of, read_item
from pipeline.features.ingest.front_matter import split_front_matter
from pipeline.features.ingest.markdown import split_sections
from pipeline.features.ingest.native.memory_stores import (
    Discovery,
    MemoryStore,
    NativeFile,
    NativeMemory,
    is_generated_file,
    make_drafts,
    read_file,
    read_files,
    split_statements,
    strip_generated,
)
from pipeline.features.ingest.native.projects import is_project, read_json
from pipeline.kernel.records import RULE_FILE_TAG, Kind

# Paths and patterns in a project, and in the user's home.
_OF_PROJECT: Final = (
    *("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/**/*.md", "AGENTS.md", "AGENTS.override.md"),
    *("GEMINI.md", "QWEN.md", ".cursorrules", ".cursor/rules/**/*.mdc", ".cursor/rules/**/*.md"),
    *(".windsurfrules", ".windsurf/rules/*.md", ".github/copilot-instructions.md"),
    *(".github/instructions/**/*.instructions.md", ".clinerules", ".clinerules/**/*.md"),
    *(".roorules", ".roorules-*", ".roo/rules*/**/*.md", ".kilocode/rules*/**/*.md", ".kiro/steering/*.md"),
    *(".junie/AGENTS.md", ".junie/guidelines.md", ".goosehints", ".rules", ".grok/rules/*.md", ".continue/rules/*.md"),
    "CONVENTIONS.md",
)
_OF_USER: Final = (
    *(".claude/CLAUDE.md", ".claude/rules/*.md", ".codex/AGENTS.md", ".codex/AGENTS.override.md"),
    *(
        ".config/opencode/AGENTS.md",
        ".config/kilo/AGENTS.md",
        ".gemini/GEMINI.md",
        ".qwen/QWEN.md",
        ".codeium/windsurf/memories/global_rules.md",
    ),
    *(".copilot/copilot-instructions.md", ".copilot/instructions/*.md", "Documents/Cline/Rules/*.md"),
    *(
        ".cline/rules/*.md",
        ".roo/rules*/*.md",
        ".kiro/steering/*.md",
        ".config/goose/.goosehints",
        ".agents/rules/*.md",
    ),
)
_INCLUDE: Final = re.compile(r"(?:(?<=^@)|(?<=\s@))[\w./~-]+\.\w+|(?<=#\[\[file:)[^\]\n]+(?=\]\])", re.MULTILINE)
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
MAX_INCLUDED: Final = 50


def discover_rules(found: Discovery) -> Iterator[MemoryStore]:
    """Yield the user's home and each project, if there are rule files in them."""
    for project in (None, *found.projects.folders):
        folder = project or found.places.home
        if next(_list_files(folder, project is not None), None) is not None:
            yield found.store(folder, project)


def read_rules(store: MemoryStore, known: Known) -> Readings:
    """Yield an item for each rule file; files with the same content are read once."""
    seen: set[str] = set()
    for path in _with_included(store.path, is_project=store.project is not None):
        key = path.relative_to(store.path).as_posix()
        if is_generated_file(path.name):
            yield Skipped(key, "written by a memory tool")
            continue
        # Its digest is needed also if it is known: a copy is not read again.
        file = read_file(path, key, {})
        if not isinstance(file, NativeFile):
            yield file
        elif file.digest in seen:
            yield Skipped(key, "same content as another rule file")
        else:
            seen.add(file.digest)
            origin = f"{store.origin}/{key}"
            yield read_item(
                known, key, file.digest, make_drafts(store, origin, _list_rules(origin, file), file.modified_at)
            )


def _list_files(folder: Path, is_project: bool) -> Iterator[Path]:
    real = folder.resolve()
    for pattern in _OF_PROJECT if is_project else _OF_USER:
        for path in sorted(folder.glob(pattern)):
            # A link to another file of the project gives the same content; a link out of it is not followed.
            if path.is_file() and path.resolve().is_relative_to(real):
                yield path


def _with_included(folder: Path, *, is_project: bool) -> Iterator[Path]:
    """Yield the rule files of a folder and the files in the folder that they include."""
    real = folder.resolve()
    waiting = list(_list_files(folder, is_project))
    listed = set(waiting)
    while waiting:
        path = waiting.pop(0)
        yield path
        file = read_file(path, "", {})
        if not is_project or not isinstance(file, NativeFile) or len(listed) > MAX_INCLUDED:
            continue
        for name in _INCLUDE.findall(_CODE.sub("", file.text)):
            for base in (path.parent, folder):
                included = base / name
                if included.is_file() and included.resolve().is_relative_to(real):
                    included = folder / included.resolve().relative_to(real)
                    waiting += [included] if included not in listed else []
                    listed.add(included)
                    break


def _list_rules(origin: str, file: NativeFile) -> Iterator[NativeMemory]:
    _, body = split_front_matter(file.text)
    for heading in (GEMINI_ADDED, QWEN_ADDED):
        _, body = split_added(body, heading)
    for statement in split_statements(strip_generated(body)):
        details = {"title": name_of(" › ".join([file.key, *statement.path])), "uri": origin}
        yield NativeMemory(statement.text, None, Kind.DOCUMENT, (RULE_FILE_TAG,), details)


# Below that of a memory that a person or agent stated: a document is long and says much that is obvious.
DOCUMENT_IMPORTANCE: Final = 0.4
GEMINI_ADDED: Final = "Gemini Added Memories"
QWEN_ADDED: Final = "Qwen Added Memories"
# A folder `memory-bank` is Cline's if it has one of these files.
_CLINE: Final = ("projectbrief", "productContext", "activeContext", "systemPatterns", "techContext", "progress")
_INDEX: Final = "MEMORY.md"
# The part of a project's folder that is about the user: notes of this type, wherever they are kept.
_USER_PART: Final = "user"
_TYPES: Final = frozenset({_USER_PART, "feedback", "project", "reference"})
_TYPE: Final = re.compile(
    r"\A---[ \t]*\r?\n(?:[^\n]*\n)*?[ \t]*type:[ \t]*[\"']?(user|feedback|project|reference)\b", re.IGNORECASE
)
_TRANSCRIPTS, _TRANSCRIPT_LINES = 3, 50


def discover_basic_memory(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield the folders of basic-memory's projects. Notes in a known project belong to it, others to the user."""
    places = found.places
    configured = [places.folder("BASIC_MEMORY_CONFIG_DIR", ".basic-memory"), places.xdg_config / "basic-memory"]
    folders: list[Path | None] = []
    for folder in dict.fromkeys(configured):
        settings = read_json(folder / "config.json")
        named = settings.get("projects") if isinstance(settings, dict) else None
        folders += [_path_of(value, places) for value in named.values()] if isinstance(named, dict) else []
    folders.append(places.folder("BASIC_MEMORY_HOME", "basic-memory"))
    for folder in dict.fromkeys(path for path in folders if path is not None and path != places.home):
        if list_markdown(folder):
            yield found.store(folder, next(filter(folder.is_relative_to, found.projects.folders), None))


def discover_claude_code(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield two stores for each project with memories, about the project and about the user, and those of subagents."""
    root = found.places.folder("CLAUDE_CONFIG_DIR", ".claude")
    for folder in sorted(root.glob("projects/*/memory")):
        project = found.projects.find_slug(folder.parent.name) or _find_in_transcripts(folder.parent)
        yield from _list_note_stores(found, folder, project)
    for base, known in ((root, None), *((project / ".claude", project) for project in found.projects.folders)):
        for folder in filter(list_markdown, sorted(base.glob("agent-memory/*"))):
            yield found.store(folder, known)


def discover_cline(found: Discovery) -> Iterator[MemoryStore]:
    """Yield the memory banks of known projects."""
    for project in found.projects.folders:
        folder = project / "memory-bank"
        if any((folder / f"{name}.md").is_file() for name in _CLINE):
            yield found.store(folder, project)


def discover_gemini(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield a store for the list of added memories, and one for each project with a private memory."""
    root = found.places.home / ".gemini"
    yield from _find_added(found, root / "GEMINI.md", GEMINI_ADDED)
    for folder in filter(list_markdown, sorted(root.glob("tmp/*/memory"))):
        name = folder.parent.name
        yield found.project_store(folder, found.projects.find_hash(name) or found.projects.short_names.get(name))


def discover_qwen(found: Discovery) -> Iterator[MemoryStore | Skipped]:
    """Yield the list of added memories, and stores for each project with notes."""
    yield from _find_added(found, found.places.home / ".qwen" / "QWEN.md", QWEN_ADDED)
    for folder in sorted(found.places.folder("QWEN_CODE_MEMORY_BASE_DIR", ".qwen").glob("projects/*/memory")):
        yield from _list_note_stores(found, folder, found.projects.find_slug(folder.parent.name))
    for project in found.projects.folders:
        yield from _list_note_stores(found, project / ".qwen" / "memory", project)


def discover_serena(found: Discovery) -> Iterator[MemoryStore]:
    """Yield the folders with memories of the user and of known projects."""
    for project in (None, *found.projects.folders):
        folder = (project or found.places.home) / ".serena" / "memories"
        if list_markdown(folder):
            yield found.store(folder, project)


def read_documents(store: MemoryStore, known: Known) -> Readings:
    """Yield an item for each document."""
    yield from read_files(store, known, list_markdown(store.path), _list_sections)


def read_gemini(store: MemoryStore, known: Known) -> Readings:
    """Yield the list of added memories as an item, or an item for each file of a private memory."""
    heading = GEMINI_ADDED if store.project is None else ""
    yield from read_files(store, known, list_markdown(store.path) or [store.path], partial(_list_added, heading))


def read_notes(store: MemoryStore, known: Known) -> Readings:
    """Yield an item for each note about the store's project or user; the index is read only without other notes."""
    files = list_markdown(store.path)
    notes = [file for file in files if file.name != _INDEX]
    yield from read_files(store, known, notes or files, _list_note)


def read_qwen(store: MemoryStore, known: Known) -> Readings:
    """Yield the list of added memories as an item, or an item for each note."""
    if store.path.name == "QWEN.md":
        yield from read_files(store, known, [store.path], partial(_list_added, QWEN_ADDED))
    else:
        yield from read_notes(store, known)


def list_markdown(folder: Path) -> list[Path]:
    """List the Markdown files below a folder, without links and hidden files, in order."""
    paths: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths += [Path(parent, name) for name in sorted(names) if name.endswith((".md", ".mdc")) and name[0] != "."]
    return [path for path in paths if not path.is_symlink()]


def split_added(text: str, heading: str) -> tuple[str, str]:
    """Return the list under a heading, which a tool wrote, and the text without it."""
    added = re.search(
        rf"^##[ \t]+{re.escape(heading)}[ \t]*$(.*?)(?=^#{{1,2}}[ \t]|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return ("", text) if added is None else (added[1], f"{text[: added.start()]}{text[added.end() :]}")


def find_folder_of_transcript(transcript: Path) -> Path | None:
    """Return the folder in which a session ran, if it still exists."""
    try:
        with transcript.open(encoding="utf-8", errors="replace") as lines:
            for line in islice(lines, _TRANSCRIPT_LINES):
                cwd = json.loads(line).get("cwd") if '"cwd"' in line else None
                if isinstance(cwd, str) and is_project(Path(cwd), None):
                    return Path(cwd)
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return None


def _path_of(value: Any, places: Places) -> Path | None:
    named = value.get("path") if isinstance(value, dict) else value
    path = places.expand(named) if isinstance(named, str) else None
    return path if path is not None and path.is_absolute() else None


def _find_in_transcripts(folder: Path) -> Path | None:
    transcripts = sorted(folder.glob("*.jsonl"))[:_TRANSCRIPTS]
    return next(filter(None, map(find_folder_of_transcript, transcripts)), None)


def _list_note_stores(found: Discovery, folder: Path, project: Path | None) -> Iterator[MemoryStore | Skipped]:
    if list_markdown(folder):
        yield found.store(folder, None, _USER_PART)
        yield found.project_store(folder, project)


def _find_added(found: Discovery, path: Path, heading: str) -> Iterator[MemoryStore]:
    file = read_file(path, path.name, {}) if path.is_file() else None
    if isinstance(file, NativeFile) and split_added(file.text, heading)[0].strip():
        yield found.store(path)


def _list_sections(store: MemoryStore, file: NativeFile) -> Iterator[NativeMemory]:
    front, body = split_front_matter(file.text)
    title = front.title or Path(file.key).stem
    for section in split_sections(strip_generated(body) if strip_generated(file.text) else ""):
        heading = name_of(" › ".join([title, *(name for name in section.path if name != title)]))
        details = {"title": heading, "uri": f"{store.origin}/{file.key}"}
        yield NativeMemory(
            section.text, front.occurred_at, Kind.DOCUMENT, front.tags, details, importance=DOCUMENT_IMPORTANCE
        )


def _list_note(store: MemoryStore, file: NativeFile) -> Iterable[NativeMemory] | None:
    is_index = Path(file.key).name == _INDEX
    nature = "" if is_index else _read_type(file.text, file.key)
    # A folder of a subagent has no part: all of it has the same reach.
    is_shared = store.part == _USER_PART or store.project is not None
    if is_shared and (nature == _USER_PART) != (store.part == _USER_PART):
        return None
    if is_index:
        return _list_statements(file.text)
    front, body = split_front_matter(file.text)
    text = strip_generated(body).strip() or front.summary
    more = {"name": front.title, "description": front.summary, "type": nature}
    return [NativeMemory(text, front.occurred_at, tags=(nature, front.tags), more=more)]


def _read_type(text: str, key: str) -> str:
    """Return the type in a note's front matter, else that of its folder or name; empty for none."""
    front = text.replace("\r\n", "\n").partition("\n---")[0]
    if match := _TYPE.match(f"{front}\n"):
        return match[1].lower()
    folder, _, name = key.rpartition("/")
    return next((word for word in (folder, re.split(r"[_.-]", name)[0]) if word in _TYPES), "")


def _list_added(heading: str, _store: MemoryStore, file: NativeFile) -> Iterator[NativeMemory]:
    """Yield the statements below a heading, or all of a file without one."""
    return _list_statements(split_added(file.text, heading)[0] if heading else file.text)


def _list_statements(text: str) -> Iterator[NativeMemory]:
    for statement in split_statements(strip_generated(text)):
        yield NativeMemory(statement.text, more={"section": " › ".join(statement.path)})
