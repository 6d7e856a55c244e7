"""The result of resolving a citation."""

import re
from dataclasses import dataclass
from enum import StrEnum

from pipeline.features.citations.parser import Citation, CitationKind

SHORT_COMMIT = 10
# Names, paths and numbers: text without spaces.
_PLAIN = re.compile(r"[\w./+-]{1,120}")


class State(StrEnum):
    """Whether a citation holds. `unknown` means that nothing proves that it is wrong."""

    HOLDS = "holds"
    GONE = "gone"
    RENAMED = "renamed"
    CHANGED = "changed"
    DANGLING = "dangling"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Change:
    """A commit that ended something, its date, and the new name or value if there is one."""

    commit: str
    date: str
    now: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A citation, its state, the commit since which it is wrong, and what replaced it."""

    citation: Citation
    state: State
    change: Change | None = None
    now: str | None = None

    @property
    def is_broken(self) -> bool:
        """Return whether the citation is surely wrong."""
        return self.state not in (State.HOLDS, State.UNKNOWN)

    def describe(self) -> str:
        """Return what is wrong, and since when."""
        # Values are free text, which must not stand in a prompt without quotation marks.
        text = self.citation.name if self.citation.kind is CitationKind.CONSTANT else self.citation.text
        now = f", now {self.now}" if self.now is not None and _PLAIN.fullmatch(self.now) else ""
        if self.change is not None:
            return f"{text}: no longer true since {self.change.commit[:SHORT_COMMIT]}{now}"
        return f"{text}: {'another value' if self.state is State.CHANGED else 'not'} in the repository{now}"
