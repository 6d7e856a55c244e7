"""Find the command that works for a tool or a task: recent successes, without commands that have failed since."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from sqlite3 import Connection

from pipeline.kernel.store import action_history
from pipeline.kernel.store.action_history import CommandCount
from pipeline.kernel.store.agent_sessions import ActionType, JournalRow
from pipeline.kernel.times import parse, utc_now
from pipeline.sessions.failed_commands import name_command
from pipeline.text.lexicon import load_lexicon, word_set
from pipeline.write.tool_actions import list_effective_commands

# The newest different commands that are compared.
COMPARED = 4000
HALF_LIFE_DAYS = 30
# A command that failed so often since its last success no longer works.
FAILURES = 2
# Failures of tests are results, unless the test program itself could not run.
_NOT_RUN = re.compile(r"not found|unrecognized|unknown|missing script|usage|no such|no module named|invalid option")
NOT_RUN_CODES = frozenset({126, 127})
# An argument that names what the command is applied to: a file, a number, a test.
_APPLIED = re.compile(r"[\w.@~-]*[/\\:][\w./\\:@*\[\]-]*|[\w-]+\.\w{1,5}|\d+|\"\"|\.")
_WORD = re.compile(r"[a-z0-9][a-z0-9+_.-]*")
_PARTS = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command that works: how often it and its variants succeeded, and when and where last."""

    command: str
    type: ActionType
    successes: int
    last_at: str
    session_id: str


def find_invocations(db: Connection, about: str, person: str | None, limit: int) -> list[Invocation]:
    """List the commands for a tool or a task, the most recent and most frequent first."""
    words = read_task_words(about)
    groups: dict[str, list[CommandCount]] = defaultdict(list)
    for command in action_history.list_commands(db, person, COMPARED):
        # Quoted texts, such as the message of a commit, are no part of a command.
        plain = " && ".join(list_effective_commands(command.target))
        if words and all(matches_word(plain, command.type, word) for word in words):
            groups[_name_group(command, words)].append(command)
    newest = parse(max((command.last_at for group in groups.values() for command in group), default=utc_now()))
    ranked = sorted(groups.values(), key=lambda group: _score(group, newest), reverse=True)
    working = (_choose(db, group, person) for group in ranked)
    return [invocation for invocation in working if invocation is not None][:limit]


def _name_group(command: CommandCount, words: Iterable[str]) -> str:
    """Return a command without what it is applied to, so that its variants count together."""
    parts = list_effective_commands(command.target)
    named = [part for part in parts if any(matches_word(part, command.type, word) for word in words)] or parts
    return " && ".join(
        f"{name_command(part)} {' '.join(sorted(word for word in part.split()[1:] if not _APPLIED.fullmatch(word)))}"
        for part in named
    )


def _score(group: Sequence[CommandCount], newest: datetime) -> float:
    successes = sum(command.successes for command in group)
    age = min((newest - parse(command.last_at)).total_seconds() for command in group) / 86400
    return math.log2(1 + successes) * math.pow(0.5, age / HALF_LIFE_DAYS)


def _choose(db: Connection, group: Sequence[CommandCount], person: str | None) -> Invocation | None:
    """Return a group's most frequent command that still works."""
    for command in sorted(group, key=lambda one: (one.successes, one.last_at), reverse=True):
        failures = action_history.list_failures_since(db, command, person)
        if sum(_is_broken(failure) for failure in failures) < FAILURES:
            last = max(group, key=lambda one: one.last_at)
            session = action_history.find_session(db, command.last_seq)
            total = sum(one.successes for one in group)
            return Invocation(command.target, command.type, total, last.last_at, session)
    return None


def _is_broken(failure: JournalRow) -> bool:
    if failure.type is not ActionType.TEST:
        return True
    says = failure.error_signature or ""
    return failure.exit_code in NOT_RUN_CODES or _NOT_RUN.search(says) is not None


@dataclass(frozen=True, slots=True)
class Task:
    """A task: the type of its actions, or an expression for its commands."""

    type: str | None
    pattern: re.Pattern[str] | None


def read_task_words(text: str) -> list[str]:
    """Return the telling words of a question for a command; all words if none is."""
    words = [word.strip(".-") for word in _WORD.findall(text.lower().replace("type check", "typecheck"))]
    return [word for word in words if word not in word_set("command_tasks.fillers", "words")] or words


def matches_word(command: str, command_type: str, word: str) -> bool:
    """Return whether a word names a command's program or one of its arguments, or its task."""
    lowered = command.lower()
    if word in _PARTS.findall(lowered) or word in _WORD.findall(lowered):
        return True
    task = _load_tasks().get(word)
    if task is None:
        return False
    return task.type == command_type or (task.pattern is not None and task.pattern.search(lowered) is not None)


@cache
def _load_tasks() -> Mapping[str, Task]:
    tasks: dict[str, Task] = {}
    for entry in load_lexicon("command_tasks").entries["task"]:
        pattern = "|".join(entry.get("patterns", ()))
        task = Task(entry.get("type"), re.compile(pattern) if pattern else None)
        tasks |= dict.fromkeys(entry["words"].split(), task)
    return tasks
