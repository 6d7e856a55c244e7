"""What happened here before: commands that failed, with the remedy that worked, and edits that were taken back."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from sqlite3 import Connection

from pipeline.features.acts import store
from pipeline.features.lessons.command_rules import list_environments
from pipeline.features.obedience.acts import Act
from pipeline.kernel.store.agent_sessions import Action, ActionType, JournalRow
from pipeline.kernel.times import local_date
from pipeline.sessions.failed_commands import name_step
from pipeline.sessions.remedies import Remedy, find_known_remedy
from pipeline.text.command_lines import Invocation, asks_help, list_arguments, list_invocations, rehearses
from pipeline.text.lexicon import load_lexicon
from pipeline.text.normalize import shorten
from pipeline.text.quoting import quote
from pipeline.write.tool_actions import does_more_than_read, list_effective_commands

# Failures of one command that are looked at, the newest first, and different errors of a command.
MOST_FAILURES = 12
MOST_ERRORS = 3
# Failures and edits that are kept of each command and file.
KEPT_EACH = 40
# A file whose edits were taken back so often is worth a word.
LEAST_REVERTS = 2
ERROR_CHARS = 90
# Package managers, whose scripts have the names of programs.
RUNS = ("npm", "pnpm", "yarn", "bun")
_TEST_FILE = re.compile(r"\btest_\w+\.[a-z]{1,4}\b")
_EXECUTES = frozenset(("exec", "dlx", "x"))
COMMAND_CHARS = 90
STEP_CHARS = 90


@dataclass(frozen=True, slots=True)
class PastEvent:
    """A line about the past, and what it is about: the same event is shown once in a session."""

    source: str
    about: str
    text: str

    @property
    def key(self) -> str:
        """Return what the line is about."""
        return f"{self.source} {self.about}"


class History:
    """The failures and the reverted files of a workspace, by what an act names; read from the journal as it grows."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        # The number and the time of the last action that was read.
        self._last = (0, "")
        self._failures: dict[str, list[int]] = defaultdict(list)
        self._reverts: dict[str, list[tuple[int, str, tuple[str, ...]]]] = defaultdict(list)
        # The files that each session edited since its last commit, and those of its last commit.
        self._edited: dict[str, dict[str, list[str]]] = defaultdict(dict)
        self._committed: dict[str, dict[str, list[str]]] = {}

    def count_waiting(self, db: Connection) -> int:
        """Return about how many actions the next call of `refresh` reads."""
        last, _ = store.last_action(db)
        return last - self._last[0] if self._is_continued(db) else last

    def refresh(self, db: Connection) -> None:
        """Read the actions since the last call; all of them, if the last one that was read is deleted."""
        if not self._is_continued(db):
            self._clear()
        last = store.last_action(db)
        if last == self._last:
            return
        for action in store.list_new_actions(db, self._last[0]):
            self._add(action)
        self._last = last

    def _is_continued(self, db: Connection) -> bool:
        return self._last == (0, "") or store.is_action(db, *self._last)

    def _add(self, action: JournalRow) -> None:
        edited = self._edited[action.session_id]
        if not action.ok:
            if action.type is not ActionType.EDIT and action.error:
                for call in list_runs(action.target):
                    self._failures[_name(call)].append(action.seq)
                    del self._failures[_name(call)][:-KEPT_EACH]
            return
        if action.type is ActionType.EDIT:
            edited[action.target] = [*edited.get(action.target, ()), action.replaced_hash or ""][-KEPT_EACH:]
            return
        for file in self._list_reverted(action):
            name = PurePosixPath(file).name
            replaced = [mark for one in list(edited) if _is_same(one, file) for mark in edited.pop(one)]
            replaced += [
                mark
                for one, marks in self._committed.get(action.session_id, {}).items()
                if _is_same(one, file)
                for mark in marks
            ]
            self._reverts[name].append((action.seq, file, tuple(replaced)))
            del self._reverts[name][:-KEPT_EACH]
        if action.type is ActionType.COMMIT:
            self._committed[action.session_id], self._edited[action.session_id] = edited, {}

    def _list_reverted(self, action: JournalRow) -> Iterator[str]:
        """Yield the files whose edits a command takes back."""
        edited = self._edited[action.session_id]
        for invocation in list_invocations(action.target):
            verb = " ".join(invocation.words[:2])
            if verb not in load_lexicon("acts").table("words").words("reverting"):
                continue
            words = [word for word in invocation.words[2:] if not word.startswith("-")]
            if verb == "git revert":
                yield from list(self._committed.get(action.session_id) or edited)
            elif verb == "git reset" and "--hard" not in invocation.words:
                continue
            elif verb in ("git reset", "git stash") or "." in words:
                yield from list(edited)
            else:
                yield from (word for word in words if "." in PurePosixPath(word).name or "/" in word)

    def list_past(self, db: Connection, act: Act, did: Sequence[Action], person: str | None) -> Iterator[PastEvent]:
        """Yield what happened before when this was done."""
        if act.line:
            yield from self._list_failures(db, act, did, person)
        yield from self._list_reverts(db, act, person)

    def _list_failures(
        self, db: Connection, act: Act, did: Sequence[Action], person: str | None
    ) -> Iterator[PastEvent]:
        calls = [call for call in list_runs(act.line) if not rehearses(call)]
        seqs = {seq for call in calls for seq in self._failures.get(_name(call), [])[-MOST_FAILURES:]}
        if not seqs:
            return
        signatures: set[str] = set()
        for failure in store.list_visible(db, seqs, person):
            if failure.error_signature is None or failure.error_signature in signatures:
                continue
            if len(signatures) >= MOST_ERRORS:
                return
            if not any(_repeats(call, failure) for call in calls):
                continue
            signatures.add(failure.error_signature)
            remedy = find_known_remedy(db, failure.error_signature, person)
            if remedy is not None and _would_help(remedy, act, did):
                steps = [step for step in remedy.steps if step.type is not ActionType.EDIT]
                helped = ", then ".join(quote(shorten(step.target, STEP_CHARS)) for step in steps[-2:])
                yield PastEvent(
                    "failure", failure.error_signature, _describe_failure(failure, f" It worked with {helped}.")
                )

    def _list_reverts(self, db: Connection, act: Act, person: str | None) -> Iterator[PastEvent]:
        replaced = _hash(act.removed) if act.removed else ""
        for file in act.changed_files:
            near = [entry for entry in self._reverts.get(PurePosixPath(file).name, []) if _is_same(entry[1], file)]
            if len(near) < LEAST_REVERTS or not any(replaced in marks for _, _, marks in near):
                continue
            rows = store.list_visible(db, {seq for seq, _, _ in near}, person)
            if len(rows) >= LEAST_REVERTS:
                times = "twice" if len(rows) == LEAST_REVERTS else f"{len(rows)} times"
                last = f"last on {local_date(rows[0].at)} with {quote(shorten(rows[0].target, COMMAND_CHARS))}"
                yield PastEvent("reverts", file, f"Edits of {quote(file)} were taken back {times} ({last}).")


