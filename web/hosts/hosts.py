"""The hosts that `reverie setup` knows: how each is found, and what stands where."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from web.hosts.entries import Block, Entry, Hook, Key, Member, Table
from web.hosts.machine import (
    CLIENT_OPTIONS,
    CODEX_NOTIFY_CLIENT,
    MAIN,
    SESSION_START_CLIENT,
    TOKEN_VARIABLE,
    Machine,
    Reverie,
)
from web.hosts.rules import RULES

HOOK_PATH = "/hooks/claude-code"
NAME = "reverie"

# Claude Code leaves out a whole settings file in which it does not know an event or a type of handler.
SESSION_START_SINCE = (1, 0, 62)
HTTP_HOOKS_SINCE = (2, 1, 63)
HOOK_TIMEOUT_S = 2
EVENTS = {
    "UserPromptSubmit": HOOK_TIMEOUT_S,
    "PreToolUse": HOOK_TIMEOUT_S,
    "PostToolUse": HOOK_TIMEOUT_S,
    "PostToolUseFailure": HOOK_TIMEOUT_S,
    "PreCompact": HOOK_TIMEOUT_S,
    "Stop": HOOK_TIMEOUT_S,
    # All hooks of this event share 1.5 s.
    "SessionEnd": 1,
}

# The client with its options, each of a word as a shell reads it, quoted in part or as a whole.
_CLIENT_AT_END = re.compile(
    rf"(?:^|[\\/\s'\"]){re.escape(SESSION_START_CLIENT)}(?:\.exe)?['\"]?"
    rf"(?:\s+--(?:{'|'.join(CLIENT_OPTIONS)})\s+(?:\"[^\"]*\"|'[^']*'|[^\s'\"])+)*\s*$"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A file of a host and what is written into it."""

    path: Path
    format: Literal["json", "toml", "block"]
    entries: tuple[Entry, ...]
    secret: bool = False
    """Whether the entries hold the token."""
    remarks: tuple[str, ...] = ()
    obsolete: tuple[Entry, ...] = ()
    """What an earlier setup may have written that the host cannot read now."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its name, the programs and the folder by which it is found, and its files."""

    name: str
    title: str
    programs: tuple[str, ...]
    folder: Callable[[Machine], Path]
    targets: Callable[[Machine, Reverie], Sequence[Target]]

    def is_found(self, machine: Machine) -> bool:
        """Tell whether the host is installed: its folder or one of its programs is there."""
        return self.folder(machine).is_dir() or any(machine.which(name) is not None for name in self.programs)


def is_our_server(value: Any) -> bool:
    """Tell whether an MCP entry starts Reverie, however the host writes it down."""
    if not isinstance(value, Mapping):
        return False
    command = value.get("command")
    words = list(command) if isinstance(command, list) else [command, *(value.get("args") or ())]
    return len(words) >= 2 and _names(words[0], MAIN) and words[1] == "mcp"


def is_our_hook(value: Any) -> bool:
    """Tell whether a handler of a Claude Code hook is Reverie's, whatever its address and token were."""
    url, headers, command = (value.get(key) for key in ("url", "headers", "command"))
    if isinstance(url, str):
        authorization = headers.get("Authorization") if isinstance(headers, Mapping) else None
        return re.fullmatch(rf"https?://[^/]+{HOOK_PATH}", url) is not None and str(authorization).startswith("Bearer ")
    return isinstance(command, str) and _ends_in_client(command)


def is_our_notify(value: Any) -> bool:
    """Tell whether Codex's notify program is Reverie's."""
    return isinstance(value, list) and bool(value) and _names(value[0], CODEX_NOTIFY_CLIENT)


def _names(word: Any, program: str) -> bool:
    # A path of either platform: a settings file may travel.
    return isinstance(word, str) and PureWindowsPath(word).name.removesuffix(".exe") == program


def _ends_in_client(command: str) -> bool:
    return _CLIENT_AT_END.search(command) is not None


def _rules(path: Path, head: str = "") -> Target:
    return Target(path, "block", (Block(RULES, head),))


def _server(machine: Machine, reverie: Reverie, **more: Any) -> dict[str, Any]:
    """Return the usual MCP entry of a server on standard input and output."""
    variables = reverie.environment(machine)
    return (
        more | {"command": reverie.program(machine, MAIN), "args": ["mcp"]} | ({"env": variables} if variables else {})
    )


