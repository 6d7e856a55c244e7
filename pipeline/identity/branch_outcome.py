"""Find out with git what became of a branch: open, merged in any way, renamed, or deleted without a merge.

Git only reads. The number of processes per branch is fixed, and each has a deadline and a limit of output.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import IO

from pipeline.errors import InvalidField
from pipeline.identity.git import Git
from pipeline.records.branches import KnownBranch

# Limits of the comparison of commits; a larger history counts as not merged.
MAX_OWN_COMMITS, MAX_OTHER_COMMITS = 500, 5000
MAX_PATCH_BYTES = 64 * 1024 * 1024
MAX_REFLOG_ENTRIES = 2000
# Paths in one command.
MAX_PATHS = 200
_PATCH = ("-p", "--no-renames", "--full-index")
_COMMIT = b"\x01"
# The starts of reflog entries of commits that were made on the checked-out branch.
_OWN_COMMITS = ("commit", "cherry-pick", "am:", "revert")
_CHECKOUT = "checkout: moving from "
_RENAMED = "Branch: renamed refs/heads/"


class Outcome(StrEnum):
    """What became of a branch; `UNKNOWN` if git or the repository cannot be read."""

    OPEN = "open"
    MERGED = "merged"
    RENAMED = "renamed"
    DELETED = "deleted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BranchOutcome:
    """What became of a branch, its last known commit, and its new name if it was renamed.

    `is_ahead`: it has commits that its default branch does not have.
    """

    outcome: Outcome
    tip: str = ""
    is_ahead: bool = False
    new_name: str = ""


class _TooMuch(Exception):
    """A comparison would exceed its limits."""


def find_outcome(known: KnownBranch) -> BranchOutcome:
    """Find out what became of a branch."""
    if not Path(known.branch.repository).is_dir():
        return BranchOutcome(Outcome.UNKNOWN)
    try:
        return _Inspection(known).find()
    except InvalidField:
        return BranchOutcome(Outcome.UNKNOWN)


class _Inspection:
    def __init__(self, known: KnownBranch) -> None:
        self._known, self._name = known, known.branch.name
        self._git = Git(Path(known.branch.repository))

    def find(self) -> BranchOutcome:
        tip, targets = self._read_refs()
        if not targets:
            return BranchOutcome(Outcome.UNKNOWN)
        new_name = self._find_new_name() if tip is None else None
        if new_name is not None:
            return BranchOutcome(Outcome.RENAMED, new_name=new_name)
        last = tip or self._find_last_tip() or self._known.branch.head
        if last == self._known.settled:
            return BranchOutcome(Outcome.OPEN, last)
        return self._compare(last, targets, is_deleted=tip is None)

    def _compare(self, last: str, targets: Sequence[str], *, is_deleted: bool) -> BranchOutcome:
        """Compare the last commit of the branch with those of the default branch, here and on the remote."""
        is_contained = False
        for target in targets:
            base = self._find_base(target, last)
            is_contained = is_contained or base == last
            if base not in (None, last) and self._has_same_changes(str(base), target, last):
                return BranchOutcome(Outcome.MERGED, last)
        if is_contained and self._has_own_commits(last, is_deleted=is_deleted):
            return BranchOutcome(Outcome.MERGED, last)
        outcome = Outcome.DELETED if is_deleted else Outcome.OPEN
        return BranchOutcome(outcome, last, is_ahead=not (is_deleted or is_contained))

    def _read_refs(self) -> tuple[str | None, list[str]]:
        """Return the commit of the branch, here or else on the remote, and the commits of the default branch."""
        default = self._known.branch.default
        places = "refs/heads/", "refs/remotes/origin/"
        names = [f"{place}{name}" for name in (self._name, default) for place in places]
        listed = self._git.answer("for-each-ref", "--format=%(objectname) %(refname)", *names)
        commits = {ref: commit for commit, _, ref in (line.partition(" ") for line in listed.splitlines())}
        own, remote, *defaults = [commits.get(name) for name in names]
        return own or remote, list(dict.fromkeys(commit for commit in defaults if commit is not None))

    def _find_base(self, target: str, last: str) -> str | None:
        try:
            return self._git.answer("merge-base", target, last)
        except InvalidField:
            # There is no common commit, or git has deleted the branch's commits.
            return None

    def _has_same_changes(self, base: str, target: str, last: str) -> bool:
        """Return whether the default branch has the changes of the branch, by a rebase, a squash or commits picked."""
        try:
            return self._are_picked(target, last) or self._is_squashed(base, target, last)
        except _TooMuch:
            return False

    def _are_picked(self, target: str, last: str) -> bool:
        counts = self._git.answer("rev-list", "--count", "--left-right", f"{target}...{last}").split()
        if int(counts[0]) > MAX_OTHER_COMMITS or int(counts[1]) > MAX_OWN_COMMITS:
            raise _TooMuch
        compared = self._git.answer("cherry", target, last).splitlines()
        return bool(compared) and all(line.startswith("-") for line in compared)

    def _is_squashed(self, base: str, target: str, last: str) -> bool:
        changed = set(self._list_changed(base, last))
        if not changed:
            return False
        if changed.isdisjoint(self._list_changed(target, last)):
            return True
        paths = ("--", *(f":(literal){path}" for path in sorted(changed))) if len(changed) <= MAX_PATHS else ()
        own = self._hash_patches("diff-tree", *_PATCH, base, last, *paths)
        commits = ("log", "--format=%x01", "--first-parent", "--no-merges", f"--max-count={MAX_OTHER_COMMITS}")
        return bool(own) and own[0] in self._hash_patches(*commits, *_PATCH, f"{base}..{target}", *paths)

    def _list_changed(self, before: str, after: str) -> list[str]:
        return self._git.list_paths("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)[0]

    def _hash_patches(self, *arguments: str) -> list[bytes]:
        """Return a hash of the added and removed lines of each patch, wherever in the files they are."""
        with self._git.output(*arguments) as output:
            return list(_hash_each(output))

    def _has_own_commits(self, last: str, *, is_deleted: bool) -> bool:
        """Return whether commits were made on a branch that the default branch contains: a new branch has none."""
        if self._known.is_ahead:
            return True
        if not is_deleted:
            made = self._read_reflog(f"refs/heads/{self._name}")
            return any(says.startswith(_OWN_COMMITS) for commit, says in _list_until(made, self._known.settled))
        if last != self._known.branch.head:
            return True
        return self._committed_here()

    def _committed_here(self) -> bool:
        """Return whether a commit was made while the branch was checked out, as far as HEAD's log says."""
        checked_out = ""
        for _, says in reversed(self._read_reflog("HEAD")):
            if says.startswith(_CHECKOUT):
                checked_out = says.rpartition(" ")[2]
            elif checked_out == self._name and says.startswith(_OWN_COMMITS):
                return True
        return False

    def _find_last_tip(self) -> str | None:
        """Return the commit of a deleted branch when it was left last, as far as HEAD's log says."""
        entries = self._read_reflog("HEAD")
        left = f"{_CHECKOUT}{self._name} to "
        return next((before[0] for (_, says), before in pairwise(entries) if says.startswith(left)), None)

    def _find_new_name(self) -> str | None:
        """Return the name to which a branch that is gone was renamed."""
        start = f"{_RENAMED}{self._name} to refs/heads/"
        entries = self._read_reflog("--all", f"--grep-reflog=^{_RENAMED}")
        return next((says.removeprefix(start) for _, says in entries if says.startswith(start)), None)

    def _read_reflog(self, *which: str) -> list[tuple[str, str]]:
        """Return (commit, message) of the log of a reference, newest first; nothing if there is no such log."""
        try:
            listed = self._git.answer("log", "-g", f"--max-count={MAX_REFLOG_ENTRIES}", "--format=%H %gs", *which)
        except InvalidField:
            return []
        return [(commit, says) for commit, _, says in (line.partition(" ") for line in listed.splitlines())]


def _list_until(entries: Sequence[tuple[str, str]], settled: str | None) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if entry[0] == settled:
            return
        yield entry


def _hash_each(output: IO[bytes]) -> Iterator[bytes]:
    """Yield a hash for each patch that is not empty; a mark separates the patches of a stream."""
    digest, size, is_open = hashlib.blake2b(), 0, False
    for line in output:
        size += len(line)
        if size > MAX_PATCH_BYTES:
            raise _TooMuch
        if line.startswith(_COMMIT):
            if is_open:
                yield digest.digest()
            digest, is_open = hashlib.blake2b(), False
        elif line.startswith((b"+", b"-")):
            digest.update(line)
            is_open = True
    if is_open:
        yield digest.digest()
