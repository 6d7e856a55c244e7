"""Agents at the command line: their files and the entries that setup writes into them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from web.hosts.claude_code import claude_folder, describe_for_claude
from web.hosts.editors import INSTRUCTIONS, INSTRUCTIONS_HEAD
from web.hosts.entries import HostEntry, JsonMember
from web.hosts.environment import MAIN, HostEnvironment, Installation
from web.hosts.hook_entries import CLINE, COPILOT, GEMINI, OPENCODE, PI, QWEN_CODE, list_hooks
from web.hosts.host import (
    NAME,
    TOKEN_VARIABLE,
    Host,
    Target,
    describe_with_headers,
    find_existing,
    is_our_server,
    list_agents_rules,
    mcp_target,
    project_server,
    rules_target,
    server_entries,
    server_of_project,
    stdio_server,
)
from web.hosts.plugin_file import plugin_target

AMP_APPROVAL = "Amp starts the server of a project only after `amp mcp approve reverie`"
# Amp, opencode and pi read only the first of these files.
AMP_RULES = ("AGENTS.md", "AGENT.md", "CLAUDE.md")
OPENCODE_RULES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
PI_RULES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
# The seconds that a call of a tool may take, as in Goose's own entries.
GOOSE_TIMEOUT_S = 300


def list_gemini_targets(
    host_env: HostEnvironment,
    reverie: Installation,
    host: str,
    folder: Path,
    rules: str,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Sequence[Target]:
    """Return the files of Gemini CLI or of a fork; `folder` is the user's folder, `rules` the name of its rules.

    `options` are a fork's own options of an MCP server.
    """
    settings, text = folder / "settings.json", folder / rules
    if host_env.project is not None:
        settings, text = host_env.project / folder.name / "settings.json", host_env.project / rules
    described = server_of_project(host_env, reverie, f"${TOKEN_VARIABLE}")
    if "url" in described:
        # The host accepts a streamable HTTP address only under this name.
        described = {"httpUrl": described.pop("url")} | described
    server, other = server_entries("mcpServers", {**described, **options})
    entries: tuple[HostEntry, ...] = (*list_hooks(host, host_env, reverie), server)
    return [Target(settings, "json", entries, obsolete=(other,)), rules_target(reverie, text)]


def list_qwen_code_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Qwen Code, a fork of Gemini CLI, with the entries."""
    folder = QWEN_CODE_HOST.folder(host_env) if host_env.project is None else Path(".qwen")
    # Otherwise the model has to search for the tools.
    return list_gemini_targets(host_env, reverie, QWEN_CODE, folder, "QWEN.md", {"alwaysLoadTools": True})


def list_opencode_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of opencode with the entries."""
    folder = OPENCODE_HOST.folder(host_env) if host_env.project is None else host_env.project
    variables = reverie.variables_for(host_env)
    server = {
        "type": "local",
        "command": [reverie.program(host_env, MAIN), "mcp", *reverie.server_arguments],
        "enabled": True,
    } | ({"environment": variables} if variables else {})
    team = project_server(host_env, reverie)
    if team is not None:
        server = describe_with_headers(team, f"{{env:{TOKEN_VARIABLE}}}", type="remote") | {"enabled": True}
    rules, remarks = list_agents_rules(host_env, reverie, folder, OPENCODE_RULES)
    claude = claude_folder(host_env) / "CLAUDE.md"
    if host_env.project is None and not rules[0].path.is_file() and claude.is_file():
        # The host reads Claude Code's rules if it has no rules file.
        rules = [rules_target(reverie, claude)]
    settings = find_existing(folder, ("opencode.jsonc", "opencode.json"), "opencode.json")
    plugins = folder if host_env.project is None else folder / ".opencode"
    plugin = plugin_target(OPENCODE, host_env, reverie, plugins / "plugin" / "reverie.js")
    return [replace(plugin, remarks=remarks), mcp_target(settings, "mcp", server), *rules]


def list_pi_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of pi with the entries."""
    folder = rules = PI_HOST.folder(host_env)
    if host_env.project is not None:
        folder, rules = host_env.project / ".pi", host_env.project
    # Otherwise the model has to search for the tools.
    server = server_of_project(host_env, reverie, f"${{{TOKEN_VARIABLE}}}") | {"exposure": "direct"}
    texts, remarks = list_agents_rules(host_env, reverie, rules, PI_RULES)
    plugin = plugin_target(PI, host_env, reverie, folder / "extensions" / "reverie.js")
    return [replace(plugin, remarks=remarks), mcp_target(folder / "mcp.json", "mcpServers", server), *texts]


def list_cline_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Cline's command line with the entries."""
    folder = CLINE_HOST.folder(host_env) if host_env.project is None else host_env.project / ".cline"
    plugin = plugin_target(CLINE, host_env, reverie, folder / "plugins" / "reverie.js")
    # A new AGENTS.md would hide the rules of other agents.
    rules = rules_target(reverie, folder / "rules" / "reverie.md")
    if host_env.project is not None:
        # The host has no MCP servers per project.
        return [plugin, rules]
    servers = host_env.folder("CLINE_DATA_DIR", folder / "data") / "settings" / "cline_mcp_settings.json"
    return [plugin, mcp_target(servers, "mcpServers", stdio_server(host_env, reverie)), rules]


