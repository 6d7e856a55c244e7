"""A model of a disk that loses power: what is certain to be on it, and what may or may not be.

Written data is certain after `fsync` of its file. A name is certain after `fsync` of its folder. Everything else may be
lost: any part of the data, by sectors, and any of the names. Two kinds of file systems are modelled: those with a
journal, on which names change in the order of the calls, and those that write each folder by itself.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.power.recording import Record

SECTOR = 512
# Locks and sockets have no content that could be lost.
_IGNORED = (".lock", ".opening")


@dataclass(slots=True, eq=False)
class File:
    """A file's certain content, and the changes since: (offset, data), or (size, None) for another length."""

    certain: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    # The number of the last change of names that created or renamed it.
    named_at: int = 0

    def settle(self) -> None:
        """Make everything certain."""
        for change in self.pending:
            _apply(self.certain, change)
        self.pending.clear()


@dataclass(slots=True, eq=False)
class Folder:
    """A folder's entries as programs see them, the certain ones, and the changes between: (number, name, node)."""

    live: "dict[str, File | Folder]" = field(default_factory=dict)
    certain: "dict[str, File | Folder]" = field(default_factory=dict)
    pending: "list[tuple[int, dict[str, File | Folder | None]]]" = field(default_factory=list)
    named_at: int = 0

    def change(self, number: int, entries: "dict[str, File | Folder | None]") -> None:
        """Change entries together."""
        _rename(self.live, entries)
        self.pending.append((number, entries))

    def settle(self, through: int) -> None:
        """Make the changes up to a number certain."""
        kept = []
        for number, entries in self.pending:
            if number <= through:
                _rename(self.certain, entries)
            else:
                kept.append((number, entries))
        self.pending = kept


def _apply(content: bytearray, change: tuple[int, bytes | None]) -> None:
    offset, data = change
    if data is None:
        if offset < len(content):
            del content[offset:]
        else:
            content.extend(bytes(offset - len(content)))
        return
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _rename(names: "dict[str, File | Folder]", entries: "dict[str, File | Folder | None]") -> None:
    for name, node in entries.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Disk:
    """The disk below a folder, fed with records. `is_journaled` chooses the kind of file system."""

    def __init__(self, *, is_journaled: bool) -> None:
        self.root = Folder()
        self.is_journaled = is_journaled
        self._files: dict[int, File] = {}
        self._number = 0

    def take(self, record: Record) -> None:
        """Apply a record."""
        self._number += 1
        match record.kind:
            case "W":
                self._file(record).pending.append((record.offset, record.data))
            case "T" | "G":
                self._file(record).pending.append((record.offset, None))
            case "C":
                file = self._files[record.inode] = File(named_at=self._number)
                self._change(record.path, file)
            case "D":
                self._change(record.path, Folder(named_at=self._number))
            case "U":
                self._change(record.path, None)
            case "L":
                self._change(record.other, self._find(record.path))
            case "R":
                self._move(record)
            case "S":
                self._sync(record)
            case "A":
                self._sync_all(self.root)

    def _file(self, record: Record) -> File:
        return self._files[record.inode]

    def _find(self, path: str) -> File | Folder:
        node: File | Folder = self.root
        for part in path.split("/") if path else ():
            assert isinstance(node, Folder)
            node = node.live[part]
        return node

    def _parent(self, path: str) -> tuple[Folder, str]:
        above, _, name = path.rpartition("/")
        folder = self._find(above)
        assert isinstance(folder, Folder)
        return folder, name

    def _change(self, path: str, node: File | Folder | None) -> None:
        folder, name = self._parent(path)
        folder.change(self._number, {name: node})

    def _move(self, record: Record) -> None:
        node = self._find(record.path)
        node.named_at = self._number
        (source, old), (target, new) = self._parent(record.path), self._parent(record.other)
        if source is target:
            source.change(self._number, {old: None, new: node})
        else:
            target.change(self._number, {new: node})
            source.change(self._number, {old: None})

    def _sync(self, record: Record) -> None:
        known = self._files.get(record.inode)
        node: File | Folder = known if known is not None else self._find(record.path)
        if isinstance(node, File):
            node.settle()
            reached = node.named_at
        else:
            reached = max((number for number, _ in node.pending), default=0)
            node.settle(self._number)
        if self.is_journaled:
            # The journal is written in order, also for other folders.
            self._settle_names(self.root, reached)

    def _settle_names(self, folder: Folder, through: int) -> None:
        for node in {id(node): node for names in (folder.live, folder.certain) for node in names.values()}.values():
            if isinstance(node, Folder):
                self._settle_names(node, through)
        folder.settle(through)

    def _sync_all(self, folder: Folder) -> None:
        for node in {id(node): node for names in (folder.live, folder.certain) for node in names.values()}.values():
            if isinstance(node, Folder):
                self._sync_all(node)
            else:
                node.settle()
        folder.settle(self._number)

    def settle_all(self) -> None:
        """Make everything certain."""
        self._sync_all(self.root)

    def write_live(self, target: Path) -> None:
        """Write what programs see."""
        self._write(self.root, target, None, 0, "all")

    def write_crashed(self, target: Path, rng: random.Random) -> str:
        """Write what a loss of power leaves; return how it was chosen."""
        data = rng.choice(("none", "all", "some", "some", "prefix"))
        names = rng.choice(("none", "all", "some", "some"))
        last = rng.randint(0, self._number) if names == "some" else self._number if names == "all" else 0
        self._write(self.root, target, rng, last, data, names)
        return f"data {data}, names {names}, {'journaled' if self.is_journaled else 'unordered'}"

    def _write(
        self, folder: Folder, target: Path, rng: random.Random | None, last: int, data: str, names: str = "all"
    ) -> None:
        target.mkdir(mode=0o700, exist_ok=True)
        for name, node in self._entries(folder, rng, last, names):
            if isinstance(node, Folder):
                self._write(node, target / name, rng, last, data, names)
            else:
                (target / name).write_bytes(_leave(node, rng, data))

    def _entries(
        self, folder: Folder, rng: random.Random | None, last: int, names: str
    ) -> "Iterator[tuple[str, File | Folder]]":
        if rng is None:
            return iter(folder.live.items())
        left = dict(folder.certain)
        for number, entries in folder.pending:
            if number <= last if self.is_journaled or names != "some" else rng.random() < 0.5:
                _rename(left, entries)
        return iter(left.items())


def _leave(file: File, rng: random.Random | None, data: str) -> bytes:
    content = bytearray(file.certain)
    if data == "all" or rng is None:
        chosen = list(file.pending)
    elif data == "none":
        chosen = []
    elif data == "prefix":
        chosen = file.pending[: rng.randint(0, len(file.pending))]
        if chosen:
            chosen[-1:] = _tear(chosen[-1], rng)
    else:
        share = rng.random()
        chosen = [part for change in file.pending for part in _tear(change, rng) if rng.random() < share]
    for change in chosen:
        _apply(content, change)
    return bytes(content)


def _tear(change: tuple[int, bytes | None], rng: random.Random) -> list[tuple[int, bytes | None]]:
    """Return some of the sectors of a write, in one or two stretches."""
    offset, data = change
    if data is None or len(data) <= SECTOR - offset % SECTOR:
        return [change]
    cut = min(len(data), SECTOR - offset % SECTOR + SECTOR * rng.randint(0, len(data) // SECTOR))
    parts: list[tuple[int, bytes | None]] = [(offset, data[:cut])]
    if cut < len(data):
        parts.append((offset + cut, data[cut:]))
    return rng.choice((parts, parts[:1], parts[1:] or parts))
