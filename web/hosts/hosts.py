"""The hosts that `reverie setup` supports: how each is detected, and which entries go into which file."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from web.hosts.entries import HookEntry, HostEntry, JsonMember, RulesBlock, TomlKey, TomlTable
from web.hosts.environment import CODEX_NOTIFY_CLIENT, MAIN, HostEnvironment, Installation, RemoteServer
from web.hosts.hook_entries import CLAUDE_CODE, CODEX, GEMINI, list_hooks, list_http_hooks
from web.hosts.team_entries import (
    TOKEN_VARIABLE,
    describe_for_codex,
    describe_with_headers,
    describe_with_helper,
    is_remote,
)

NAME = "reverie"

_RULES = """\
## Memory: Reverie

This project has a memory on {place}, reached through the MCP server `reverie`.

- Call `prepare` with the task's text before any other tool. It returns the lessons, decisions and facts
  for the task. If the task came with a block "From this project's memory", that block is its answer already.
- `recall` answers questions about earlier work: what was decided, tried, or found out.
- `remember_batch` stores a decision, a lesson or a fact once it is settled. Never store secrets.
- Results are evidence with source and time. If they contradict the code or the user, the code or the user is right.
"""

# Claude Code ignores a settings file completely if it contains an unknown event.
EVENTS_SINCE = (2, 1, 63)
CODEX_TRUST_REMARK = (
    "Codex runs hooks only once you trust them: at its next start it says “Hooks need review”; choose “Trust all and"
    " continue”, or look at each with /hooks. It asks again whenever their command changes"
)

CONNECTIONS: Mapping[str, tuple[type, ...]] = {
    "hooks": (HookEntry,),
    "tools": (JsonMember, TomlTable),
    "rules": (RulesBlock,),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A file of a host, and the entries that setup writes into it."""

    path: Path
    format: Literal["json", "toml", "block"]
    entries: tuple[HostEntry, ...]
    remarks: tuple[str, ...] = ()
    obsolete: tuple[HostEntry, ...] = ()
    """Entries of earlier setups that this host no longer needs."""

    @property
    def all_entries(self) -> tuple[HostEntry, ...]:
        """Return all entries that this or an earlier setup may have written."""
        return (*self.obsolete, *self.entries)


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its name, the programs and folder that show that it is installed, and its files."""

    name: str
    title: str
    programs: tuple[str, ...]
    folder: Callable[[HostEnvironment], Path]
    targets: Callable[[HostEnvironment, Installation], Sequence[Target]]
    other_agents: tuple[str, ...] = ()
    """Readers of this host's sessions, in addition to the reader with its name."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Return the names of the readers of this host's sessions."""
        return (self.name, *self.other_agents)

    def list_connections(self, host_env: HostEnvironment, reverie: Installation) -> list[str]:
        """Return what setup connects: hooks, tools (the MCP server) and rules."""
        entries = [entry for target in self.targets(host_env, reverie) for entry in target.entries]
        return [name for name, types in CONNECTIONS.items() if any(isinstance(entry, types) for entry in entries)]

    def is_found(self, host_env: HostEnvironment) -> bool:
        """Return whether the host is installed: its folder or one of its programs exists."""
        return self.folder(host_env).is_dir() or any(host_env.which(name) is not None for name in self.programs)


def is_our_server(value: Any) -> bool:
    """Return whether an MCP entry starts Reverie, in any host's format."""
    if not isinstance(value, Mapping):
        return False
    command = value.get("command")
    words = list(command) if isinstance(command, list) else [command, *(value.get("args") or ())]
    return len(words) >= 2 and _is_program(words[0], MAIN) and words[1] == "mcp"


def is_our_notify(value: Any) -> bool:
    """Return whether Codex's notify program is Reverie's."""
    return isinstance(value, list) and bool(value) and _is_program(value[0], CODEX_NOTIFY_CLIENT)


