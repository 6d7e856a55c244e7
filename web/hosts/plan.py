"""A run of the setup as a plan: what would change in which file, before anything does."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from web.hosts import block_file, files, json_file, toml_file
from web.hosts.entries import Block, Edited, Entry, Taken, Undo
from web.hosts.hosts import Host, Target
from web.hosts.ledger import Record
from web.hosts.machine import Machine, Reverie
from web.hosts.problems import CannotEdit

Records = Mapping[str, Record]
Use = tuple[str, Target]

ADD: Mapping[str, Callable[[str | None, Sequence[Entry], Undo], Edited]] = {
    "json": json_file.add,
    "toml": toml_file.add,
    "block": block_file.add,
}
REMOVE: Mapping[str, Callable[[str, Sequence[Entry], Undo | None], Taken]] = {
    "json": json_file.remove,
    "toml": toml_file.remove,
    "block": block_file.remove,
}


@dataclass(frozen=True, slots=True)
class Change:
    """What a run does to one file; `record` is what the ledger keeps of it then."""

    path: Path
    hosts: tuple[str, ...]
    before: bytes | None = None
    after: bytes | None = None
    mode: int | None = None
    record: Record | None = None
    folders: tuple[str, ...] = ()
    """Folders that go with a file that is deleted."""
    error: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def action(self) -> Literal["create", "change", "delete", "none", "error"]:
        """Return what happens to the file."""
        if self.error is not None:
            return "error"
        if self.before == self.after and self.mode is None:
            return "none"
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "change"


def plan_setup(hosts: Iterable[Host], machine: Machine, reverie: Reverie, records: Records) -> list[Change]:
    """Plan to write every host's entries."""
    uses = _by_file((host.name, target) for host in hosts for target in host.targets(machine, reverie))
    plan = partial(_added, reverie)
    return [_guarded(plan, path, used, machine, records) for path, used in uses.items()]


def plan_removal(hosts: Iterable[Host], machine: Machine, reverie: Reverie, records: Records) -> list[Change]:
    """Plan to take every host's entries out, wherever they were written."""
    # Whatever version the host has by now, an older one may have got other entries.
    machine = replace(machine, version=lambda _program: None)
    uses = _by_file(
        (host.name, target)
        for host in hosts
        for target in _with_recorded(host.name, host.targets(machine, reverie), machine, records)
    )
    return [_guarded(_removed, path, used, machine, records) for path, used in uses.items()]


def _with_recorded(host: str, targets: Sequence[Target], machine: Machine, records: Records) -> list[Target]:
    """Return the targets and the files that an earlier run chose in their place."""
    known = {_real(target.path) for target in targets}
    found = list(targets)
    for file, record in records.items():
        if host in record.hosts and record.project == _project(machine) and Path(file) not in known:
            found.extend(replace(target, path=Path(file)) for target in targets if _reads(target, Path(file)))
    return found


def _reads(target: Target, file: Path) -> bool:
    suffixes = {"json": (".json", ".jsonc"), "toml": (".toml",)}.get(target.format)
    return file.suffix not in (".json", ".jsonc", ".toml") if suffixes is None else file.suffix in suffixes


def _by_file(uses: Iterable[Use]) -> dict[Path, list[Use]]:
    found: dict[Path, list[Use]] = {}
    for host, target in uses:
        found.setdefault(_real(target.path), []).append((host, target))
    return found


def _real(path: Path) -> Path:
    # A symbolic link is written through; a replaced one would cut a user's dotfiles off.
    return Path(os.path.realpath(path))


def _guarded(
    plan: Callable[[Path, Sequence[Use], Machine, Records], Change],
    path: Path,
    uses: Sequence[Use],
    machine: Machine,
    records: Records,
) -> Change:
    try:
        return plan(path, uses, machine, records)
    except CannotEdit as error:
        return Change(path, _hosts(uses), record=records.get(str(path)), error=str(error))


def _added(reverie: Reverie, path: Path, uses: Sequence[Use], machine: Machine, records: Records) -> Change:
    before = files.read(path)
    text = _decoded(before)
    record = records.get(str(path))
    if record is None or text is None or not _holds_entries(text, uses):
        # Whatever was recorded is about a file that is no more.
        folders = _folders(path, records)
        record = Record(frozenset(), created=before is None, folders=folders, project=_project(machine))
    undo = record.undo
    remarks: list[str] = []
    for _, target in uses:
        if target.obsolete and text is not None:
            text = REMOVE[target.format](text, target.obsolete, undo).text
        remarks.extend(target.remarks)
        if target.entries:
            edited = ADD[target.format](text, target.entries, undo)
            text, undo = edited.text, edited.undo
            remarks.extend(edited.remarks)
    mode = _private_mode(path) if any(target.secret for _, target in uses) else None
    if mode is not None and before is not None:
        record = replace(record, mode=record.mode if record.mode is not None else files.mode_of(path))
        remarks.append("it holds the token now, so that only its owner may read it")
    if machine.project is not None and text is not None and str(reverie.bin) in text:
        remarks.append("it names programs of this machine: to share it, put `reverie` on everybody's PATH first")
    record = replace(record, undo=undo, hosts=record.hosts | {host for host, _ in uses})
    after = None if text is None else text.encode()
    return Change(path, _hosts(uses), before, after, mode, None if after is None else record, remarks=_once(remarks))


def _removed(path: Path, uses: Sequence[Use], machine: Machine, records: Records) -> Change:
    before = files.read(path)
    text = _decoded(before)
    record = records.get(str(path))
    if record is not None and record.project != _project(machine):
        record = None
    others = frozenset() if record is None else record.hosts - {host for host, _ in uses}
    if text is None or (others and record is not None):
        left = None if text is None or record is None else replace(record, hosts=others)
        return Change(path, _hosts(uses), before, before, record=left)
    undo = None if record is None else record.undo
    bare = False
    for _, target in reversed(uses):
        taken = REMOVE[target.format](text, target.entries, undo)
        text, bare = taken.text, bare or taken.bare
    made = record is not None and record.created
    own = any(isinstance(entry, Block) and entry.head for _, target in uses for entry in target.entries)
    if bare and (made or own):
        folders = () if record is None else record.folders
        return Change(path, _hosts(uses), before, None, folders=folders)
    mode = None if record is None else record.mode
    return Change(path, _hosts(uses), before, text.encode(), mode)


def _holds_entries(text: str, uses: Sequence[Use]) -> bool:
    return any(REMOVE[target.format](text, target.entries, None).text != text for _, target in uses)


def _folders(path: Path, records: Records) -> tuple[str, ...]:
    """Return the folders that go with a file: missing ones, and such as were made for another of the files."""
    made = {folder for record in records.values() for folder in record.folders}
    missing = files.missing_folders(path)
    return (*(str(folder) for folder in reversed(path.parents) if str(folder) in made), *missing)


def _private_mode(path: Path) -> int | None:
    """Return the permissions that a file with the token needs, None where it has them."""
    mode = files.mode_of(path)
    return files.PRIVATE if os.name == "posix" and (mode is None or mode & 0o077) else None


def _decoded(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CannotEdit("it is not UTF-8") from error


def _project(machine: Machine) -> str | None:
    return None if machine.project is None else str(_real(machine.project))


def _hosts(uses: Sequence[Use]) -> tuple[str, ...]:
    return _once(host for host, _ in uses)


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