def _describe_failure(failure: JournalRow, helped: str) -> str:
    error = quote(shorten((failure.error or "").split("\n")[0], ERROR_CHARS))
    command = quote(shorten(failure.target, COMMAND_CHARS))
    return f"Failed here before ({local_date(failure.at)}): {command}: {error}.{helped}"


def list_runs(line: str) -> list[Invocation]:
    """Return the commands of a line; a script of a package manager keeps the words before it."""
    runs: list[Invocation] = []
    before: tuple[str, ...] = ()
    for call in list_invocations(line):
        if call.is_wrapper:
            before = call.words if call.words[0] in RUNS and not _EXECUTES & set(call.words) else ()
        elif does_more_than_read(call) and not asks_help(call):
            runs.append(replace(call, words=before) if before else call)
            before = ()
    return runs


def _name(call: Invocation) -> str:
    """Return the program and the subcommand of a command."""
    arguments = [word for word, may_be_value in list_arguments(call) if not may_be_value]
    verb = next((word for word in arguments[:1] if re.fullmatch(r"[a-z][\w:-]*", word)), "")
    return f"{call.words[0]} {verb}"


def _repeats(call: Invocation, failure: JournalRow) -> bool:
    """Return whether a command is the one that failed: the same program and verb, and no other test file."""
    tests = frozenset(_TEST_FILE.findall(failure.error or ""))
    now = _list_values(call)
    files = {PurePosixPath(word).name for word in now if "." in PurePosixPath(word).name}
    if tests and files and tests.isdisjoint(files):
        return False
    name = _name(call)
    earlier = [_list_values(other) for other in list_runs(failure.target) if _name(other) == name]
    return any(
        not before
        or not now
        or name.endswith(" ")
        or any(a.startswith(b) or b.startswith(a) for a in before for b in now)
        for before in earlier
    )


def _list_values(call: Invocation) -> frozenset[str]:
    return frozenset(word for word in call.words[1:] if not word.startswith("-")) - frozenset(_name(call).split())


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _would_help(remedy: Remedy, act: Act, did: Sequence[Action]) -> bool:
    """Return whether a remedy is more than an edit, and neither the act nor the session has done it."""
    done = {name_step(action) for action in did if action.ok} | set(list_effective_commands(act.line))
    steps = [step for step in remedy.steps if step.type is not ActionType.EDIT]
    words = set(act.line.split())
    named = list_environments(remedy.failure.target)
    if named and (now := list_environments(act.line)) and named.isdisjoint(now):
        return False
    for step in steps:
        changed = set(step.target.split()) - set(remedy.failure.target.split())
        if name_step(step) in done or (changed and changed <= words):
            return False
    return bool(steps)


def _is_same(one: str, other: str) -> bool:
    first, second = f"/{re.sub(r'^[./]+', '', one)}", f"/{re.sub(r'^[./]+', '', other)}"
    return first.endswith(second) or second.endswith(first)
