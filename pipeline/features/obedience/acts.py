"""An act of an agent as rules are compared with it: its commands, its file, and the text that it adds and removes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.text.command_lines import Invocation, list_invocations
from pipeline.text.lexicon import word_set, word_sets
from pipeline.write.tool_actions import EDITING, SHELLS, extract_command, find_target

# Maximum length of a text that an act adds or removes.
READ_CHARS = 20_000
_COMMENTS = {
    "slashes": re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL),
    "hashes": re.compile(r"(?m)(?:^|(?<=\s))#(?!!)[^\n]*"),
}


@dataclass(frozen=True)
class Act:
    """A tool call: a command line, or a file that is edited or read, with the text that is added and removed."""

    tool: str
    line: str = ""
    path: str = ""
    added: str = ""
    removed: str = ""

    @classmethod
    def of_call(cls, tool: str, arguments: Mapping[str, Any], cwd: str = "") -> "Act":
        """Return the act of a tool call with any arguments; paths below `cwd` are relative to it."""
        if tool in SHELLS:
            return cls(tool, extract_command(arguments))
        if tool not in EDITING:
            path = arguments.get("file_path")
            return cls(tool, path=_relate(path, cwd) if isinstance(path, str) else "")
        target, edits = find_target(tool, arguments), arguments.get("edits")
        parts = [arguments, *(edits if isinstance(edits, list) else [])]
        texts = {
            name: "\n".join(
                text
                for part in parts
                if isinstance(part, Mapping)
                for text in [part.get(name)]
                if isinstance(text, str)
            )[:READ_CHARS]
            for name in ("new_string", "content", "new_source", "old_string")
        }
        added = "\n".join(filter(None, (texts["new_string"], texts["content"], texts["new_source"])))
        return cls(tool, "", "" if target is None else _relate(target.target, cwd), added, texts["old_string"])

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
    def changed_files(self) -> tuple[str, ...]:
        """Return the files that the act changes."""
        if self.is_edit:
            return (self.path,)
        changing = word_set("obedience", "changes_file")
        files = [word for call in self.calls if _changes(call, changing) for word in call.words[1:] if word[:1] != "-"]
        return (*files, *(file for call in self.calls if call.writes for file in call.files))

    @property
    def suffix(self) -> str:
        """Return the end of the file's name, or its name if it has none."""
        path = PurePath(self.path.casefold())
        return path.suffix.removeprefix(".") or path.name

    def list_added_lines(self, *, with_comments: bool) -> list[str]:
        """Return the lines that are new in a file."""
        old = set(self._without_comments(self.removed, with_comments).splitlines())
        return [line for line in self._without_comments(self.added, with_comments).splitlines() if line not in old]

    def read_comments(self) -> str:
        """Return the text of the added comments."""
        found = (_COMMENTS[kind] for kind, ends in word_sets("obedience.comments").items() if self.suffix in ends)
        return "\n".join(comment for pattern in found for comment in pattern.findall(self.added))

    def _without_comments(self, text: str, with_comments: bool) -> str:
        for kind, suffixes in word_sets("obedience.comments").items():
            if not with_comments and self.suffix in suffixes:
                return _COMMENTS[kind].sub("", text)
        return text


def _relate(path: str, cwd: str) -> str:
    return path.removeprefix(f"{cwd.rstrip('/')}/") if cwd else path


def _changes(call: Invocation, changing: frozenset[str]) -> bool:
    program = PurePath(call.words[0]).name
    return program in changing and (program not in ("sed", "perl") or any(w.startswith("-i") for w in call.words))
