"""Describe tool calls as actions, without secrets. Of calls that only read, only a shell's commands are actions."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from pipeline.kernel.store import agent_sessions
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.workspace import Workspace
from pipeline.text.command_lines import MOST_FILES, Invocation, asks_help, list_invocations, list_patch_files
from pipeline.text.error_signature import pick_error, sign_error
from pipeline.text.normalize import normalize_text, shorten
from pipeline.text.redaction import redact
from pipeline.text.shell_syntax import split_shell_commands
from pipeline.write.command_patterns import COMMIT, COMPARING, DEPLOY, LOOKING, RUNNER, TEST

MAX_TARGET_CHARS = 300
MAX_TOOL_CHARS = 80
# Longer commands are cut before the search for secrets: an inline script can have any length.
READ_CHARS = 8000
# A secret may be cut in half at this point.
CUT_CHARS = 1000
# Maximum length of a command, and of a commit message.
LONGEST_COMMAND = 120
LONGEST_SUBJECT = 160

SHELLS = frozenset({"Bash", "PowerShell", "shell", "shell_command", "local_shell", "exec_command"})
COMMAND_NAMES = ("command", "cmd")
PATH_NAMES = ("file_path", "notebook_path", "path")
# The argument with all files of a patch, the paths in the parts of an edit, and the argument with a patch's text.
FILES_NAME = "files"
PART_PATH_NAMES = (*PATH_NAMES, "filePath", "target_file", "file")
PATCH_TOOL = "apply_patch"
PATCH_NAMES = ("command", "input", "patch", "patchText", "diff")
EDITING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", PATCH_TOOL})
# All other tools of hosts only read.
OTHER_SERVERS_TOOL = "mcp__"
OWN_TOOLS = "mcp__reverie"

# Parts of a command that are not commands: quoted texts, here-documents, comments. An agent waits during the search,
# so an unclosed part extends to the end of the text; otherwise the search would be quadratic.
_SUBSTITUTED_DOCUMENT = re.compile(
    r"""(["'])?\$\(\s*cat\s+<<-?\s*(["']?)(\w+)\2\n"""
    r"""(?:(?P<text>.*?)\n[^\S\n]*+\3(?:\s*+(?P<closed>\))(?P<quote>\1)?|(?=[^\S\n]*+(?:\n|\Z)))|.*+)""",
    re.DOTALL,
)
_DOCUMENT = re.compile(
    r"""<<-?\s*(["']?)(\w+)\1([^\n]*+)(?:\n.*?(?:\n[^\S\n]*+\2(?=\s|$)|\Z)|(?P<empty>\Z))""", re.DOTALL
)
_MORE = re.compile(r"\s*+\S")
_MESSAGE = re.compile(r"""(\s-[a-zA-Z]*m\s*|\s--message[= ])(["'])(.*?)(?<!\\)\2""", re.DOTALL)
_SUBJECT = re.compile(r"\s-[a-zA-Z]*m\s*\"([^\"]+)\"|\s--message[= ]\"([^\"]+)\"|\s-[a-zA-Z]*m\s*'([^']+)'")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|(?P<open>\\?\Z))|' + r"'[^']*+'", re.DOTALL)
_APOSTROPHES = re.compile(r"'[^']*+'")
_OPEN_APOSTROPHE = re.compile(r"'[^']*+\Z")
_SEGMENT = re.compile(r"&&|\|\||[;\n|&]")
_NOWHERE = re.compile(r"\d*+(?:>&\d|>>?\s*/dev/null)|&\d*+>>?\s*/dev/null|>&-|(?P<number>\d++)")
_PREFIX = re.compile(
    r"(?:(?:(?<![A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*+=\S*|sudo|time|nohup|command|exec|then|do|else|!|\("
    r"|timeout \S+|(?:env|nice|stdbuf)(?:\s+-\S+)*+)\s+)+"
)


@dataclass(frozen=True, slots=True)
class ToolTarget:
    """The target of a tool call: a command or a file, unredacted."""

    type: ActionType
    target: str


# A call that may edit or run anything, whose arguments could not be read.
UNREADABLE = ToolTarget(ActionType.COMMAND, "")


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """One target of a tool call, and the arguments of a call with this target alone."""

    target: ToolTarget
    arguments: Mapping[str, Any]


def list_guarded_calls(tool: str, arguments: Mapping[str, Any], *, is_whole: bool) -> list[GuardedCall]:
    """Return the targets of a tool call, one for each file of an edit."""
    files = _list_files(tool, arguments) if tool in EDITING else []
    split = [{PATH_NAMES[0]: file} for file in files] if len(files) > 1 else [arguments]
    found = ((find_target_for_guard(tool, part, is_whole=is_whole), part) for part in split)
    return [GuardedCall(target, part) for target, part in found if target is not None]


def _list_files(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the files that an edit names: its own, those of its parts, and those of its patch."""
    values = [arguments.get(name) for name in PATH_NAMES]
    parts = [item for value in arguments.values() if isinstance(value, list) for item in value[:MOST_FILES]]
    values += [item.get(name) for item in parts if isinstance(item, Mapping) for name in PART_PATH_NAMES]
    listed = arguments.get(FILES_NAME)
    values += listed if isinstance(listed, list) else []
    patch = _first_given(arguments, *PATCH_NAMES) if tool == PATCH_TOOL else ""
    files = [file for file in values if isinstance(file, str) and file] + list_patch_files(patch)
    return list(dict.fromkeys(file[: READ_CHARS + 1] for file in files))[:MOST_FILES]


def find_target_for_guard(tool: str, arguments: Mapping[str, Any], *, is_whole: bool) -> ToolTarget | None:
    """Return the target of a tool call, even if its name or arguments were only partly readable."""
    target = _find_commands(arguments) if tool in SHELLS else find_target(tool, arguments)
    if target is not None or tool not in EDITING | SHELLS | {""}:
        return target
    if tool in SHELLS:
        command = extract_command(arguments)
        if len(command) > READ_CHARS:
            # The unreadable part may do more than read.
            return ToolTarget(ActionType.COMMAND, command)
        is_readable = all(_is_command(arguments.get(name)) for name in COMMAND_NAMES)
    else:
        # An edit names its file.
        is_readable = tool not in EDITING or not arguments
    return None if is_whole and is_readable else UNREADABLE


def _find_commands(arguments: Mapping[str, Any]) -> ToolTarget | None:
    """Return the command line of a shell; with its documents only if they contain commands."""
    line, command = _read_line(arguments), extract_command(arguments)
    made = _list_changing(command)
    if line != command and len(line) <= READ_CHARS:
        read = _list_changing(line)
        if len(read) > len(made) or any(invocation.script for invocation in read):
            command, made = line, read
    parts = list_effective_commands(command)
    return ToolTarget(_type_of(parts), command) if made or parts else None


def _list_changing(line: str) -> list[Invocation]:
    return [invocation for invocation in list_invocations(line) if does_more_than_read(invocation)]


def does_more_than_read(invocation: Invocation) -> bool:
    """Return whether a command may change something."""
    if asks_help(invocation):
        return invocation.writes
    words = " ".join(word for word in invocation.words if " " not in word)
    return invocation.writes or bool(list_effective_commands(words))


def _is_command(value: Any) -> bool:
    return all(map(_is_scalar, value if isinstance(value, list) else [value]))


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, list | Mapping)


def find_target(tool: str, arguments: Mapping[str, Any]) -> ToolTarget | None:
    """Return the target of a tool call, None if it only reads or names no target."""
    if tool in EDITING:
        file = _first_given(arguments, *PATH_NAMES)[: READ_CHARS + 1]
        file = file or next(iter(_list_files(tool, arguments)), "")
        return ToolTarget(ActionType.EDIT, file) if file else None
    if tool in SHELLS:
        command = extract_command(arguments)
        parts = list_effective_commands(command)
        return ToolTarget(_type_of(parts), command) if parts else None
    if tool.startswith(OTHER_SERVERS_TOOL) and not tool.startswith(OWN_TOOLS):
        return ToolTarget(ActionType.COMMAND, tool)
    return None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a tool call: the output of a failed call, and the text that an edit replaced."""

    ok: bool
    exit_code: int | None = None
    output: str = ""
    replaced: str = ""


def recognize_action(
    session_id: str, agent_id: str | None, at: str, tool: str, arguments: Mapping[str, Any], *, ok: bool, cwd: str = ""
) -> Action | None:
    """Return the action of a tool call, None if it only reads; paths of files below `cwd` are relative to it."""
    action = describe_action(session_id, agent_id, at, tool, arguments, Outcome(ok), cwd)
    return None if action is None or action.type is ActionType.READ else action


def describe_action(
    session_id: str, agent_id: str | None, at: str, tool: str, arguments: Mapping[str, Any], outcome: Outcome, cwd: str
) -> Action | None:
    """Return the action of a tool call with its outcome, None if no shell ran and nothing could change."""
    command = extract_command(arguments) if tool in SHELLS else ""
    touch = find_target(tool, arguments) or (ToolTarget(ActionType.READ, command) if command else None)
    if tool in SHELLS and not outcome.ok and outcome.exit_code == 1 and _only_compares(command):
        outcome = Outcome(ok=True, exit_code=1)
    # Other servers' tools can do anything; only their failures are worth recording.
    if touch is None or (outcome.ok and tool.startswith(OTHER_SERVERS_TOOL)):
        return None
    target = touch.target
    if touch.type is ActionType.EDIT and cwd and target.startswith(f"{cwd.rstrip('/')}/"):
        target = target[len(cwd.rstrip("/")) + 1 :]
    # Cut after the redaction: half a secret would not be recognized.
    text = redact(normalize_text(target[:READ_CHARS])).text
    if len(target) > READ_CHARS:
        text = text[:-CUT_CHARS]
    safe = " ".join(text.split())[:MAX_TARGET_CHARS]
    if not safe:
        return None
    action = Action(at, session_id, agent_id, tool[:MAX_TOOL_CHARS], touch.type, safe, outcome.ok, outcome.exit_code)
    return _add_outcome(action, outcome)


def _add_outcome(action: Action, outcome: Outcome) -> Action:
    if outcome.ok:
        replaced = (
            hashlib.sha256(outcome.replaced.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            if outcome.replaced
            else None
        )
        return replace(action, replaced_hash=replaced if action.type is ActionType.EDIT else None)
    # Redact before the cut, as above.
    error = pick_error(redact(normalize_text(cut_middle(outcome.output, 2 * READ_CHARS))).text)
    return replace(action, error=error or None, error_signature=sign_error(error))


def split_commands(command: str) -> list[str]:
    """Return the simple commands of a command line, without quoted texts, prefixes and output to nowhere."""
    text = _without_quotations(_without_documents(command[:READ_CHARS]), is_cut=len(command) > READ_CHARS)
    bare = _NOWHERE.sub(lambda match: match["number"] or " ", text)
    parts = (_without_prefix(part.strip()).strip() for part in _SEGMENT.split(bare))
    return [part for part in parts if part.strip("(){}") and not part.startswith("#")]


def _only_compares(command: str) -> bool:
    """Return whether the exit code 1 of a command line is an answer, such as "no match" or "they differ"."""
    commands = split_shell_commands(command[:READ_CHARS])
    sources = [id(made.source) for made in commands if made.source is not None]
    # The exit code of a pipe is that of its last command.
    lines = [" ".join(made.words) for made in commands if id(made) not in sources]
    compared = [COMPARING.match(line) is not None for line in lines]
    return any(compared) and all(
        compares or not list_effective_commands(line) for line, compares in zip(lines, compared, strict=True)
    )


def _without_documents(text: str) -> str:
    return _DOCUMENT.sub(_empty_document, text)


def _empty_document(document: re.Match[str]) -> str:
    if document["empty"] is not None:
        return document[0]
    # The marker of an unclosed here-document would swallow the commands after it.
    has_more = _MORE.match(document.string, document.end()) is not None
    return document[3] if has_more else f"<<{document[2]}{document[3]}"


def _without_quotations(text: str, *, is_cut: bool) -> str:
    if is_cut:
        # A part that is open at the end was closed beyond the cut.
        return _OPEN_APOSTROPHE.sub('""', _QUOTED.sub('""', text))
    # An unclosed quotation is none, and only an apostrophe can close inside it.
    return _QUOTED.sub(
        lambda match: '""' if match["open"] is None else _APOSTROPHES.sub('""', match[0]),
        text,
    )


def _without_prefix(part: str) -> str:
    # A prefix needs a following word; without this check the search would be quadratic in the last word.
    last = part.rsplit(maxsplit=1)[-1] if part else ""
    before = part.removesuffix(last)
    return _PREFIX.sub("", before, count=1) + last


def list_effective_commands(command: str) -> list[str]:
    """Return the simple commands of a command line that do more than read."""
    # Output redirected to a file changes that file.
    return [part for part in split_commands(command) if LOOKING.match(part) is None or ">" in part]


def _type_of(parts: list[str]) -> ActionType:
    plain = _without_runners(parts)
    for pattern, action_type in ((COMMIT, ActionType.COMMIT), (DEPLOY, ActionType.DEPLOY), (TEST, ActionType.TEST)):
        if any(pattern.match(part) for part in plain):
            return action_type
    return ActionType.COMMAND


def _without_runners(parts: list[str]) -> list[str]:
    return [RUNNER.sub("", part, count=1) for part in parts]


def find_test_run(command: str) -> tuple[str, frozenset[str]]:
    """Return the test program of a command line, and its arguments."""
    for part in _without_runners(split_commands(command)):
        if TEST.match(part):
            program, *words = part.split()
            return program, frozenset(word for word in words if not word.startswith("-"))
    return command, frozenset()


def repeats_action(now: Action, before: Action) -> bool:
    """Return whether an action repeats an earlier one: the same command, the same tests, or all tests."""
    if now.target == before.target:
        return True
    if now.type is not ActionType.TEST or before.type is not ActionType.TEST:
        return False
    (program, tested), (failing, failed) = find_test_run(now.target), find_test_run(before.target)
    return program == failing and (not tested or tested == failed)


def extract_command(arguments: Mapping[str, Any]) -> str:
    """Return a shell's command line, with only the first line of a here-document."""
    text = _SUBSTITUTED_DOCUMENT.sub(_quote_document, _read_line(arguments))
    text = _MESSAGE.sub(lambda match: f'{match[1]}"{_first_line(match[3])}"', text)
    return _without_documents(text).strip()


def _read_line(arguments: Mapping[str, Any]) -> str:
    command = next((arguments[name] for name in COMMAND_NAMES if arguments.get(name) is not None), "")
    if isinstance(command, list) and _is_command(command):
        words = [str(word) for word in command]
        # A shell with a script as argument: the script is the command.
        is_shell = len(words) == 3 and PurePath(words[0]).name in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc")
        command = words[2] if is_shell else " ".join(words)
    return cut_middle(str(command or ""), 4 * READ_CHARS).strip() if _is_command(command) else ""


def cut_middle(text: str, most: int) -> str:
    """Return the start and the end of a text that is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most // 2]}\n{text[-most // 2 :]}"


def shorten_command(command: str) -> str:
    """Return a command in the length that is shown."""
    return shorten(command, LONGEST_COMMAND)


def find_commit_subject(command: str) -> str:
    """Return a commit's subject in the length that is shown, empty if its command has none."""
    match = _SUBJECT.search(command)
    return "" if match is None else next(text for text in match.groups() if text)[:LONGEST_SUBJECT].rstrip(". ")


def mentions_action(action: Action, text: str) -> bool:
    """Return whether a text mentions an action: its file, command or subject."""
    if action.type is ActionType.EDIT:
        return re.search(rf"(?<![\w./-]){re.escape(action.target)}(?![\w/-]|\.\w)", text) is not None
    subject = find_commit_subject(action.target) if action.type is ActionType.COMMIT else ""
    return f"`{shorten_command(action.target)}`" in text or bool(subject and subject in text)


def _quote_document(document: re.Match[str]) -> str:
    if document["closed"] is None:
        return document[0]
    # A quoted text that is followed by other text keeps its quotes.
    before = (document[1] or "") if document["quote"] is None else ""
    return f'{before}"{_first_line(document["text"])}"'


def _first_line(text: str) -> str:
    return next((line.strip().replace('"', "'") for line in text.splitlines() if line.strip()), "")


def _first_given(arguments: Mapping[str, Any], *names: str) -> str:
    return next((str(arguments[name]) for name in names if arguments.get(name) and _is_scalar(arguments[name])), "")


def is_worth_storing(workspace: Workspace, action: Action) -> bool:
    """Return whether to store an action; most commands only read, and they neither create nor lock a store."""
    if action.type is not ActionType.READ:
        return True
    if not workspace.exists:
        return not action.ok and action.error_signature is not None
    with workspace.database.read() as db:
        return agent_sessions.is_worth_storing(db, action)
