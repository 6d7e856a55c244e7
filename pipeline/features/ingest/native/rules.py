"""Read rule files, which people write for agents: CLAUDE.md, AGENTS.md, rules of editors, steering files.

They are indexed, so that people find them and contradictions are seen. Agents read them anyway: memories of rule files
carry a tag and are never injected (`Memory.is_of_rule_file`). Included files are read only if they are in the project.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pipeline.features.ingest.fields import Known, Readings, Skipped, name_of, read_item
from pipeline.features.ingest.front_matter import split_front_matter
from pipeline.features.ingest.native.generated import is_generated_file, strip_generated
from pipeline.features.ingest.native.markdown_folders import GEMINI_ADDED, QWEN_ADDED, split_added
from pipeline.features.ingest.native.memory_stores import (
    Discovery,
    MemoryStore,
    NativeFile,
    NativeMemory,
    make_drafts,
    read_file,
)
from pipeline.features.ingest.native.statements import split_statements
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