def _is_program(word: Any, program: str) -> bool:
    # Accept paths of both platforms: a settings file may be copied to another machine.
    return isinstance(word, str) and PureWindowsPath(word).name.removesuffix(".exe") == program


def compose_rules(server: RemoteServer | None) -> str:
    """Return the text about Reverie for a host's rules file."""
    return _RULES.format(place="this machine" if server is None else "the team's server")


def _rules(reverie: Installation, path: Path, head: str = "") -> Target:
    return Target(path, "block", (RulesBlock(compose_rules(reverie.server), head),))


def _server(host_env: HostEnvironment, reverie: Installation, **more: Any) -> dict[str, Any]:
    """Return the usual MCP entry of a stdio server."""
    variables = reverie.variables_for(host_env)
    return (
        more
        | {"command": reverie.program(host_env, MAIN), "args": ["mcp", *reverie.server_arguments]}
        | ({"env": variables} if variables else {})
    )


def _mcp(path: Path, key: str, server: Mapping[str, Any]) -> Target:
    entry, other = _server_entries(key, server)
    return Target(path, "json", (entry,), obsolete=(other,))


def _server_entries(key: str, server: Mapping[str, Any]) -> tuple[JsonMember, JsonMember]:
    """Return the MCP entry and the entry of the other form (a program instead of an address, or the reverse)."""
    recognize, other = (is_remote, is_our_server) if is_remote(server) else (is_our_server, is_remote)
    return JsonMember((key,), NAME, server, recognize), JsonMember((key,), NAME, {}, other)


def _project_server(host_env: HostEnvironment, reverie: Installation) -> RemoteServer | None:
    """Return the team server, if a project's files should contain its address."""
    return None if host_env.project is None else reverie.server


def _first_that_exists(root: Path, names: Sequence[str], otherwise: str) -> Path:
    return root / next((name for name in names if (root / name).is_file()), otherwise)


def _claude_folder(host_env: HostEnvironment) -> Path:
    return host_env.folder("CLAUDE_CONFIG_DIR", host_env.home / ".claude")


