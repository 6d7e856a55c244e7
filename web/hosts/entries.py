"""Describe Reverie's entries in a host's file, independently of the file format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.kernel.errors import ReverieError

Recogniser = Callable[[Any], bool]
KeyPath = tuple[str, ...]


class CannotEdit(ReverieError):
    """Report why a file cannot be edited safely; the file stays unchanged."""


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member of a JSON object; `is_ours` distinguishes Reverie's entry from another entry of the same name."""

    place: KeyPath
    key: str
    value: Mapping[str, Any]
    is_ours: Recogniser


@dataclass(frozen=True, slots=True)
class NamedHooks(JsonMember):
    """The handlers of all events under one name."""


@dataclass(frozen=True, slots=True)
class HookEntry:
    """A handler of an event, in its own group of the event's array; `head` starts a file that is created for it."""

    event: str
    handler: Mapping[str, Any]
    is_ours: Recogniser
    is_flat: bool = False
    """The array contains handlers instead of groups of handlers."""
    head: str = ""

    @property
    def place(self) -> KeyPath:
        """Return the key path of the event's groups."""
        return ("hooks", self.event)


@dataclass(frozen=True, slots=True)
class TomlKey:
    """A top-level key of a TOML file."""

    name: str
    value: Any
    is_ours: Recogniser

    @property
    def place(self) -> KeyPath:
        """Return the key as a path."""
        return (self.name,)


@dataclass(frozen=True, slots=True)
class TomlTable:
    """A table of a TOML file."""

    place: KeyPath
    value: Mapping[str, Any]
    is_ours: Recogniser


@dataclass(frozen=True, slots=True)
class RulesBlock:
    """A marked block in a text; `head` starts a file that is created for the block."""

    body: str
    head: str = ""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A file of a host's plugin, which contains nothing else."""

    body: str


HostEntry = JsonMember | HookEntry | TomlKey | TomlTable | RulesBlock | PluginFile


@dataclass(frozen=True, slots=True)
class EntryUndo:
    """Information for removing entries that the text alone does not contain."""

    created: frozenset[KeyPath] = frozenset()
    """Containers that were created for entries."""
    inside: Mapping[KeyPath, str] = field(default_factory=dict)
    """Text between the brackets of containers that were empty."""
    blank: str | None = None
    """The original text, if it contained no value."""

    def also(self, path: KeyPath, text: str) -> "EntryUndo":
        """Record an empty container that gets its first child, unless it was just created."""
        is_recorded = path in self.created or path in self.inside
        return self if is_recorded else replace(self, inside={**self.inside, path: text})

    def to_json(self) -> dict[str, Any]:
        """Return the record for a JSON file."""
        return {
            "created": sorted(list(path) for path in self.created),
            "inside": [[list(path), text] for path, text in sorted(self.inside.items())],
            "blank": self.blank,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "EntryUndo":
        """Read a record of `to_json`."""
        return EntryUndo(
            frozenset(tuple(path) for path in value["created"]),
            {tuple(path): text for path, text in value["inside"]},
            value["blank"],
        )


@dataclass(frozen=True, slots=True)
class AddedEntries:
    """A text with added entries, the information for removing them, and remarks for the user."""

    text: str
    undo: EntryUndo
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedEntries:
    """A text without the entries; `bare` says that it contains nothing else."""

    text: str
    bare: bool


def drop_entry(value: Any, path: KeyPath, is_ours: Recogniser) -> None:
    """Drop Reverie's entry under a path of keys, and containers above it that become empty."""
    if not isinstance(value, dict) or path[0] not in value:
        return
    if len(path) > 1:
        drop_entry(value[path[0]], path[1:], is_ours)
        if not value[path[0]]:
            del value[path[0]]
    elif is_ours(value[path[0]]):
        del value[path[0]]
