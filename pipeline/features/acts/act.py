"""Read a tool call that is about to run: the files that it changes, the code that it writes, and its commands."""

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from pipeline.kernel.store.agent_sessions import ActionType
from pipeline.text.command_lines import Invocation, has_option, list_invocations, rehearses
from pipeline.text.lexicon import load_lexicon, word_set
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
# Words of a long text that are looked up.
MOST_WORDS = 1500
_CODE_WORD = re.compile(r"[^\W\d]\w{1,80}")
_NEW_NAMES = ("new_string", "newText", "content", "new_source", "text", "newString", "file_text")
_OLD_NAMES = ("old_string", "oldText", "old_source", "oldString")
_SUBSTITUTION = re.compile(r"s([/|#,@])((?:[^\\]|\\.){1,200}?)\1((?:[^\\]|\\.){0,200}?)\1")
_PATCHED = re.compile(r"^([+-])(?![+-]{2} )(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class ProposedAct:
    """An edit with its text before and after, or a command line; paths are relative to the session's folder.

    `raw` is the command line with its here-documents. `is_new`: the act writes a whole file.
    """

    files: tuple[str, ...] = ()
    added: str = ""
    removed: str = ""
    line: str = ""
    raw: str = ""
    is_new: bool = False

    @cached_property
    def invocations(self) -> tuple[Invocation, ...]:
        """Return the commands of the line that do more than read."""
        return tuple(found for found in list_invocations(self.line) if does_more_than_read(found)) if self.line else ()

    @cached_property
    def doing(self) -> tuple[Invocation, ...]:
        """Return the commands that do something: not those that run another one, show their help or only rehearse."""
        return tuple(call for call in self.invocations if not (call.is_wrapper or only_shows(call)))

    @cached_property
    def is_scratch(self) -> bool:
        """Return whether the commands run outside of any project."""
        places = word_set("acts.words", "scratch")
        folders = [folder for call in self.invocations for folder in call.folders]
        return any(folder.startswith(tuple(places)) for folder in folders)

    @cached_property
    def removes_files(self) -> bool:
        """Return whether a command removes or renames its files."""
        return any(_runs_one_of(call, "removing") for call in self.invocations)

    @cached_property
    def _introduced(self) -> dict[re.Pattern[str], bool]:
        return {}

    def introduces(self, code: re.Pattern[str]) -> bool:
        """Return whether the act writes some code more often than it removes it."""
        if code not in self._introduced:
            self._introduced[code] = len(code.findall(self.added)) > len(code.findall(self.removed))
        return self._introduced[code]

    @cached_property
    def lowered(self) -> str:
        """Return the text that the act writes in lower case."""
        return self.added.lower()

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words of the text before and after."""
        return frozenset(islice(dict.fromkeys(_CODE_WORD.findall(f"{self.added}\n{self.removed}")), MOST_WORDS))

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
        added, removed = _read_texts(arguments)
        is_new = tool == "Write"
        return ProposedAct(
            _shorten_paths(files, cwd), cut_middle(added, MOST_TEXT), cut_middle(removed, MOST_TEXT), is_new=is_new
        )
    line = next((target.target for target in targets if target.target), "")
    if not line:
        return None
    given = next((arguments[name] for name in COMMAND_NAMES if isinstance(arguments.get(name), str)), line)
    raw = cut_middle(given, MOST_TEXT)
    calls = [found for found in list_invocations(raw) if does_more_than_read(found)]
    written = [call.script for call in calls if call.writes and call.script]
    replaced = [match for call in calls if call.words[0] in ("sed", "perl") for match in _list_replaced(call)]
    changed = [file for call in calls for file in _list_changed(call, cwd)]
    return ProposedAct(
        _shorten_paths(changed, cwd),
        "\n".join([*written, *(new for _, new in replaced)]),
        "\n".join(old for old, _ in replaced),
        line,
        raw,
        is_new=any(not call.words[0].startswith("tee") for call in calls if call.writes and call.script),
    )


def _list_replaced(call: Invocation) -> Iterator[tuple[str, str]]:
    """Yield the texts before and after of the substitutions of a stream editor."""
    for word in call.words[1:]:
        for match in _SUBSTITUTION.finditer(word):
            yield match[2], match[3]


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


def _read_texts(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the texts that an edit writes, and those that it replaces."""
    parts = [item for value in arguments.values() if isinstance(value, list) for item in value[:MOST_PARTS]]
    objects = [arguments, *(part for part in parts if isinstance(part, Mapping))]
    added = [text for part in objects for text in _list_texts(part, _NEW_NAMES)]
    removed = [text for part in objects for text in _list_texts(part, _OLD_NAMES)]
    for patch in _list_texts(arguments, PATCH_NAMES):
        for match in _PATCHED.finditer(cut_middle(patch, MOST_TEXT)):
            (added if match[1] == "+" else removed).append(match[2])
    return "\n".join(added), "\n".join(removed)


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
