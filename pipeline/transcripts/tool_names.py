"""Translate the tool calls of any agent into the names that Claude Code uses."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.text.patches import list_patch_files
from pipeline.transcripts.documents import parse_json
from pipeline.transcripts.fields import as_list, as_mapping, as_text, find_exit_code
from pipeline.transcripts.session_log import SessionLog

# Tools that change a file.
EDITING_TOOLS = frozenset({"Edit", "Write"})

_NAMES = {
    "Bash": (
        "bash shell powershell terminal execute developer__shell run_terminal_cmd run_terminal_command run_in_terminal "
        "run_terminal_command_v2 copilot_runinterminal execute_command run_commands run_command"
    ),
    "Edit": (
        "edit multiedit multi_edit search_replace strreplace str_replace edit_file edit_file_v2 editor applydiff "
        "apply_diff replace_in_file replace_string_in_file multi_replace_string_in_file copilot_replacestring "
        "insert_content search_and_replace insert_edit_into_file copilot_editfile copilot_insertedit delete_file"
    ),
    "Write": "write create write_file write_to_file create_file copilot_createfile",
    "Read": "read view read_file read_file_v2 read_files copilot_readfile developer__read",
}
_CLAUDE_NAMES = {name: tool for tool, names in _NAMES.items() for name in names.split()}
# Tools with several uses, which their argument `command` names.
_EDITORS = frozenset({"str_replace_editor", "developer__text_editor", "text_editor", "str_replace_based_edit_tool"})
_EDITOR_USES = {"create": "Write", "write": "Write", "str_replace": "Edit", "insert": "Edit", "view": "Read"}
_PATCH_TOOLS = frozenset({"apply_patch", "applypatch", "copilot_applypatch"})
_PATCHES = ("patchText", "input", "patch", "diff")
_EXIT_CODE = re.compile(r"\bexit code:? (-?\d{1,10})\b", re.IGNORECASE)
_EDGE_CHARS = 300
_PATCH_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")

# The lines of a block that replaces text: its start, what it says of the position, and the end of the old text.
_SEARCH = re.compile(r"[<-]{5,} SEARCH>?")
_POSITION = re.compile(r"-{5,}|:\w+:.*")
_DIVIDER = re.compile(r"={5,}")

_PATHS = ("file_path", "filePath", "path", "target_file", "targetFile", "relativeWorkspacePath", "file", "absolutePath")
_COMMANDS = ("command", "cmd", "commandLine", "script")
_REPLACED = ("old_string", "oldString", "old_str", "old_text", "oldText", "search")


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    arguments: Mapping[str, Any]
    replaced: str = ""


def record_call(log: SessionLog, key: str, name: str, arguments: Any, at: Any) -> None:
    """Note a call in a session, until its result is recorded; a patch is an edit of each of its files."""
    for number, call in enumerate(_translate(name, arguments)):
        log.call(f"{key}#{number}" if number else key, call.tool, call.arguments, at, call.replaced)


def translate_call(name: str, arguments: Any) -> tuple[str, dict[str, Any]]:
    """Return Claude Code's name of a tool and its arguments; of a patch, those of the first file, and all files."""
    calls = list(_translate(name, arguments)) or [_Call(name, {})]
    read = as_mapping(parse_json(arguments))
    files = list_patch_files(_first_text(read, _PATCHES)) if name.lower() in _PATCH_TOOLS else _list_parts(read)
    known = {**calls[0].arguments, **({"old_string": calls[0].replaced} if calls[0].replaced else {})}
    return calls[0].tool, known | ({"files": files} if len(files) > 1 else {})


def _list_parts(arguments: Mapping[str, Any]) -> list[str]:
    """Return the files of an edit with several parts."""
    return list(dict.fromkeys(path for edit in _list_edits(arguments) if (path := _first_text(edit, _PATHS))))


def _list_edits(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    parts = as_list(arguments.get("edits") or arguments.get("replacements") or arguments.get("files"))
    return [arguments, *map(as_mapping, parts)]


def record_result(log: SessionLog, key: str, *, ok: bool | None, output: str = "", exit_code: Any = None) -> None:
    """Add a call with its result; a command that ends with another code than 0 failed."""
    use = log.calls.get(key)
    code = exit_code if isinstance(exit_code, int) and not isinstance(exit_code, bool) else None
    if code is None and use is not None and use.tool == "Bash":
        code = find_exit_code(output) if (stated := _find_stated_code(output)) is None else stated
    if code is not None:
        ok = code == 0 and ok is not False
    keys = [key, *(other for other in log.calls if other.startswith(f"{key}#"))]
    for one in keys:
        log.finish(one, ok=ok, output=output, exit_code=code)


def _find_stated_code(output: str) -> int | None:
    """Return the exit code in the first or last line, where programs put it around the output."""
    text = output.strip()
    edges = (text[:_EDGE_CHARS].partition("\n")[0], text[-_EDGE_CHARS:].rpartition("\n")[2])
    match = next(filter(None, map(_EXIT_CODE.search, edges)), None)
    return None if match is None else int(match[1])


def _translate(name: str, raw: Any) -> Iterator[_Call]:
    arguments = as_mapping(parse_json(raw))
    lower = name.lower()
    if lower in _PATCH_TOOLS:
        yield from _split_patch(_first_text(arguments, _PATCHES) or as_text(raw))
        return
    tool = _CLAUDE_NAMES.get(lower, name)
    if lower in _EDITORS:
        tool = _EDITOR_USES.get(as_text(arguments.get("command")), name)
    if tool == "Bash":
        folder = {"cwd": cwd} if (cwd := as_text(arguments.get("cwd"))) else {}
        yield _Call(tool, {"command": _join_commands(arguments)} | folder)
    elif tool in ("Edit", "Write", "Read"):
        edits = _list_edits(arguments)
        searched = _list_searched(as_text(arguments.get("diff")))
        replaced = "\n".join(filter(None, [*(_first_text(edit, _REPLACED) for edit in edits), *searched]))
        path = next((text for edit in edits if (text := _first_text(edit, _PATHS))), "")
        yield _Call(tool, {"file_path": path}, replaced if tool == "Edit" else "")
    else:
        yield _Call(tool, arguments)


def _list_searched(diff: str) -> Iterator[str]:
    """Yield the texts that the blocks of a diff replace."""
    old: list[str] | None = None
    for line in diff.split("\n"):
        if old is None:
            old = [] if _SEARCH.fullmatch(line) else None
        elif _DIVIDER.fullmatch(line):
            yield "".join(old)
            old = None
        elif old or not _POSITION.fullmatch(line):
            old.append(f"{line}\n")


def _split_patch(patch: str) -> Iterator[_Call]:
    starts = list(_PATCH_FILE.finditer(patch))
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        lines = patch[start.end() : None if following is None else following.start()].splitlines()
        replaced = "\n".join(line[1:] for line in lines if line.startswith("-"))
        yield _Call("Write" if start[1] == "Add" else "Edit", {"file_path": start[2].strip()}, replaced)


def _join_commands(arguments: Mapping[str, Any]) -> str:
    """Return a shell's command; some agents run several at once."""
    several = [as_text(item) or _first_text(as_mapping(item), _COMMANDS) for item in as_list(arguments.get("commands"))]
    command = _first_text(arguments, _COMMANDS) or " && ".join(filter(None, several))
    words = arguments.get("command")
    return command or (" ".join(map(str, words)) if isinstance(words, list) else "")


def _first_text(values: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := as_text(values.get(name)))), "")
