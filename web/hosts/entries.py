"""What Reverie adds to a host's file, apart from how the file is written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.errors import ReverieError

Recogniser = Callable[[Any], bool]
KeyPath = tuple[str, ...]


class CannotEdit(ReverieError):
    """Say why a file cannot be changed safely; it is left as it is."""


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member of a JSON object; `is_ours` tells Reverie's own from what another gave the same name."""

    place: KeyPath
    key: str
    value: Mapping[str, Any]
    is_ours: Recogniser


@dataclass(frozen=True, slots=True)
class HookEntry:
    """A handler of a Claude Code event, in a group of its own in the event's array."""

    event: str
    handler: Mapping[str, Any]
    is_ours: Recogniser

    @property
    def place(self) -> KeyPath:
        """Return where the event's groups stand."""
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
    """A marked block in a text; `head` begins a file that is made for it."""

    body: str
    head: str = ""


HostEntry = JsonMember | HookEntry | TomlKey | TomlTable | RulesBlock


@dataclass(frozen=True, slots=True)
class EntryUndo:
    """What the text alone cannot tell when entries are taken out again."""

    created: frozenset[KeyPath] = frozenset()
    """Containers that were made for entries."""
    inside: Mapping[KeyPath, str] = field(default_factory=dict)
    """What stood between the brackets of containers that were empty."""
    blank: str | None = None
    """The whole text, where it held nothing."""

    def also(self, place: KeyPath, text: str) -> "EntryUndo":
        """Note an empty container that gets its first child; one that was just made is known already."""
        known = place in self.created or place in self.inside
        return self if known else replace(self, inside={**self.inside, place: text})

    def to_json(self) -> dict[str, Any]:
        """Return the record for a JSON file."""
        return {
            "created": sorted(list(place) for place in self.created),
            "inside": [[list(place), text] for place, text in sorted(self.inside.items())],
            "blank": self.blank,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "EntryUndo":
        """Read a record of `to_json`."""
        return EntryUndo(
            frozenset(tuple(place) for place in value["created"]),
            {tuple(place): text for place, text in value["inside"]},
            value["blank"],
        )


@dataclass(frozen=True, slots=True)
class AddedEntries:
    """A text with entries added, how to take them out again, and what the user should know."""

    text: str
    undo: EntryUndo
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedEntries:
    """A text with entries taken out; `bare` says that nothing else is in it."""

    text: str
    bare: bool


def drop_own(value: Any, path: KeyPath, is_ours: Recogniser) -> None:
    """Drop what is Reverie's under a path of keys, and the containers above it that are empty then."""
    if not isinstance(value, dict) or path[0] not in value:
        return
    if len(path) > 1:
        drop_own(value[path[0]], path[1:], is_ours)
        if not value[path[0]]:
            del value[path[0]]
    elif is_ours(value[path[0]]):
        del value[path[0]]
