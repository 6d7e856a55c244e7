"""Translate the tool calls of all agents into the names that Claude Code uses."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, parse_json
from pipeline.text.command_lines import list_patch_files

# Tools that change a file.
EDITING_TOOLS = frozenset({"Edit", "Write"})


class Call(NamedTuple):
    """A call with Claude Code's names, and the text that an edit replaces."""

    tool: str
    arguments: Mapping[str, Any]
    replaced: str = ""


class PatchedFile(NamedTuple):
    """A file that a patch changes: whether it is new, and the lines that it loses and gets."""

    file: str
    is_new: bool
    removed: str
    added: str


class Tools(NamedTuple):
    """How an agent names its tools, and the text that an edit replaces."""

    names: Mapping[str, str]
    replaced: tuple[str, ...]


def _names(**tools: str) -> dict[str, str]:
    return {name: tool for tool, names in tools.items() for name in names.split()}


_GEMINI = Tools(
    _names(
        Bash="run_shell_command",
        Edit="replace edit",
        Write="write_file",
        Read="read_file",
        Glob="glob",
        Grep="search_file_content grep_search",
        WebFetch="web_fetch",
        WebSearch="google_web_search",
    ),
    ("old_string",),
)
_PI = Tools(
    _names(
        Bash="bash shell_exec run_terminal exec",
        Edit="edit edit_file",
        Write="write write_file",
        Read="read",
        Grep="grep",
        Glob="find",
    ),
    ("oldText", "old_string"),
)
# The calls of these agents keep their other arguments.
TOOLS: Final[Mapping[str, Tools]] = {
    "claude-code": Tools({}, ("old_string",)),
    "gemini-cli": _GEMINI,
    "qwen-code": _GEMINI,
    "pi": _PI,
    "oh-my-pi": _PI,
    "openclaw": _PI,
    "hermes": Tools(
        _names(Bash="terminal", Edit="patch", Write="write_file", Read="read_file", Grep="search_files"),
        ("old_string",),
    ),
    "antigravity": Tools(
        _names(
            Bash="run_command",
            Write="write_to_file",
            Edit="replace_file_content multi_replace_file_content",
            Read="view_file",
            Grep="grep_search",
            Glob="find_by_name",
            WebSearch="search_web",
            WebFetch="read_url_content",
        ),
        ("TargetContent",),
    ),
}
# The names that all other agents use, in lower case.
_USUAL = Tools(
    _names(
        Bash=(
            "bash shell powershell terminal execute developer__shell run_terminal_cmd run_terminal_command "
            "run_in_terminal run_terminal_command_v2 copilot_runinterminal execute_command run_commands run_command"
        ),
        Edit=(
            "edit multiedit multi_edit search_replace strreplace str_replace edit_file edit_file_v2 editor applydiff "
            "apply_diff replace_in_file replace_string_in_file multi_replace_string_in_file copilot_replacestring "
            "insert_content search_and_replace insert_edit_into_file copilot_editfile copilot_insertedit delete_file"
        ),
        Write="write create write_file write_to_file create_file copilot_createfile",
        Read="read view read_file read_file_v2 read_files copilot_readfile developer__read",
    ),
    ("old_string", "oldString", "old_str", "old_text", "oldText", "search"),
)
# Tools with several uses, which their argument `command` names.
_EDITORS = frozenset({"str_replace_editor", "developer__text_editor", "text_editor", "str_replace_based_edit_tool"})
_EDITOR_USES = {"create": "Write", "write": "Write", "str_replace": "Edit", "insert": "Edit", "view": "Read"}
_PATCH_TOOLS = frozenset({"apply_patch", "applypatch", "copilot_applypatch"})
_PATCHES = ("patchText", "input", "patch", "diff")
_PATCHED = re.compile(r"^\*\*\* (?P<kind>Add|Update|Delete) File: (?P<file>.+)$", re.MULTILINE)

# The lines of a block that replaces text: its start, what it says of the position, and the end of the old text.
_SEARCH = re.compile(r"[<-]{5,} SEARCH>?")
_POSITION = re.compile(r"-{5,}|:\w+:.*")
_DIVIDER = re.compile(r"={5,}")

_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh\Z")
_PATHS = ("file_path", "filePath", "path", "target_file", "targetFile", "relativeWorkspacePath", "file", "absolutePath")
_COMMANDS = ("command", "cmd", "commandLine", "script")
_PATH = ("file_path", ("path", "filePath", "absolute_path", "TargetFile", "AbsolutePath", "file"))
# Claude Code's name of an argument, and others of which the first counts.
_RENAMED = {"Bash": ("command", ("cmd", "CommandLine", "script")), "Edit": _PATH, "Write": _PATH, "Read": _PATH}


