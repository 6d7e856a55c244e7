"""Git branches of sessions: the branch that is checked out, and what is known about a branch that has memories."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SideBranch:
    """A branch other than the default one that is checked out in a folder.

    `repository` is the git directory that all worktrees share, `default` the name of the default branch, `head` the
    commit that is checked out.
    """

    name: str
    repository: str
    default: str
    head: str


@dataclass(frozen=True, slots=True)
class KnownBranch:
    """A branch that has memories: where it was checked out last, and what the branches job found about it.

    `is_ahead`: it was seen with commits that its default branch does not have. `settled` is the commit at which it was
    merged or deleted; None while it is open.
    """

    branch: SideBranch
    is_ahead: bool = False
    settled: str | None = None
