"""An act of an agent as rules are compared with it: its commands, and the text that it adds to files and removes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePath
from typing import Any

from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.text.command_lines import Invocation, list_invocations, rehearses
from pipeline.text.lexicon import word_set, word_sets
from pipeline.write.tool_actions import COMMAND_NAMES, EDITING, SHELLS, extract_command, find_target

# Maximum length of a text that an act adds or removes, and of its parts.
READ_CHARS, MOST_PARTS = 20_000, 50
# Maximum number of commands of a line that are compared.
MOST_CALLS = 24
_ADDED, _REMOVED = ("new_string", "content", "new_source"), "old_string"
_COMMENTS = {
    "slashes": re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL),
    "hashes": re.compile(r"(?m)(?:^|(?<=\s))#(?!!)[^\n]*"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a file: the text that it adds and removes, and whether the file may be new."""

    path: str
    added: str
    removed: str = ""
    is_new: bool = False

    @property
    def suffix(self) -> str:
        """Return the end of the file's name, or its name if it has none."""
        path = PurePath(self.path.casefold())
        return path.suffix.removeprefix(".") or path.name

    def list_added_lines(self, *, with_comments: bool) -> list[str]:
        """Return the lines that are new in a file."""
        old = set(self._drop_comments(self.removed, with_comments).splitlines())
        return [line for line in self._drop_comments(self.added, with_comments).splitlines() if line not in old]

    def read_comments(self) -> str:
        """Return the text of the added comments."""
        return "\n".join(comment for pattern in self._list_patterns() for comment in pattern.findall(self.added))

    def _list_patterns(self) -> Iterator[re.Pattern[str]]:
        for kind, suffixes in word_sets("obedience.comments").items():
            if self.suffix in suffixes:
                yield _COMMENTS[kind]

    def _drop_comments(self, text: str, with_comments: bool) -> str:
        for pattern in () if with_comments else self._list_patterns():
            text = pattern.sub("", text)
        return text


@dataclass(frozen=True)
class Act:
    """A tool call: a command line, or a file that is edited or read, and its changes of files."""

    tool: str
    line: str = ""
    path: str = ""
    changes: tuple[Change, ...] = ()

    @classmethod
    def of_call(cls, tool: str, arguments: Mapping[str, Any], cwd: str = "") -> "Act":
        """Return the act of a tool call with any arguments; paths below `cwd` are relative to it."""
        if tool in SHELLS:
            whole = next((text for name in COMMAND_NAMES if isinstance(text := arguments.get(name), str)), "")
            return cls(tool, extract_command(arguments), changes=tuple(_list_written(whole[:READ_CHARS], cwd)))
        if tool not in EDITING:
            path = arguments.get("file_path")
            return cls(tool, path=_relate(path, cwd) if isinstance(path, str) else "")
        target, edits = find_target(tool, arguments), arguments.get("edits")
        parts = [arguments, *(edits[:MOST_PARTS] if isinstance(edits, list) else [])]
        added = "\n".join(text for part in parts for name in _ADDED if (text := _read(part, name)))
        removed = "\n".join(_read(part, _REMOVED) for part in parts)
        path = "" if target is None else _relate(target.target, cwd)
        return cls(tool, "", path, (Change(path, added[:READ_CHARS], removed[:READ_CHARS], tool == "Write"),))

    @classmethod
    def of_action(cls, action: Action) -> "Act":
        """Return the act of a recorded action, whose texts are not recorded."""
        is_edit = action.type is ActionType.EDIT
        return cls(action.tool, "" if is_edit else action.target, action.target if is_edit else "")

    @property
    def is_edit(self) -> bool:
        """Return whether the act edits a file with an editing tool."""
        return self.tool in EDITING

    @cached_property
    def calls(self) -> tuple[Invocation, ...]:
        """Return the commands of the act, wrappers before the commands that they run."""
        return list_invocations(self.line)

    @cached_property
    def made_calls(self) -> tuple[Invocation, ...]:
        """Return the first commands that do more than show what they would do, or how they are used."""
        return tuple(islice((call for call in self.calls if not rehearses(call)), MOST_CALLS))

    @property
    def changed_files(self) -> list[str]:
        """Return the files that the act changes."""
        files = [word for call in self.calls if _changes(call) for word in call.words[1:] if word[:1] != "-"]
        files += [file for call in self.calls if call.writes for file in call.files]
        return [self.path] if self.is_edit else files

    @property
    def removed_files(self) -> list[str]:
        """Return the files that the act removes or renames."""
        removals = {"rm", "mv"}
        return [word for call in self.calls if removals.intersection(call.words[:2]) for word in call.words[1:]]


def _read(part: Any, name: str) -> str:
    value = part.get(name) if isinstance(part, Mapping) else None
    return value[:READ_CHARS] if isinstance(value, str) else ""


def _list_written(line: str, cwd: str) -> Iterator[Change]:
    """Yield the files that the here-documents of a command line write."""
    for call in list_invocations(line) if "<<" in line else ():
        if call.writes and call.script:
            yield from (Change(_relate(file, cwd), call.script, is_new=">>" not in line) for file in call.files)


def _relate(path: str, cwd: str) -> str:
    return path.removeprefix(f"{cwd.rstrip('/')}/") if cwd else path


def _changes(call: Invocation) -> bool:
    program = PurePath(call.words[0]).name
    is_in_place = program not in ("sed", "perl") or any(word.startswith("-i") for word in call.words)
    return program in word_set("obedience", "changes_file") and is_in_place