def translate(agent: str, name: Any, arguments: Any) -> Iterator[Call]:
    """Yield an agent's call; a patch is an edit of each of its files."""
    tools, tool, given = TOOLS.get(agent), as_text(name), as_mapping(parse_json(arguments))
    if tools is None:
        yield from _translate_usual(tool, given, arguments)
        return
    tool = tools.names.get(tool, tool)
    yield Call(tool, _rename(given, *_RENAMED.get(tool, ("", ()))), "\n".join(_list_replaced(given, tools)))


def translate_call(name: str, arguments: Any) -> tuple[str, dict[str, Any]]:
    """Return Claude Code's name of a tool and its arguments; of a patch, those of the first file, and all files."""
    given = as_mapping(parse_json(arguments))
    call = next(_translate_usual(name, given, arguments), Call(name, {}))
    is_patch = name.lower() in _PATCH_TOOLS
    files = list_patch_files(_first_text(given, _PATCHES)) if is_patch else _list_files(given)
    known = {**call.arguments, **({"old_string": call.replaced} if call.replaced else {})}
    return call.tool, known | ({"files": files} if len(files) > 1 else {})


def read_patch(patch: str) -> Iterator[PatchedFile]:
    """Yield the files that a patch in Codex' format changes, in order."""
    headers = list(_PATCHED.finditer(patch))
    ends = [*(header.start() for header in headers[1:]), len(patch)]
    for header, end in zip(headers, ends, strict=False):
        lines = patch[header.end() : end].splitlines()
        removed, added = ("\n".join(line[1:] for line in lines if line.startswith(sign)) for sign in "-+")
        yield PatchedFile(header["file"].strip(), header["kind"] == "Add", removed, added)


def read_command(command: Any) -> str:
    """Return the command line of a call: a text, or words, of which a shell's script is the command."""
    if isinstance(command, str):
        return command
    words = [word for word in as_list(command) if isinstance(word, str)]
    is_script = len(words) == 3 and _SHELL.match(words[0]) and words[1] in ("-lc", "-c")
    return words[2] if is_script else shlex.join(words)


def _rename(arguments: Mapping[str, Any], new: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    name = next((name for name in names if name in arguments), None)
    if name is None:
        return arguments
    rest = {key: value for key, value in arguments.items() if key != name}
    return rest if new in rest else rest | {new: arguments[name]}


def _translate_usual(name: str, arguments: Mapping[str, Any], raw: Any) -> Iterator[Call]:
    """Yield a call with its command or its file; those of an unknown tool keep all arguments."""
    lower = name.lower()
    if lower in _PATCH_TOOLS:
        for change in read_patch(_first_text(arguments, _PATCHES) or as_text(raw)):
            yield Call("Write" if change.is_new else "Edit", {"file_path": change.file}, change.removed)
        return
    tool = _USUAL.names.get(lower, name)
    if lower in _EDITORS:
        tool = _EDITOR_USES.get(as_text(arguments.get("command")), name)
    if tool == "Bash":
        folder = {"cwd": cwd} if (cwd := as_text(arguments.get("cwd"))) else {}
        yield Call(tool, {"command": _join_commands(arguments)} | folder)
    elif tool in _RENAMED:
        replaced = (*_list_replaced(arguments, _USUAL), *_list_searched(as_text(arguments.get("diff"))))
        path = next(iter(_list_files(arguments)), "")
        yield Call(tool, {"file_path": path}, "\n".join(filter(None, replaced)) if tool == "Edit" else "")
    else:
        yield Call(tool, arguments)


def _list_edits(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a call's arguments, and those of its parts."""
    parts = as_list(arguments.get("edits") or arguments.get("replacements") or arguments.get("files"))
    return [arguments, *map(as_mapping, parts)]


def _list_files(arguments: Mapping[str, Any]) -> list[str]:
    """Return the files of an edit."""
    return list(dict.fromkeys(path for edit in _list_edits(arguments) if (path := _first_text(edit, _PATHS))))


def _list_replaced(arguments: Mapping[str, Any], tools: Tools) -> list[str]:
    """Return the texts that the parts of an edit replace."""
    return [text for edit in _list_edits(arguments) if (text := _first_text(edit, tools.replaced))]


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


def _join_commands(arguments: Mapping[str, Any]) -> str:
    """Return a shell's command; some agents run several at once."""
    several = [as_text(item) or _first_text(as_mapping(item), _COMMANDS) for item in as_list(arguments.get("commands"))]
    command = _first_text(arguments, _COMMANDS) or " && ".join(filter(None, several))
    words = arguments.get("command")
    return command or (" ".join(map(str, words)) if isinstance(words, list) else "")


def _first_text(values: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := as_text(values.get(name)))), "")
