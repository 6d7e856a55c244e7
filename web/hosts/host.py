"""A host: how it is detected, which entries go into which file, and the parts that hosts share.

A header in a user's file is the same in every project, and a token in a header would be stored in a file of the host.
Therefore a user's files start `reverie mcp`, which reads the token and finds the workspace of its folder. A project's
files contain the workspace of a team server and the name of a variable for the token.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from types import MappingProxyType
from typing import Any, Literal

from config.paths import WORKSPACE_HEADER
from web.hooks.client import HEADERS, HOOK_CLIENT
from web.hosts.entries import HookEntry, HostEntry, JsonMember, NamedHooks, PluginFile, RulesBlock, TomlTable
from web.hosts.environment import MAIN, HostEnvironment, Installation, RemoteServer

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

# Amp, opencode, pi or Zed read these only in a project without AGENTS.md.
HIDDEN_BY_AGENTS = ("AGENT.md", "CLAUDE.md", "CONTEXT.md", "GEMINI.md")

CONNECTIONS: Mapping[str, tuple[type, ...]] = {
    "hooks": (HookEntry, NamedHooks, PluginFile),
    "tools": (JsonMember, TomlTable),
    "rules": (RulesBlock,),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A file of a host, and the entries that setup writes into it."""

    path: Path
    format: Literal["json", "toml", "yaml", "block", "plugin"]
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
    package: str = ""
    """The npm package of the program that `make test-hosts` runs; empty if no test runs the host."""

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
    return len(words) >= 2 and is_program(words[0], MAIN) and words[1] == "mcp"


def is_program(word: Any, program: str) -> bool:
    """Return whether a word is the name or the path of a program."""
    # Accept paths of both platforms: a settings file may be copied to another machine.
    return isinstance(word, str) and PureWindowsPath(word).name.removesuffix(".exe") == program


def compose_rules(server: RemoteServer | None) -> str:
    """Return the text about Reverie for a host's rules file."""
    return _RULES.format(place="this machine" if server is None else "the team's server")


def rules_target(reverie: Installation, path: Path, head: str = "") -> Target:
    """Return a rules file with Reverie's block; `head` starts a file that is created for it."""
    return Target(path, "block", (RulesBlock(compose_rules(reverie.server), head),))


def list_agents_rules(
    host_env: HostEnvironment, reverie: Installation, folder: Path, names: Sequence[str]
) -> tuple[list[Target], tuple[str, ...]]:
    """Return the rules of a host that reads the first of these files, by default AGENTS.md, and remarks.

    A project gets no AGENTS.md that would hide its rules from another agent.
    """
    rules = find_existing(folder, names, "AGENTS.md")
    hidden = [name for name in HIDDEN_BY_AGENTS if (folder / name).is_file()]
    if host_env.project is None or rules.is_file() or not hidden:
        return [rules_target(reverie, rules)], ()
    return [], (f"no rules were written: with an AGENTS.md, other agents would stop reading {hidden[0]}",)


def stdio_server(host_env: HostEnvironment, reverie: Installation, **more: Any) -> dict[str, Any]:
    """Return the usual MCP entry of a stdio server."""
    variables = reverie.variables_for(host_env)
    return (
        more
        | {"command": reverie.program(host_env, MAIN), "args": ["mcp", *reverie.server_arguments]}
        | ({"env": variables} if variables else {})
    )


def mcp_target(path: Path, key: str, server: Mapping[str, Any]) -> Target:
    """Return a JSON file with the MCP entry under a key."""
    entry, other = server_entries(key, server)
    return Target(path, "json", (entry,), obsolete=(other,))


def server_entries(key: str, server: Mapping[str, Any]) -> tuple[JsonMember, JsonMember]:
    """Return the MCP entry and the entry of the other form (a program instead of an address, or the reverse)."""
    recognize, other = (is_remote, is_our_server) if is_remote(server) else (is_our_server, is_remote)
    return JsonMember((key,), NAME, server, recognize), JsonMember((key,), NAME, {}, other)


def project_server(host_env: HostEnvironment, reverie: Installation) -> RemoteServer | None:
    """Return the team server, if a project's files should contain its address."""
    return None if host_env.project is None else reverie.server


def server_of_project(
    host_env: HostEnvironment,
    reverie: Installation,
    reference: str,
    team: Mapping[str, str] = MappingProxyType({}),
    local: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the MCP entry with the address of a project's team server, or else that of a stdio server.

    `reference` is the host's syntax for the token's variable; `team` and `local` are options of either entry.
    """
    server = project_server(host_env, reverie)
    if server is None:
        return stdio_server(host_env, reverie, **local)
    return describe_with_headers(server, reference, **team)


def find_existing(root: Path, names: Sequence[str], otherwise: str) -> Path:
    """Return the first of these files that exists, else the default."""
    return root / next((name for name in names if (root / name).is_file()), otherwise)


PATH = "/mcp"
# Each user of a project's files has another token.
TOKEN_VARIABLE = "TEAM_MEMORY_TOKEN"  # noqa: S105 - a variable's name
# An earlier setup wrote an entry with this program for the headers.
_HELPER = re.compile(rf"(?:^|[\\/\s'\"]){re.escape(HOOK_CLIENT)}(?:\.exe)?['\"]?\s+{HEADERS}\s")


def describe_with_headers(server: RemoteServer, reference: str, **options: str) -> dict[str, Any]:
    """Return an entry for a project; `reference` is the host's syntax for the value of a variable."""
    return {
        **options,
        "url": server.url + PATH,
        "headers": {"Authorization": f"Bearer {reference}"} | _workspace(server),
    }


def describe_for_codex(server: RemoteServer) -> dict[str, Any]:
    """Return the entry for Codex, which takes the variable's name."""
    return {
        "url": server.url + PATH,
        "bearer_token_env_var": TOKEN_VARIABLE,
        "http_headers": _workspace(server),
    }


def is_remote(value: Any) -> bool:
    """Return whether an MCP entry is Reverie's entry for a team server, by its address and headers."""
    if not isinstance(value, Mapping):
        return False
    url = value.get("url") or value.get("httpUrl")
    if not (isinstance(url, str) and url.endswith(PATH)):
        return False
    headers = value.get("headers") or value.get("http_headers") or {}
    if isinstance(headers, Mapping) and WORKSPACE_HEADER in headers:
        return True
    return _HELPER.search(str(value.get("headersHelper", ""))) is not None


def _workspace(server: RemoteServer) -> dict[str, str]:
    return {} if server.workspace is None else {WORKSPACE_HEADER: server.workspace}
