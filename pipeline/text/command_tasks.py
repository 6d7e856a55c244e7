"""Recognize commands by the words for their task: "lint", "deploy", "migrations"."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from pipeline.text.lexicon import load_lexicon

_WORD = re.compile(r"[a-z0-9][a-z0-9+_.-]*")
_PARTS = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Task:
    """A task: the type of its actions, or an expression for its commands."""

    type: str | None
    pattern: re.Pattern[str] | None


def read_task_words(text: str) -> list[str]:
    """Return the telling words of a question for a command; all words if none is."""
    words = [word.strip(".-") for word in _WORD.findall(text.lower().replace("type check", "typecheck"))]
    return [word for word in words if word not in _load_fillers()] or words


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


@cache
def _load_fillers() -> frozenset[str]:
    return frozenset(load_lexicon("command_tasks").table("fillers").words("words"))
