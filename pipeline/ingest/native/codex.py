"""Read the memories of Codex: its handbook `MEMORY.md`, in groups of tasks.

A group names the folder to which it applies, and the sessions from which it was learned with their times. The summary
and the notes on sessions are derived from the same sessions and are left out.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from config.places import Places
from pipeline.ingest.fields import Known, Readings, Skipped, digest_of, name_of, read_item, time_of
from pipeline.ingest.native.drafts import NativeFile, NativeMemory, make_drafts, read_file
from pipeline.ingest.native.generated import strip_generated
from pipeline.ingest.native.memory_stores import MemoryStore
from pipeline.ingest.native.projects import Projects
from pipeline.ingest.native.statements import split_statements
from pipeline.records import Draft

HANDBOOK: Final = "MEMORY.md"
# Lists of files and search words, which say nothing alone.
_LEFT_OUT: Final = frozenset({"rollout_summary_files", "keywords"})
_GROUP: Final = re.compile(r"^# +(.*)$", re.MULTILINE)
_APPLIES: Final = re.compile(r"^applies_to:.*?\bcwd=([^;\n]+)", re.MULTILINE)
_SESSION_FOLDER: Final = re.compile(r"\(cwd=([^,)\n]+)")
_UPDATED: Final = re.compile(r"\bupdated_at=([0-9T:.+Z-]{10,35})")
_FIELD: Final = re.compile(r"^(?:scope|applies_to):.*\n?", re.MULTILINE)
# "[Task 2]" refers to a heading of the group.
_REFERENCE: Final = re.compile(r"\s*(?:\[Task [\d, Task]+\])+\s*$")


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of tasks: its title, its text, the folder that it names, and the time of its last session."""

    title: str
    text: str
    folder: str
    updated_at: str | None


class Reader:
    """Read the memories of Codex."""

    tool: ClassVar[str] = "codex"

    def discover(self, places: Places, projects: Projects) -> Iterator[MemoryStore | Skipped]:
        """Yield a store for each project that the handbook names, and one for the user."""
        path = places.folder("CODEX_HOME", ".codex") / "memories" / HANDBOOK
        file = read_file(path, HANDBOOK, {}) if path.exists() else None
        if not isinstance(file, NativeFile):
            return
        origin = places.shorten(path)
        folders = {group.folder for group in _split_groups(file.text)}
        for folder in sorted(folders):
            project = projects.find_folder(folder) if folder else None
            if folder and project is None:
                yield Skipped(folder, "its project's folder was not found on this machine")
            else:
                yield MemoryStore(self.tool, path, origin, project, folder)

    def read(self, store: MemoryStore, known: Known) -> Readings:
        """Yield an item for each group that applies to the store's project."""
        # The key of the whole source: groups that were not read are not deleted ones.
        file = read_file(store.path, ".", {})
        if not isinstance(file, NativeFile):
            yield file
            return
        titles: Counter[str] = Counter()
        for group in _split_groups(file.text):
            if group.folder != store.part:
                continue
            titles[group.title] += 1
            key = f"{HANDBOOK}#{group.title}#{titles[group.title]}"
            digest = digest_of(["codex 1", group.title, group.text])
            yield read_item(known, key, digest, _drafts(store, group, file.modified_at))


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


def _drafts(store: MemoryStore, group: _Group, modified_at: str) -> Iterator[Draft]:
    for statement in split_statements(_FIELD.sub("", group.text)):
        if not _LEFT_OUT.isdisjoint(statement.path):
            continue
        section = " › ".join([group.title, *statement.path])
        text = _REFERENCE.sub("", statement.text)
        memory = NativeMemory(text, group.updated_at, more={"section": name_of(section)})
        yield from make_drafts(store, store.origin, memory, modified_at)
