"""Recognize when a failed command succeeds later, and which actions in between may have helped."""

import re

from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.write.tool_actions import list_effective_commands, repeats_action

# Programs whose first argument names what they run.
_RUNS_SCRIPT = re.compile(
    r"(?:\S*/)?(?:python[\d.]*|node|ruby|php|perl|deno|bun|npx|uv|poetry|pipenv|bundle|sudo|java)$"
)
_CHANGE_FOLDER = re.compile(r"^\s*(?:cd|pushd) [^&;|]+(?:&&|;)\s*")
_ASSIGNED = re.compile(r"(?:^|\s)([A-Z_][A-Z0-9_]*)=")


class RepeatedCommand:
    """A failed command, whose parts may succeed one after the other."""

    def __init__(self, failure: Action) -> None:
        self._failure = failure
        self._missing = {name_command(part): _list_arguments(part) for part in _list_parts(failure)}

    def is_repeated_by(self, action: Action) -> bool:
        """Return whether a successful action completes the command: in the same words, or with other options."""
        if repeats_action(action, self._failure):
            return True
        if ActionType.EDIT in (action.type, self._failure.type) or not self._missing:
            return False
        for part in _list_parts(action):
            arguments = self._missing.get(name_command(part))
            if arguments is not None and _are_alike(arguments, _list_arguments(part)):
                del self._missing[name_command(part)]
        return not self._missing

    def is_varied_by(self, action: Action) -> bool:
        """Return whether an action does more than to repeat the command: it has other options or variables."""
        if action.target == self._failure.target or action.type is ActionType.EDIT:
            return False
        if action.type is ActionType.TEST:
            return bool(_list_options(action.target) - _list_options(self._failure.target))
        return name_step(action) != name_step(self._failure)


def is_step(action: Action, failure: Action) -> bool:
    """Return whether an action may have helped against a failure: it changes something, and is no check or commit."""
    if action.type in (ActionType.READ, ActionType.TEST):
        return False
    return action.type is not ActionType.COMMIT or "git " in failure.target


def name_step(action: Action) -> str:
    """Return a step in the form in which it is recognized in other sessions: a command without its folder."""
    return " ".join(_CHANGE_FOLDER.sub("", action.target).split())


def name_command(part: str) -> str:
    """Return a command's program and subcommand, or the script that it runs."""
    words = [word for word in part.split() if not word.startswith("-")]
    if not words:
        return ""
    count = 3 if _RUNS_SCRIPT.match(words[0]) or words[:2] == ["docker", "compose"] else 2
    return " ".join(words[:count] if len(words) > 1 and re.match(r"[\w.:/-]+$", words[1]) else words[:1])


def _list_parts(action: Action) -> list[str]:
    return list_effective_commands(action.target)


def _list_arguments(part: str) -> frozenset[str]:
    words = [word for word in part.split() if not word.startswith("-")]
    return frozenset(words) - frozenset(name_command(part).split())


def _are_alike(arguments: frozenset[str], others: frozenset[str]) -> bool:
    if not arguments or not others:
        return True
    return any(one.startswith(other) or other.startswith(one) for one in arguments for other in others)


def _list_options(target: str) -> frozenset[str]:
    return frozenset(_ASSIGNED.findall(target)) | frozenset(
        word.partition("=")[0] for word in target.split() if word.startswith("-")
    )
