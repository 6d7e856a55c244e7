"""The hooks of hosts: events, commands, and how to recognize Reverie's handlers."""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from web.hooks.client import HOOK_CLIENT, SERVER_OPTION, VARIABLE_OPTIONS
from web.hosts.entries import HookEntry, NamedHooks
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import NAME, is_program

# Longer than the client's own limits. A prompt may have to wait until the stack has started. Without a timeout, Claude
# Code ends a SessionEnd hook after 1.5 s.
TIMEOUT_S = 3
TIMEOUTS_S = {"UserPromptSubmit": 6, "BeforeAgent": 6, "beforeSubmitPrompt": 6}
CLAUDE_CODE = "claude-code"
CODEX = "codex"
GEMINI = "gemini"
QWEN_CODE = "qwen-code"
COPILOT = "copilot"
CURSOR = "cursor"
ANTIGRAVITY = "antigravity"
# Cursor reads a project's hooks only with this version.
CURSOR_HEAD = '{\n  "version": 1\n}\n'
CLINE = "cline"
OPENCODE = "opencode"
KILO = "kilo"
PI = "pi"

_CLAUDE_CODE_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "Stop",
    "SessionEnd",
)
_PLUGIN_EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop")
EVENTS: Mapping[str, tuple[str, ...]] = {
    CLAUDE_CODE: (*_CLAUDE_CODE_EVENTS, "SubagentStart", "SubagentStop"),
    QWEN_CODE: _CLAUDE_CODE_EVENTS,
    COPILOT: _CLAUDE_CODE_EVENTS,
    # Codex's other events do not say whether a tool failed; its notification does.
    CODEX: ("SessionStart", "UserPromptSubmit", "PreToolUse"),
    PI: _CLAUDE_CODE_EVENTS,
    OPENCODE: _PLUGIN_EVENTS,
    KILO: _PLUGIN_EVENTS,
    CLINE: _PLUGIN_EVENTS,
    GEMINI: ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"),
    CURSOR: (
        "sessionStart",
        "beforeSubmitPrompt",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "preCompact",
        "stop",
        "sessionEnd",
    ),
    # The event after a tool does not name the tool.
    ANTIGRAVITY: ("PreInvocation", "PreToolUse", "Stop"),
}

# Commands of Windows work in cmd and in PowerShell: hosts differ in which of them they use.
_WINDOWS_NAME_GUARD = 'cmd /d /c "'
_WINDOWS_NAME_END = ' || exit 0"'

_OPTIONS = "|".join((SERVER_OPTION, *(f"--{name}" for name in VARIABLE_OPTIONS)))
# The client with its host and options; a shell may quote any of these words.
_CLIENT_AT_END = re.compile(
    rf"(?:^|[\\/\s'\"]){re.escape(HOOK_CLIENT)}(?:\.exe)?['\"]?\s+(?:{'|'.join(EVENTS)})"
    rf"(?:\s+(?:{_OPTIONS})\s+(?:\"[^\"]*\"|'[^']*'|[^\s'\"])+)*\s*(?:{re.escape(_WINDOWS_NAME_END.strip())})?$"
)


def list_hooks(host: str, host_env: HostEnvironment, reverie: Installation) -> tuple[HookEntry, ...]:
    """Return the handlers for a host's events."""
    handler = _describe_handler(host, host_env, reverie)
    is_flat, head = host == CURSOR, CURSOR_HEAD if host == CURSOR else ""
    if host in (GEMINI, QWEN_CODE):
        # `/hooks` lists the handler under this name, and `/hooks disable reverie` turns it off.
        handler = {"name": NAME} | handler
    entries = []
    for event in EVENTS[host]:
        seconds = TIMEOUTS_S.get(event, TIMEOUT_S)
        timeout = seconds * 1000 if host == GEMINI else seconds
        entries.append(HookEntry(event, handler | {"timeout": timeout}, is_our_hook, is_flat, head))
    return tuple(entries)


def _describe_handler(host: str, host_env: HostEnvironment, reverie: Installation) -> dict[str, Any]:
    words = [reverie.program(host_env, HOOK_CLIENT), host, *reverie.options(host_env)]
    return {"type": "command", "command": _command_line(words, host, host_env.platform)}


def describe_named_hooks(host: str, host_env: HostEnvironment, reverie: Installation) -> NamedHooks:
    """Return the handlers for the events of a host that groups them by name."""
    handler = _describe_handler(host, host_env, reverie) | {"timeout": TIMEOUT_S}
    tools = {event for event in EVENTS[host] if event.endswith("ToolUse")}
    value = {event: [{"matcher": "*", "hooks": [handler]} if event in tools else handler] for event in EVENTS[host]}
    return NamedHooks((), NAME, value, is_our_named_hooks)


def is_our_hook(value: Any) -> bool:
    """Return whether an event handler is Reverie's."""
    command = value.get("command")
    return isinstance(command, str) and _CLIENT_AT_END.search(command) is not None


def is_our_named_hooks(value: Any) -> bool:
    """Return whether handlers under a name are Reverie's."""
    events = value.values() if isinstance(value, Mapping) else ()
    groups = [group for event in events if isinstance(event, list) for group in event if isinstance(group, Mapping)]
    inner = [handlers for group in groups if isinstance(handlers := group.get("hooks"), list)]
    handlers = [*groups, *(handler for group in inner for handler in group if isinstance(handler, Mapping))]
    return any(map(is_our_hook, handlers))


def read_client_words(command: str, platform: str) -> list[str]:
    """Return the hook client and its arguments in a command, if it has any; raise ValueError for an open quote."""
    if platform == "win32":
        plain = command.removeprefix(_WINDOWS_NAME_GUARD).removesuffix(_WINDOWS_NAME_END)
        words = [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', plain)]
    else:
        words = shlex.split(command)
    starts = (n for n, pair in enumerate(pairwise(words)) if is_program(pair[0], HOOK_CLIENT) and pair[1] in EVENTS)
    start = next(starts, len(words))
    return words[start:]


def _command_line(words: Sequence[str], host: str, platform: str) -> str:
    """Return the command that runs a program, or does nothing if the program was removed.

    Otherwise, hosts show the error of the shell at each event until the command is removed too.
    """
    if platform != "win32":
        return _posix_command_line(shlex.quote(words[0]), shlex.join(words))
    # The quotes also protect backslashes from bash, in which Claude Code runs hooks.
    quoted = [f'"{word}"' if " " in word or "\\" in word else word for word in words]
    program, line = quoted[0], " ".join(quoted)
    if host == CLAUDE_CODE:
        return _posix_command_line(program, line)
    if _is_path(program):
        return f"cmd /d /c if exist {program} {line}"
    return f"{_WINDOWS_NAME_GUARD}where /q {program} && {line}{_WINDOWS_NAME_END}"


def _posix_command_line(program: str, line: str) -> str:
    is_missing = f"[ ! -x {program} ]" if _is_path(program) else f"! command -v {program} >/dev/null"
    return f"{is_missing} || exec {line}"


def _is_path(program: str) -> bool:
    return "/" in program or "\\" in program


# The value of `act_context` for a host whose agent never reads it.
NOT_AT_ALL = "not at all"


@cache
def load_behavior() -> Mapping[str, Mapping[str, Any]]:
    """Return the observations of each host."""
    return tomllib.loads(Path(__file__).with_name("behavior.toml").read_text(encoding="utf-8"))


def reads_context_of_acts(host: str) -> bool:
    """Return whether the agent of a host was seen to read what a hook before a tool adds."""
    return str(load_behavior().get(host, {}).get("act_context", NOT_AT_ALL)) != NOT_AT_ALL
