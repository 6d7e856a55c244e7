"""What a data directory must contain by its acknowledgements: dictionaries of memories, facts and purged texts."""

from copy import deepcopy
from dataclasses import dataclass, field

WORKSPACES = ("default", "other")


@dataclass(slots=True)
class Known:
    """A memory: its texts by a word that no other text contains, the current one last, and whether it is archived.

    `text_at` and `state_at` are the steps at which its text and its state were set. A copy has the texts of its
    original, so all share the first word.
    """

    texts: dict[str, str]
    text_at: int
    state_at: int
    is_archived: bool = False

    @property
    def origin(self) -> str:
        """Return the word that its copies share."""
        return next(iter(self.texts))

    @property
    def word(self) -> str:
        """Return the word of the current text."""
        return list(self.texts)[-1]

    @property
    def content(self) -> str:
        """Return the current text."""
        return self.texts[self.word]


@dataclass(slots=True)
class WorkspaceModel:
    """The memories of a workspace by id, and the values of each fact by step, the current one last."""

    memories: dict[str, Known] = field(default_factory=dict)
    facts: dict[str, dict[int, str]] = field(default_factory=dict)

    def list_contents(self, *, archived: bool) -> dict[str, str]:
        """Return the texts of the active or of the archived memories, by id."""
        return {memory_id: one.content for memory_id, one in self.memories.items() if one.is_archived is archived}

    def drop(self, origins: "set[str] | dict[str, dict[str, str]]") -> None:
        """Remove memories and their copies."""
        self.memories = {name: one for name, one in self.memories.items() if one.origin not in origins}

    def merge(self, other: "WorkspaceModel") -> None:
        """Add what another machine knows: the later text, the later state, and all values of facts."""
        for memory_id, theirs in other.memories.items():
            mine = self.memories.setdefault(memory_id, deepcopy(theirs))
            if theirs.text_at > mine.text_at:
                mine.texts, mine.text_at = dict(theirs.texts), theirs.text_at
            if theirs.state_at > mine.state_at:
                mine.is_archived, mine.state_at = theirs.is_archived, theirs.state_at
        for key, values in other.facts.items():
            self.facts[key] = dict(sorted({**self.facts.get(key, {}), **values}.items()))


@dataclass(slots=True)
class Model:
    """A data directory: its workspaces, its snapshots by workspace and name, and purged texts by first word."""

    workspaces: dict[str, WorkspaceModel] = field(
        default_factory=lambda: {name: WorkspaceModel() for name in WORKSPACES}
    )
    snapshots: dict[tuple[str, str], WorkspaceModel] = field(default_factory=dict)
    purged: dict[str, dict[str, str]] = field(default_factory=dict)
    # The texts that were here when they were purged: no agent may store them again, in any workspace. If another
    # machine purged them, a worker has to mark them first.
    refused: set[str] = field(default_factory=set)
    refused_later: set[str] = field(default_factory=set)

    def list_spaces(self) -> list[WorkspaceModel]:
        """List the workspaces, also as they are in snapshots."""
        return [*self.workspaces.values(), *self.snapshots.values()]

    def purge(self, origin: str, *, is_own: bool = True) -> None:
        """Remove a memory, its copies and its earlier states."""
        texts = self.purged.setdefault(origin, {})
        known = [one for space in self.workspaces.values() for one in space.memories.values() if one.origin == origin]
        refused = self.refused if is_own else self.refused_later
        refused |= {text for one in known for text in one.texts.values()}
        for space in self.list_spaces():
            for one in space.memories.values():
                if one.origin == origin:
                    texts |= one.texts
            space.drop({origin})

    def merge(self, other: "Model") -> None:
        """Add what another machine knows; purge what it purged."""
        for name, space in self.workspaces.items():
            space.merge(other.workspaces[name])
        for origin, texts in other.purged.items():
            self.purge(origin, is_own=False)
            self.purged[origin] |= texts
        for space in self.list_spaces():
            space.drop(self.purged)

    def list_texts(self) -> dict[str, str]:
        """Return every text of every memory by its word."""
        known = [one for space in self.list_spaces() for one in space.memories.values()]
        return {word: text for one in known for word, text in one.texts.items()}
