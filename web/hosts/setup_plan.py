"""Plan a setup run: compute the change of each file before changing any."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from web.hosts import installed_files, json_edits, plugin_file, rules_block, toml_edits, yaml_edits
from web.hosts.entries import (
    AddedEntries,
    CannotEdit,
    EntryUndo,
    HookEntry,
    HostEntry,
    PluginFile,
    RemovedEntries,
    RulesBlock,
)
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host, Target
from web.hosts.installed_files import InstalledFile, InstallState, read_state, write_state

HostTarget = tuple[str, Target]

ADD: Mapping[str, Callable[[str | None, Sequence[HostEntry], EntryUndo], AddedEntries]] = {
    "json": json_edits.add_entries,
    "toml": toml_edits.add_entries,
    "yaml": yaml_edits.add_entries,
    "block": rules_block.add_entries,
    "plugin": plugin_file.add_entries,
}
REMOVE: Mapping[str, Callable[[str, Sequence[HostEntry], EntryUndo | None], RemovedEntries]] = {
    "json": json_edits.remove_entries,
    "toml": toml_edits.remove_entries,
    "yaml": yaml_edits.remove_entries,
    "block": rules_block.remove_entries,
    "plugin": plugin_file.remove_entries,
}
# Of other files than rules, whose names hosts choose freely.
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "json": (".json", ".jsonc"),
    "toml": (".toml",),
    "yaml": (".yaml",),
    "plugin": (".js",),
}


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of a file; `record` is its entry in the install state afterwards."""

    path: Path
    hosts: tuple[str, ...]
    before: bytes | None = None
    after: bytes | None = None
    record: InstalledFile | None = None
    folders: tuple[str, ...] = ()
    """Folders that are deleted with the file."""
    error: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def action(self) -> Literal["create", "change", "delete", "none", "error"]:
        """Return the kind of change."""
        if self.error is not None:
            return "error"
        if self.before == self.after:
            return "none"
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "change"

    @property
    def is_pending(self) -> bool:
        """Return whether the file is to be created, changed or deleted."""
        return self.action not in ("none", "error")


def plan_setup(
    hosts: Iterable[Host], host_env: HostEnvironment, reverie: Installation, records: InstallState
) -> list[FileChange]:
    """Plan to write the entries of every host."""
    uses = _group_by_file(
        (host.name, target)
        for host in hosts
        for target in _with_former_rules(host.name, host.targets(host_env, reverie), host_env, records)
    )
    plan = partial(_plan_addition, reverie)
    return [_plan_file(plan, path, used, host_env, records) for path, used in uses.items()]


def plan_removal(
    hosts: Iterable[Host], host_env: HostEnvironment, reverie: Installation, records: InstallState
) -> list[FileChange]:
    """Plan to remove the entries of every host from all files; files without entries are left out."""
    # An earlier version of the host may have got other entries.
    host_env = replace(host_env, version=lambda _program: None)
    uses = _group_by_file(
        (host.name, target)
        for host in hosts
        for target in _with_recorded(host.name, host.targets(host_env, reverie), host_env, records)
    )
    changes = [_plan_file(_plan_removal, path, used, host_env, records) for path, used in uses.items()]
    return [change for change in changes if change.hosts and (change.action != "none" or str(change.path) in records)]


def apply(changes: Sequence[FileChange], root: Path) -> list[FileChange]:
    """Make the changes and store the records under `root`; return the failed changes with their errors."""
    return [change if change.error is not None else _apply_one(change, root) for change in changes]


def _apply_one(change: FileChange, root: Path) -> FileChange:
    records = read_state(root)
    recorded = records.get(str(change.path))
    try:
        _check_unchanged(change)
        # Write the record before the file and delete it after the file, so that a created file always has a record.
        if change.record is not None and change.record != recorded:
            write_state(root, _with_record(records, change.path, change.record))
        try:
            _write(change)
        except OSError:
            write_state(root, records)
            raise
        if change.record is None and recorded is not None:
            write_state(root, _with_record(records, change.path, None))
    except CannotEdit as error:
        return replace(change, error=str(error))
    except OSError as error:
        return replace(change, error=f"it cannot be written: {error.strerror}")
    return change


def _with_recorded(
    host: str, targets: Sequence[Target], host_env: HostEnvironment, records: InstallState
) -> list[Target]:
    """Return the targets and the files that an earlier run chose instead."""
    target_paths = {_resolve_links(target.path) for target in targets}
    all_targets = list(targets)
    for file, record in records.items():
        if host in record.hosts and record.project == _project_name(host_env) and Path(file) not in target_paths:
            all_targets.extend(replace(target, path=Path(file)) for target in targets if _reads(target, Path(file)))
    return all_targets


def _with_former_rules(
    host: str, targets: Sequence[Target], host_env: HostEnvironment, records: InstallState
) -> list[Target]:
    """Return the targets, and the rules files that an earlier setup chose, from which the block is removed."""
    former = _with_recorded(host, targets, host_env, records)[len(targets) :]
    rules = (replace(target, entries=(), obsolete=target.all_entries) for target in former if target.format == "block")
    return [*targets, *rules]


def _reads(target: Target, file: Path) -> bool:
    known = {suffix for suffixes in SUFFIXES.values() for suffix in suffixes}
    return file.suffix in SUFFIXES.get(target.format, ()) or (target.format == "block" and file.suffix not in known)


def _group_by_file(uses: Iterable[HostTarget]) -> dict[Path, list[HostTarget]]:
    grouped: dict[Path, list[HostTarget]] = {}
    for host, target in uses:
        grouped.setdefault(_resolve_links(target.path), []).append((host, target))
    return grouped