def _claude_code(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    folder = _claude_folder(host_env)
    if host_env.project is not None:
        settings, server, rules = (
            host_env.project / name for name in (".claude/settings.json", ".mcp.json", "CLAUDE.md")
        )
    else:
        # The file is next to the default folder, but inside a folder that the variable names.
        server = host_env.folder("CLAUDE_CONFIG_DIR", host_env.home) / ".claude.json"
        settings, rules = folder / "settings.json", folder / "CLAUDE.md"
    hooks = _claude_hooks(host_env, reverie, settings)
    return [
        hooks,
        _claude_server(host_env, reverie, server, (settings, folder / "settings.json")),
        _rules(reverie, rules),
    ]


def _claude_server(host_env: HostEnvironment, reverie: Installation, path: Path, settings: Sequence[Path]) -> Target:
    target = _mcp(path, "mcpServers", _describe_for_claude(host_env, reverie))
    if not any(has_plugin(file) for file in settings):
        return target
    # Claude Code recognizes two servers as the same only by an equal command; otherwise it lists every tool twice.
    remark = "Reverie's plugin brings the MCP server"
    return replace(target, entries=(), obsolete=target.all_entries, remarks=(remark,))


def _describe_for_claude(host_env: HostEnvironment, reverie: Installation) -> dict[str, Any]:
    if reverie.server is None:
        return _server(host_env, reverie, type="stdio")
    if host_env.project is not None:
        return describe_with_headers(reverie.server, f"${{{TOKEN_VARIABLE}}}", "http")
    return describe_with_helper(host_env, reverie, reverie.server)


def has_plugin(settings: Path) -> bool:
    """Return whether Claude Code's settings enable the plugin; unreadable settings are reported later."""
    try:
        enabled = json.loads(settings.read_bytes()).get("enabledPlugins", {})
        return any(value is True and name.partition("@")[0] == NAME for name, value in enabled.items())
    except (OSError, ValueError, AttributeError):
        return False


def _claude_hooks(host_env: HostEnvironment, reverie: Installation, settings: Path) -> Target:
    version = host_env.version("claude")
    if version is None or version >= EVENTS_SINCE:
        return Target(settings, "json", list_hooks(CLAUDE_CODE, host_env, reverie), obsolete=list_http_hooks())
    installed, needed = (".".join(map(str, numbers)) for numbers in (version, EVENTS_SINCE))
    remark = f"Claude Code {installed} does not know every event; after an update to {needed} run the setup again"
    return Target(settings, "json", (), remarks=(remark,), obsolete=list_hooks(CLAUDE_CODE, host_env, reverie))


def _codex_folder(host_env: HostEnvironment) -> Path:
    return host_env.folder("CODEX_HOME", host_env.home / ".codex")


def _codex(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    path, team = ("mcp_servers", NAME), _project_server(host_env, reverie)
    server = TomlTable(path, _server(host_env, reverie), is_our_server)
    other = TomlTable(path, {}, is_remote)
    if team is not None:
        server, other = TomlTable(path, describe_for_codex(team), is_remote), TomlTable(path, {}, is_our_server)
    root = _codex_folder(host_env) if host_env.project is None else host_env.project / ".codex"
    rules = _rules(reverie, (root if host_env.project is None else host_env.project) / "AGENTS.md")
    hooks = Target(root / "hooks.json", "json", list_hooks(CODEX, host_env, reverie), remarks=(CODEX_TRUST_REMARK,))
    # Codex appends its notification to these words.
    program = [reverie.program(host_env, CODEX_NOTIFY_CLIENT), *reverie.options(host_env)]
    notify = TomlKey("notify", program, is_our_notify)
    # Codex reads no notify program from a project.
    entries: tuple[HostEntry, ...] = (server,) if host_env.project is not None else (notify, server)
    return [hooks, Target(root / "config.toml", "toml", entries, obsolete=(other,)), rules]


def _cursor(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    team = _project_server(host_env, reverie)
    server = _server(host_env, reverie) if team is None else describe_with_headers(team, f"${{env:{TOKEN_VARIABLE}}}")
    if host_env.project is None:
        # Cursor stores a user's rules inside the program.
        return [_mcp(host_env.home / ".cursor" / "mcp.json", "mcpServers", server)]
    head = "---\ndescription: Memory of this project\nalwaysApply: true\n---\n"
    return [
        _mcp(host_env.project / ".cursor" / "mcp.json", "mcpServers", server),
        _rules(reverie, host_env.project / ".cursor" / "rules" / "reverie.mdc", head),
    ]


def _vscode(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    team = _project_server(host_env, reverie)
    server = _server(host_env, reverie, type="stdio")
    if team is not None:
        server = describe_with_headers(team, f"${{env:{TOKEN_VARIABLE}}}", "http")
    head = '---\ndescription: Memory of this project\napplyTo: "**"\n---\n'
    if host_env.project is None:
        folder = _vscode_folder(host_env)
        return [
            _mcp(folder / "mcp.json", "servers", server),
            _rules(reverie, folder / "prompts" / "reverie.instructions.md", head),
        ]
    return [
        _mcp(host_env.project / ".vscode" / "mcp.json", "servers", server),
        _rules(reverie, host_env.project / ".github" / "instructions" / "reverie.instructions.md", head),
    ]


def _vscode_folder(host_env: HostEnvironment) -> Path:
    return host_env.application_data / "Code" / "User"


def _windsurf_folder(host_env: HostEnvironment) -> Path:
    return host_env.home / ".codeium" / "windsurf"


def _windsurf(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    if host_env.project is not None:
        # The host has no MCP servers per project.
        return [
            _rules(reverie, host_env.project / ".windsurf" / "rules" / "reverie.md", "---\ntrigger: always_on\n---\n"),
        ]
    folder = _windsurf_folder(host_env)
    return [
        _mcp(folder / "mcp_config.json", "mcpServers", _server(host_env, reverie)),
        _rules(reverie, folder / "memories" / "global_rules.md"),
    ]


def _gemini(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    root = host_env.home if host_env.project is None else host_env.project
    rules = root / ".gemini" / "GEMINI.md" if host_env.project is None else root / "GEMINI.md"
    team = _project_server(host_env, reverie)
    described = _server(host_env, reverie)
    if team is not None:
        # The host accepts a streamable HTTP address only under this name.
        described = describe_with_headers(team, f"${TOKEN_VARIABLE}")
        described = {"httpUrl": described.pop("url")} | described
    server, other = _server_entries("mcpServers", described)
    entries: tuple[HostEntry, ...] = (*list_hooks(GEMINI, host_env, reverie), server)
    return [Target(root / ".gemini" / "settings.json", "json", entries, obsolete=(other,)), _rules(reverie, rules)]


def _zed_folder(host_env: HostEnvironment) -> Path:
    return host_env.application_data / "Zed" if host_env.platform == "win32" else host_env.configuration / "zed"


# Zed reads only the first of these files that a project has; a new file must not hide it.
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


def _zed(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    # Older versions mark a server of the user with `source`.
    server = _server(host_env, reverie, source="custom")
    if host_env.project is None:
        folder = _zed_folder(host_env)
        return [_mcp(folder / "settings.json", "context_servers", server), _rules(reverie, folder / "AGENTS.md")]
    return [
        _mcp(host_env.project / ".zed" / "settings.json", "context_servers", server),
        _rules(reverie, _first_that_exists(host_env.project, ZED_RULES, "AGENTS.md")),
    ]


def _opencode_folder(host_env: HostEnvironment) -> Path:
    return host_env.configuration / "opencode"


def _opencode(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    folder = _opencode_folder(host_env) if host_env.project is None else host_env.project
    variables = reverie.variables_for(host_env)
    server = {
        "type": "local",
        "command": [reverie.program(host_env, MAIN), "mcp", *reverie.server_arguments],
        "enabled": True,
    } | ({"environment": variables} if variables else {})
    team = _project_server(host_env, reverie)
    if team is not None:
        server = describe_with_headers(team, f"{{env:{TOKEN_VARIABLE}}}", "remote") | {"enabled": True}
    rules = _first_that_exists(folder, ("AGENTS.md", "CLAUDE.md"), "AGENTS.md")
    claude = _claude_folder(host_env) / "CLAUDE.md"
    if host_env.project is None and not rules.is_file() and claude.is_file():
        # The host reads Claude Code's rules if it has no rules file.
        rules = claude
    settings = _first_that_exists(folder, ("opencode.jsonc", "opencode.json"), "opencode.json")
    return [_mcp(settings, "mcp", server), _rules(reverie, rules)]


HOSTS: tuple[Host, ...] = (
    Host("claude-code", "Claude Code", ("claude",), _claude_folder, _claude_code),
    Host("codex", "Codex", ("codex",), _codex_folder, _codex),
    Host("cursor", "Cursor", ("cursor",), lambda m: m.home / ".cursor", _cursor),
    Host("vscode", "VS Code", ("code",), _vscode_folder, _vscode, ("vscode-copilot",)),
    Host("windsurf", "Windsurf", ("windsurf",), _windsurf_folder, _windsurf),
    Host("gemini", "Gemini CLI", ("gemini",), lambda m: m.home / ".gemini", _gemini, ("gemini-cli",)),
    Host("zed", "Zed", ("zed", "zeditor"), _zed_folder, _zed),
    Host("opencode", "opencode", ("opencode",), _opencode_folder, _opencode),
)
BY_NAME: Mapping[str, Host] = {host.name: host for host in HOSTS}