def _mcp(path: Path, place: str, server: Mapping[str, Any]) -> Target:
    return Target(path, "json", (Member((place,), NAME, server, is_our_server),))


def _first_that_exists(root: Path, names: Sequence[str], otherwise: str) -> Path:
    return root / next((name for name in names if (root / name).is_file()), otherwise)


def _claude_folder(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def _claude_code(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    folder = _claude_folder(machine)
    if machine.project is not None:
        settings, server, rules = (
            machine.project / name for name in (".claude/settings.json", ".mcp.json", "CLAUDE.md")
        )
    else:
        # Beside its folder, but within one that the variable names, were it the usual one.
        server = machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"
        settings, rules = folder / "settings.json", folder / "CLAUDE.md"
    hooks = _claude_hooks(machine, reverie, settings)
    return [hooks, _mcp(server, "mcpServers", _server(machine, reverie, type="stdio")), _rules(rules)]


def _claude_hooks(machine: Machine, reverie: Reverie, settings: Path) -> Target:
    version = machine.version("claude")
    command = _command_line([reverie.program(machine, SESSION_START_CLIENT), *reverie.options(machine)], machine)
    session_start = Hook(
        "SessionStart", {"type": "command", "command": command, "timeout": HOOK_TIMEOUT_S}, is_our_hook
    )
    hooks = _http_hooks(machine, reverie)
    if version is not None and version < HTTP_HOOKS_SINCE:
        told = ".".join(map(str, version))
        needed = ".".join(map(str, HTTP_HOOKS_SINCE))
        kept = (session_start,) if version >= SESSION_START_SINCE else ()
        remark = f"Claude Code {told} knows no HTTP hooks; after an update to {needed} run the setup again"
        return Target(settings, "json", kept, remarks=(remark,), obsolete=tuple(hooks))
    if machine.project is None:
        return Target(settings, "json", (session_start, *hooks), secret=True)
    export = f"the hooks of a project take the token from the environment: export {TOKEN_VARIABLE}=…"
    return Target(settings, "json", (session_start, *hooks), remarks=(f"{export} (`reverie token --show`)",))


def _command_line(words: Sequence[str], machine: Machine) -> str:
    if machine.platform == "win32":
        return " ".join(f'"{word}"' if " " in word else word for word in words)
    return shlex.join(words)


def _http_hooks(machine: Machine, reverie: Reverie) -> list[Hook]:
    handler: dict[str, Any] = {"type": "http", "url": f"{reverie.url}{HOOK_PATH}"}
    if machine.project is None:
        handler["headers"] = {"Authorization": f"Bearer {reverie.token}"}
    else:
        # What stands in a project is shared with whoever gets the project.
        handler["headers"] = {"Authorization": f"Bearer ${TOKEN_VARIABLE}"}
        handler["allowedEnvVars"] = [TOKEN_VARIABLE]
    return [Hook(event, handler | {"timeout": timeout}, is_our_hook) for event, timeout in EVENTS.items()]


def _codex_folder(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", machine.home / ".codex")


def _codex(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    server = Table(("mcp_servers", NAME), _server(machine, reverie), is_our_server)
    if machine.project is not None:
        # Codex takes no notify program from a project.
        return [
            Target(machine.project / ".codex" / "config.toml", "toml", (server,)),
            _rules(machine.project / "AGENTS.md"),
        ]
    # Codex adds its notification behind these words.
    program = [reverie.program(machine, CODEX_NOTIFY_CLIENT), *reverie.options(machine)]
    notify = Key("notify", program, is_our_notify)
    folder = _codex_folder(machine)
    return [Target(folder / "config.toml", "toml", (notify, server)), _rules(folder / "AGENTS.md")]


def _cursor(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    server = _server(machine, reverie)
    if machine.project is None:
        # A user's rules live inside the program.
        return [_mcp(machine.home / ".cursor" / "mcp.json", "mcpServers", server)]
    head = "---\ndescription: Memory of this project\nalwaysApply: true\n---\n"
    return [
        _mcp(machine.project / ".cursor" / "mcp.json", "mcpServers", server),
        _rules(machine.project / ".cursor" / "rules" / "reverie.mdc", head),
    ]


def _vscode(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    server = _server(machine, reverie, type="stdio")
    head = '---\ndescription: Memory of this project\napplyTo: "**"\n---\n'
    if machine.project is None:
        folder = _vscode_folder(machine)
        return [
            _mcp(folder / "mcp.json", "servers", server),
            _rules(folder / "prompts" / "reverie.instructions.md", head),
        ]
    return [
        _mcp(machine.project / ".vscode" / "mcp.json", "servers", server),
        _rules(machine.project / ".github" / "instructions" / "reverie.instructions.md", head),
    ]


def _vscode_folder(machine: Machine) -> Path:
    return machine.application_data / "Code" / "User"


def _windsurf_folder(machine: Machine) -> Path:
    return machine.home / ".codeium" / "windsurf"


def _windsurf(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    if machine.project is not None:
        # It knows no MCP servers of a project.
        return [
            _rules(machine.project / ".windsurf" / "rules" / "reverie.md", "---\ntrigger: always_on\n---\n"),
        ]
    folder = _windsurf_folder(machine)
    return [
        _mcp(folder / "mcp_config.json", "mcpServers", _server(machine, reverie)),
        _rules(folder / "memories" / "global_rules.md"),
    ]


def _gemini(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    root = machine.home if machine.project is None else machine.project
    rules = root / ".gemini" / "GEMINI.md" if machine.project is None else root / "GEMINI.md"
    return [_mcp(root / ".gemini" / "settings.json", "mcpServers", _server(machine, reverie)), _rules(rules)]


def _zed_folder(machine: Machine) -> Path:
    return machine.application_data / "Zed" if machine.platform == "win32" else machine.configuration / "zed"


# Zed reads the first of these that a project has: a new one before it would hide what is there.
ZED_RULES = (
    ".rules",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    "AGENT.md",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
)


def _zed(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    # `source` is what older versions tell a server of the user's own by.
    server = _server(machine, reverie, source="custom")
    if machine.project is None:
        folder = _zed_folder(machine)
        return [_mcp(folder / "settings.json", "context_servers", server), _rules(folder / "AGENTS.md")]
    return [
        _mcp(machine.project / ".zed" / "settings.json", "context_servers", server),
        _rules(_first_that_exists(machine.project, ZED_RULES, "AGENTS.md")),
    ]


def _opencode_folder(machine: Machine) -> Path:
    return machine.configuration / "opencode"


def _opencode(machine: Machine, reverie: Reverie) -> Sequence[Target]:
    folder = _opencode_folder(machine) if machine.project is None else machine.project
    variables = reverie.environment(machine)
    server = {
        "type": "local",
        "command": [reverie.program(machine, MAIN), "mcp"],
        "enabled": True,
    } | ({"environment": variables} if variables else {})
    rules = _first_that_exists(folder, ("AGENTS.md", "CLAUDE.md"), "AGENTS.md")
    claude = _claude_folder(machine) / "CLAUDE.md"
    if machine.project is None and not rules.is_file() and claude.is_file():
        # It reads Claude Code's rules as long as it has none of its own.
        rules = claude
    settings = _first_that_exists(folder, ("opencode.jsonc", "opencode.json"), "opencode.json")
    return [_mcp(settings, "mcp", server), _rules(rules)]


HOSTS: tuple[Host, ...] = (
    Host("claude-code", "Claude Code", ("claude",), _claude_folder, _claude_code),
    Host("codex", "Codex", ("codex",), _codex_folder, _codex),
    Host("cursor", "Cursor", ("cursor",), lambda m: m.home / ".cursor", _cursor),
    Host("vscode", "VS Code", ("code",), _vscode_folder, _vscode),
    Host("windsurf", "Windsurf", ("windsurf",), _windsurf_folder, _windsurf),
    Host("gemini", "Gemini CLI", ("gemini",), lambda m: m.home / ".gemini", _gemini),
    Host("zed", "Zed", ("zed", "zeditor"), _zed_folder, _zed),
    Host("opencode", "opencode", ("opencode",), _opencode_folder, _opencode),
)
BY_NAME: Mapping[str, Host] = {host.name: host for host in HOSTS}