def _resolve_links(path: Path) -> Path:
    # Write through a symbolic link; replacing it would disconnect a user's dotfiles.
    return Path(os.path.realpath(path))


def _plan_file(
    plan: Callable[[Path, Sequence[HostTarget], HostEnvironment, InstallState], FileChange],
    path: Path,
    uses: Sequence[HostTarget],
    host_env: HostEnvironment,
    records: InstallState,
) -> FileChange:
    try:
        _check_within(path, uses, host_env, records)
        return plan(path, uses, host_env, records)
    except CannotEdit as error:
        return FileChange(path, _host_names(uses), record=records.get(str(path)), error=str(error))


def _check_within(path: Path, uses: Sequence[HostTarget], host_env: HostEnvironment, records: InstallState) -> None:
    """Refuse a file of a project that a link of the project puts elsewhere; a user's own files may be links."""
    if host_env.project is None or str(path) in records:
        return
    folder, resolved = host_env.project.absolute(), _resolve_links(host_env.project)
    named = any(target.path.absolute().is_relative_to(root) for _, target in uses for root in (folder, resolved))
    if named and not path.is_relative_to(resolved):
        raise CannotEdit("a link leads to it from the project; it is left unchanged")


def _plan_addition(
    reverie: Installation, path: Path, uses: Sequence[HostTarget], host_env: HostEnvironment, records: InstallState
) -> FileChange:
    before = installed_files.read(path)
    text = _decode(before)
    record = records.get(str(path))
    if (
        record is None
        or text is None
        or all(REMOVE[target.format](text, target.all_entries, None).text == text for _, target in uses)
    ):
        # The recorded file no longer exists.
        folders = _folders_of(path, records)
        record = InstalledFile(frozenset(), created=before is None, folders=folders, project=_project_name(host_env))
    is_used, is_rules = any(target.entries for _, target in uses), any(target.format == "block" for _, target in uses)
    others = record.hosts - {host for host, _ in uses}
    if is_rules and others and not is_used:
        # Another host reads the block of an earlier setup.
        return FileChange(path, _host_names(uses), before, before, record=replace(record, hosts=others))
    undo, bare = record.undo, False
    remarks: list[str] = []
    for _, target in uses:
        if target.obsolete and text is not None and not (is_rules and is_used):
            removed = REMOVE[target.format](text, target.obsolete, undo)
            text, bare = removed.text, removed.bare
        remarks.extend(target.remarks)
        if target.entries:
            edited = ADD[target.format](text, target.entries, undo)
            text, undo, bare = edited.text, edited.undo, False
            remarks.extend(edited.remarks)
    if bare and (record.created or is_rules):
        return FileChange(path, _host_names(uses), before, None, folders=record.folders, remarks=_unique(remarks))
    if host_env.project is not None and text is not None and str(reverie.bin) in text:
        remarks.append("it names programs of this machine: before you share it, put `reverie` on every user's PATH")
    record = replace(record, undo=undo, hosts=record.hosts | {host for host, _ in uses})
    after = None if text is None else text.encode()
    left = record if is_used and after is not None else None
    return FileChange(path, _host_names(uses), before, after, left, remarks=_unique(remarks))


def _plan_removal(
    path: Path, uses: Sequence[HostTarget], host_env: HostEnvironment, records: InstallState
) -> FileChange:
    before = installed_files.read(path)
    text = _decode(before)
    record = records.get(str(path))
    if record is not None and record.project != _project_name(host_env):
        record = None
    # Another host may read the file without having been connected.
    connected = frozenset() if record is None else record.hosts
    names = tuple(name for name in _host_names(uses) if not connected or name in connected)
    others = frozenset() if record is None else record.hosts - {host for host, _ in uses}
    if text is None or (others and record is not None):
        left = None if text is None or record is None else replace(record, hosts=others)
        return FileChange(path, names, before, before, record=left)
    undo = None if record is None else record.undo
    bare = False
    for _, target in reversed(uses):
        removed = REMOVE[target.format](text, target.all_entries, undo)
        text, bare = removed.text, bare or removed.bare
    made = record is not None and record.created
    is_whole = any(
        isinstance(entry, PluginFile) or (isinstance(entry, RulesBlock | HookEntry) and entry.head)
        for _, target in uses
        for entry in target.entries
    )
    if bare and (made or is_whole):
        folders = () if record is None else record.folders
        return FileChange(path, names, before, None, folders=folders)
    return FileChange(path, names, before, text.encode())


def _folders_of(path: Path, records: InstallState) -> tuple[str, ...]:
    """Return the folders that belong to a file: missing folders, and folders created for another of the files."""
    made = {folder for record in records.values() for folder in record.folders}
    missing = installed_files.list_missing_folders(path)
    return (*(str(folder) for folder in reversed(path.parents) if str(folder) in made), *missing)


def _decode(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CannotEdit("it is not UTF-8") from error


def _project_name(host_env: HostEnvironment) -> str | None:
    return None if host_env.project is None else str(_resolve_links(host_env.project))


def _host_names(uses: Sequence[HostTarget]) -> tuple[str, ...]:
    return _unique(host for host, _ in uses)


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _write(change: FileChange) -> None:
    if change.action == "none":
        return
    if change.after is None:
        installed_files.delete(change.path, change.folders)
    else:
        installed_files.write_atomically(change.path, change.after)


def _with_record(records: InstallState, path: Path, record: InstalledFile | None) -> dict[str, InstalledFile]:
    remaining = {file: other for file, other in records.items() if file != str(path)}
    return remaining if record is None else remaining | {str(path): record}


def _check_unchanged(change: FileChange) -> None:
    if installed_files.read(change.path) != change.before:
        raise CannotEdit("it changed during the setup; run the setup again")