def list_copilot_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Copilot CLI with the entries."""
    hooks = list_hooks(COPILOT, host_env, reverie)
    if host_env.project is None:
        folder = COPILOT_HOST.folder(host_env)
        # Without `tools` the host shows no tool of a server in this file.
        server = stdio_server(host_env, reverie, type="local") | {"tools": ["*"]}
        return [
            Target(folder / "settings.json", "json", hooks),
            mcp_target(folder / "mcp-config.json", "mcpServers", server),
            rules_target(reverie, folder / "copilot-instructions.md"),
        ]
    return [
        Target(host_env.project / ".github" / "hooks" / "reverie.json", "json", hooks),
        # The file of Claude Code, so the entry is the same.
        mcp_target(host_env.project / ".mcp.json", "mcpServers", describe_for_claude(host_env, reverie)),
        # A new copilot-instructions.md would hide AGENTS.md from Zed.
        rules_target(reverie, host_env.project / INSTRUCTIONS, INSTRUCTIONS_HEAD),
    ]


def _find_goose_folder(host_env: HostEnvironment) -> Path:
    if host_env.platform == "win32":
        return host_env.application_data / "Block" / "goose" / "config"
    return host_env.configuration / "goose"


def list_goose_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Goose with the entries."""
    if host_env.project is not None:
        # The host has no extensions per project. A new AGENTS.md would hide the rules of other agents.
        return [rules_target(reverie, host_env.project / ".goosehints")]
    folder, server = _find_goose_folder(host_env), stdio_server(host_env, reverie)
    extension = {
        "enabled": True,
        "type": "stdio",
        "name": NAME,
        "cmd": server["command"],
        "args": server["args"],
        "envs": server.get("env", {}),
        "timeout": GOOSE_TIMEOUT_S,
    }
    return [
        Target(folder / "config.yaml", "yaml", (JsonMember(("extensions",), NAME, extension, is_our_extension),)),
        rules_target(reverie, folder / ".goosehints"),
    ]


def is_our_extension(value: Any) -> bool:
    """Return whether an extension of Goose starts Reverie."""
    return isinstance(value, Mapping) and is_our_server({"command": value.get("cmd"), "args": value.get("args")})


def list_amp_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Amp with the entries."""
    folder = rules_folder = AMP.folder(host_env)
    if host_env.project is not None:
        folder, rules_folder = host_env.project / ".amp", host_env.project
    settings = find_existing(folder, ("settings.jsonc", "settings.json"), "settings.json")
    rules, remarks = list_agents_rules(host_env, reverie, rules_folder, AMP_RULES)
    # The dot is a part of the key.
    servers = mcp_target(settings, "amp.mcpServers", stdio_server(host_env, reverie))
    if host_env.project is not None:
        servers = replace(servers, remarks=(AMP_APPROVAL, *remarks))
    return [servers, *rules]


GEMINI_HOST = Host(
    GEMINI,
    "Gemini CLI",
    ("gemini",),
    lambda host_env: host_env.home / ".gemini",
    lambda host_env, reverie: list_gemini_targets(host_env, reverie, GEMINI, host_env.home / ".gemini", "GEMINI.md"),
    ("gemini-cli",),
    package="@google/gemini-cli",
)
QWEN_CODE_HOST = Host(
    QWEN_CODE,
    "Qwen Code",
    ("qwen",),
    lambda host_env: host_env.folder("QWEN_HOME", host_env.home / ".qwen"),
    list_qwen_code_targets,
    package="@qwen-code/qwen-code",
)
OPENCODE_HOST = Host(
    OPENCODE,
    "opencode",
    ("opencode",),
    lambda host_env: host_env.configuration / "opencode",
    list_opencode_targets,
    package="opencode-ai",
)
PI_HOST = Host(
    PI,
    "pi",
    ("pi",),
    lambda host_env: host_env.folder("PI_CODING_AGENT_DIR", host_env.home / ".pi" / "agent"),
    list_pi_targets,
    package="@earendil-works/pi-coding-agent",
)
CLINE_HOST = Host(
    CLINE,
    "Cline",
    ("cline",),
    lambda host_env: host_env.folder("CLINE_DIR", host_env.home / ".cline"),
    list_cline_targets,
    package="cline",
)
COPILOT_HOST = Host(
    COPILOT,
    "Copilot CLI",
    ("copilot",),
    lambda host_env: host_env.folder("COPILOT_HOME", host_env.home / ".copilot"),
    list_copilot_targets,
    ("copilot-cli",),
    package="@github/copilot",
)
GOOSE = Host("goose", "Goose", ("goose",), _find_goose_folder, list_goose_targets)
AMP = Host("amp", "Amp", ("amp",), lambda host_env: host_env.home / ".config" / "amp", list_amp_targets)
