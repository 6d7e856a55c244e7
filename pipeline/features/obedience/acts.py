"""An act of an agent as rules and the past are compared with it: its commands, and its changes of files."""

import os.path
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePath
from typing import Any

from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.sessions.readers.tool_calls import read_patch
from pipeline.text.command_lines import Invocation, list_invocations, rehearses
from pipeline.text.lexicon import word_set, word_sets
from pipeline.write.tool_actions import (
    COMMAND_NAMES,
    EDITING,
    FILES_NAME,
    PART_PATH_NAMES,
    PATCH_NAMES,
    PATCH_TOOL,
    SHELLS,
    cut_middle,
    does_more_than_read,
    extract_command,
)

# Maximum length of a text that an act adds or removes, and of a path; maximum number of parts, files and commands.
READ_CHARS, PATH_CHARS = 20_000, 400
MOST_PARTS, MOST_FILES, MOST_CALLS = 50, 24, 24
_ADDED = ("new_string", "content", "new_source", "newText", "newString")
_REMOVED = ("old_string", "old_source", "oldText", "oldString")
# A command of a shell in a notebook.
_MAGIC = re.compile(r"(?m)^[!%](\w.*)$")
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

    @property
    def only_adds(self) -> bool:
        """Return whether no line is removed."""
        return self.is_new or (self.added != "" and set(self.removed.splitlines()) <= set(self.added.splitlines()))

    def list_added_lines(self, *, with_comments: bool) -> list[str]:
        """Return the lines that are new in a file."""
        old = set(self._drop_comments(self.removed, with_comments).splitlines())
        return [line for line in self._drop_comments(self.added, with_comments).splitlines() if line not in old]

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
    """A tool call: a command line, or files that are edited or one that is read; paths are relative to its folder."""

    tool: str
    line: str = ""
    path: str = ""
    changes: tuple[Change, ...] = ()

    @classmethod
    def of_call(cls, tool: str, arguments: Mapping[str, Any], cwd: str = "") -> "Act":
        """Return the act of a tool call with any arguments."""
        if tool in SHELLS:
            line = next((text for name in COMMAND_NAMES if isinstance(text := arguments.get(name), str)), "")
            written = tuple(islice(_list_written(cut_middle(line, READ_CHARS), cwd), MOST_FILES))
            return cls(tool, extract_command(arguments), changes=written)
        changes = tuple(_list_changes(tool, arguments, cwd)) if tool in EDITING else ()
        cells = "\n".join(change.added for change in changes if change.suffix == "ipynb")
        return cls(
            tool, "\n".join(_MAGIC.findall(cells)), changes[0].path if changes else _find_path(arguments, cwd), changes
        )

    @classmethod
    def of_action(cls, action: Action) -> "Act":
        """Return the act of a recorded action, whose texts are not recorded."""
        is_edit = action.type is ActionType.EDIT
        return cls(action.tool, "" if is_edit else action.target, action.target if is_edit else "")

    @property
    def is_edit(self) -> bool:
        """Return whether the act edits a file with an editing tool."""
        return self.tool in EDITING

    @property
    def changes_anything(self) -> bool:
        """Return whether the act may do more than read."""
        return (self.is_edit and self.path != "") or any(map(does_more_than_read, self.calls))

    @property
    def removed(self) -> str:
        """Return the texts that the act replaces."""
        return "\n".join(change.removed for change in self.changes)

    @property
    def key(self) -> str:
        """Return what the act is about: a memory is shown once for it in a session."""
        made = [" ".join(call.words[:2]) for call in self.calls if does_more_than_read(call)]
        return "\n".join(dict.fromkeys(self.changed_files if self.is_edit else made))

    @cached_property
    def calls(self) -> tuple[Invocation, ...]:
        """Return the commands of the act, wrappers before the commands that they run."""
        return list_invocations(self.line)

    @cached_property
    def made_calls(self) -> tuple[Invocation, ...]:
        """Return the first commands that do more than show what they would do, or how they are used."""
        return tuple(islice((call for call in self.calls if not rehearses(call)), MOST_CALLS))

    @cached_property
    def changed_files(self) -> list[str]:
        """Return the files that the act changes."""
        files = [word for call in self.made_calls if _changes(call) for word in call.words[1:] if word[:1] != "-"]
        files += [file for call in self.made_calls if call.writes for file in call.files]
        files += [change.path for change in self.changes] or ([self.path] if self.is_edit else [])
        return list(dict.fromkeys(filter(None, files)))[:MOST_FILES]

    @property
    def removed_files(self) -> list[str]:
        """Return the files that the act removes or renames."""
        removals = {"rm", "mv"}
        return [word for call in self.calls if removals.intersection(call.words[:2]) for word in call.words[1:]]


def _list_changes(tool: str, arguments: Mapping[str, Any], cwd: str) -> Iterator[Change]:
    """Yield the changes of a call of an editing tool, those of one file together."""
    for name in PATCH_NAMES if tool == PATCH_TOOL else ():
        if isinstance(patch := arguments.get(name), str):
            for file in islice(read_patch(cut_middle(patch, READ_CHARS)), MOST_FILES):
                yield Change(_relate(file.file, cwd), file.added, file.removed, file.is_new)
            return
    main = _find_path(arguments, cwd)
    lists = [value[:MOST_PARTS] for value in arguments.values() if isinstance(value, list)]
    parts = [arguments, *(part for value in lists for part in value if isinstance(part, Mapping))]
    paths = [_find_path(part, cwd) or main for part in parts]
    named = arguments.get(FILES_NAME)
    files = [_relate(file, cwd) for file in named if isinstance(file, str)] if isinstance(named, list) else []
    for path in list(dict.fromkeys(filter(None, [*paths, *files])))[:MOST_FILES]:
        own = [part for part, target in zip(parts, paths, strict=True) if target == path]
        added, removed = ("\n".join(_list_texts(own, names))[:READ_CHARS] for names in (_ADDED, _REMOVED))
        yield Change(path, added, removed, tool == "Write")


def _list_texts(parts: list[Mapping[str, Any]], names: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        yield from (text[:READ_CHARS] for name in names if isinstance(text := part.get(name), str) and text)


def _find_path(part: Mapping[str, Any], cwd: str) -> str:
    paths = (path for name in PART_PATH_NAMES if isinstance(path := part.get(name), str))
    return _relate(next(paths, ""), cwd)


def _list_written(line: str, cwd: str) -> Iterator[Change]:
    """Yield the files that the here-documents of a command line write."""
    for call in list_invocations(line) if "<<" in line else ():
        if call.writes and call.script:
            yield from (Change(_relate(file, cwd), call.script, is_new=">>" not in line) for file in call.files)


def _relate(path: str, cwd: str) -> str:
    """Return a path with slashes, relative to a folder that contains it."""
    plain = os.path.normpath(path.replace("\0", "").replace("\\", "/")[:PATH_CHARS]) if path else ""
    root = cwd.replace("\\", "/").rstrip("/")
    return plain.removeprefix(f"{root}/") if root else plain


def _changes(call: Invocation) -> bool:
    program = PurePath(call.words[0]).name
    is_in_place = program not in ("sed", "perl") or any(word.startswith(("-i", "-pi")) for word in call.words)
    verb = call.words[1] if program == "git" and len(call.words) > 1 else program
    return verb in word_set("obedience", "changes_file") and is_in_place
