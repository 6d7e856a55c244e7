"""Read a tool call that is about to run: the files that it changes, the text that it replaces, and its commands."""

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from pipeline.kernel.store.agent_sessions import ActionType
from pipeline.text.command_lines import Invocation, has_option, list_invocations, rehearses
from pipeline.text.lexicon import load_lexicon
from pipeline.write.tool_actions import (
    COMMAND_NAMES,
    PATCH_NAMES,
    cut_middle,
    does_more_than_read,
    list_guarded_calls,
)

# Longer texts are read at both ends.
MOST_TEXT = 12_000
MOST_FILES = 24
LONGEST_PATH = 400
MOST_PARTS = 40
_OLD_NAMES = ("old_string", "oldText", "old_source", "oldString")
_SUBSTITUTION = re.compile(r"s([/|#,@])((?:[^\\]|\\.){1,200}?)\1((?:[^\\]|\\.){0,200}?)\1")
_REMOVED = re.compile(r"^-(?!-- )(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class ProposedAct:
    """An edit with the text that it replaces, or a command line; paths are relative to the session's folder."""

    files: tuple[str, ...] = ()
    removed: str = ""
    line: str = ""

    @cached_property
    def invocations(self) -> tuple[Invocation, ...]:
        """Return the commands of the line that do more than read."""
        return tuple(found for found in list_invocations(self.line) if does_more_than_read(found)) if self.line else ()

    @property
    def key(self) -> str:
        """Return what the act is about: a memory is shown once for it in a session."""
        if not self.line:
            return "\n".join(self.files)
        return "\n".join(dict.fromkeys(" ".join(invocation.words[:2]) for invocation in self.invocations))


def read_act(tool: str, arguments: Mapping[str, Any], cwd: str) -> ProposedAct | None:
    """Return the act of a tool call, None if it only reads or names no target."""
    targets = [call.target for call in list_guarded_calls(tool, arguments, is_whole=True)]
    files = [target.target for target in targets if target.type is ActionType.EDIT]
    if files:
        return ProposedAct(_shorten_paths(files, cwd), cut_middle(_read_removed(arguments), MOST_TEXT))
    line = next((target.target for target in targets if target.target), "")
    if not line:
        return None
    given = next((arguments[name] for name in COMMAND_NAMES if isinstance(arguments.get(name), str)), line)
    calls = [found for found in list_invocations(cut_middle(given, MOST_TEXT)) if does_more_than_read(found)]
    replaced = [old for call in calls if call.words[0] in ("sed", "perl") for old in _list_replaced(call)]
    changed = [file for call in calls for file in _list_changed(call, cwd)]
    return ProposedAct(_shorten_paths(changed, cwd), "\n".join(replaced), line)


def _list_replaced(call: Invocation) -> Iterator[str]:
    """Yield the texts that the substitutions of a stream editor replace."""
    for word in call.words[1:]:
        for match in _SUBSTITUTION.finditer(word):
            yield match[2]


def only_shows(call: Invocation) -> bool:
    """Return whether a command only shows its help, a list, or what it would do."""
    options = load_lexicon("acts").table("words").words("asking_options")
    return rehearses(call) or any(option in call.words for option in options)


def _runs_one_of(call: Invocation, name: str) -> bool:
    for command in load_lexicon("acts").table("words").words(name):
        program, *needed = command.split()
        if call.words[0] == program and all(
            has_option(call, need) if need.startswith("-") else need in call.words for need in needed
        ):
            return True
    return False


def _read_removed(arguments: Mapping[str, Any]) -> str:
    """Return the texts that an edit replaces."""
    parts = [item for value in arguments.values() if isinstance(value, list) for item in value[:MOST_PARTS]]
    objects = [arguments, *(part for part in parts if isinstance(part, Mapping))]
    removed = [text for part in objects for text in _list_texts(part, _OLD_NAMES)]
    patches = [cut_middle(patch, MOST_TEXT) for patch in _list_texts(arguments, PATCH_NAMES)]
    return "\n".join([*removed, *(line for patch in patches for line in _REMOVED.findall(patch))])


def _list_texts(part: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    for name in names:
        value = part.get(name)
        if isinstance(value, str) and value:
            yield cut_middle(value, MOST_TEXT)


def _list_changed(invocation: Invocation, cwd: str) -> Iterator[str]:
    """Yield the files that a command changes."""
    folder = cwd
    for change in invocation.folders:
        folder = os.path.join(folder, change)  # noqa: PTH118 - never raises
    if invocation.writes:
        yield from (os.path.join(folder, file) for file in invocation.files)  # noqa: PTH118 - as above
    if _runs_one_of(invocation, "editing"):
        words = [word for word in invocation.words[1:] if not word.startswith("-")]
        yield from (os.path.join(folder, word) for word in words)  # noqa: PTH118 - as above


def _shorten_paths(files: Sequence[str], cwd: str) -> tuple[str, ...]:
    """Return paths with slashes, relative to a folder that contains them."""
    root = cwd.replace("\\", "/").rstrip("/") + "/"
    found = []
    for file in files[:MOST_FILES]:
        path = os.path.normpath(file.replace("\0", "").replace("\\", "/")[:LONGEST_PATH])
        if root != "/" and path.startswith(root):
            path = path[len(root) :]
        if path not in (".", "/") and PurePosixPath(path).name:
            found.append(path)
    return tuple(dict.fromkeys(found))
