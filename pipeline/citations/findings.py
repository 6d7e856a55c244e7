"""The result of resolving a citation."""

from dataclasses import dataclass
from enum import StrEnum

from pipeline.text.citations import Citation

SHORT_COMMIT = 10


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
        return describe_broken(self.citation.text, self.state, self.change and self.change.commit, self.now)


def describe_broken(text: str, state: State, commit: str | None, now: str | None) -> str:
    """Return one line about a wrong citation."""
    since = f"no longer true since {commit[:SHORT_COMMIT]}" if commit else "not in the repository"
    detail = {State.RENAMED: f", now {now}", State.CHANGED: f", now {now}"}.get(state, "")
    if state is State.CHANGED and commit is None:
        return f"{text}: the repository has {now}"
    return f"{text}: {since}{detail}"
