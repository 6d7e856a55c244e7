"""Agents at the command line: their files and the entries that setup writes into them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from web.hosts.editors import INSTRUCTIONS, INSTRUCTIONS_HEAD
from web.hosts.entries import CannotEdit, HostEntry, JsonMember, TomlKey, TomlTable
from web.hosts.environment import CODEX_NOTIFY_CLIENT, MAIN, HostEnvironment, Installation
from web.hosts.hook_entries import CLAUDE_CODE, CLINE, CODEX, COPILOT, GEMINI, KILO, OPENCODE, PI, QWEN_CODE, list_hooks
from web.hosts.host import (
    NAME,
    TOKEN_VARIABLE,
    Host,
    Target,
    describe_for_codex,
    describe_with_headers,
    find_existing,
    is_our_server,
    is_program,
    is_remote,
    list_agents_rules,
    mcp_target,
    project_server,
    rules_target,
    server_entries,
    server_of_project,
    stdio_server,
)
from web.hosts.installed_files import read
from web.hosts.plugin_file import plugin_target

CODEX_TRUST_REMARK = (
    "Codex runs hooks only once you trust them: at its next start it says “Hooks need review”; choose “Trust all and"
    " continue”, or look at each with /hooks. It asks again whenever their command changes"
)
# Codex reads the first of them in a folder.
CODEX_RULES = ("AGENTS.override.md", "AGENTS.md")


def _find_codex_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("CODEX_HOME", host_env.home / ".codex")


def list_codex_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    path, team = ("mcp_servers", NAME), project_server(host_env, reverie)
    server = TomlTable(path, stdio_server(host_env, reverie), is_our_server)
    other = TomlTable(path, {}, is_remote)
    if team is not None:
        server, other = TomlTable(path, describe_for_codex(team), is_remote), TomlTable(path, {}, is_our_server)
    root = _find_codex_folder(host_env) if host_env.project is None else host_env.project / ".codex"
    folder = root if host_env.project is None else host_env.project
    rules, remarks = list_agents_rules(host_env, reverie, folder, CODEX_RULES)
    hooks = Target(
        root / "hooks.json", "json", list_hooks(CODEX, host_env, reverie), remarks=(CODEX_TRUST_REMARK, *remarks)
    )
    # Codex appends its notification to these words.
    program = [reverie.program(host_env, CODEX_NOTIFY_CLIENT), *reverie.options(host_env)]
    notify = TomlKey("notify", program, is_our_notify)
    # Codex reads no notify program from a project.
    entries: tuple[HostEntry, ...] = (server,) if host_env.project is not None else (notify, server)
    return [hooks, Target(root / "config.toml", "toml", entries, obsolete=(other,)), *rules]


def is_our_notify(value: Any) -> bool:
    """Return whether Codex's notify program is Reverie's."""
    return isinstance(value, list) and bool(value) and is_program(value[0], CODEX_NOTIFY_CLIENT)


CODEX_HOST = Host("codex", "Codex", ("codex",), _find_codex_folder, list_codex_targets, package="@openai/codex")


# Claude Code ignores a settings file completely if it contains an unknown event.
EVENTS_SINCE = (2, 1, 63)


def claude_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its settings."""
    return host_env.folder("CLAUDE_CONFIG_DIR", host_env.home / ".claude")


def list_claude_code_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return its files with the entries."""
    folder = claude_folder(host_env)
    if host_env.project is not None:
        settings, server = host_env.project / ".claude" / "settings.json", host_env.project / ".mcp.json"
        # A new CLAUDE.md would hide the project's AGENTS.md.
        rules = host_env.project / ".claude" / "rules" / "reverie.md"
    else:
        # The file is next to the default folder, but inside a folder that the variable names.
        server = host_env.folder("CLAUDE_CONFIG_DIR", host_env.home) / ".claude.json"
        settings, rules = folder / "settings.json", folder / "CLAUDE.md"
    hooks = _claude_hooks(host_env, reverie, settings)
    return [
        hooks,
        _claude_server(host_env, reverie, server, (settings, folder / "settings.json")),
        rules_target(reverie, rules),
    ]


def _claude_server(host_env: HostEnvironment, reverie: Installation, path: Path, settings: Sequence[Path]) -> Target:
    target = mcp_target(path, "mcpServers", describe_for_claude(host_env, reverie))
    if not any(has_plugin(file) for file in settings):
        return target
    # Claude Code recognizes two servers as the same only by an equal command; otherwise it lists every tool twice.
    remark = "Reverie's plugin brings the MCP server"
    return replace(target, entries=(), obsolete=target.all_entries, remarks=(remark,))


def describe_for_claude(host_env: HostEnvironment, reverie: Installation) -> dict[str, Any]:
    """Return the MCP entry for Claude Code."""
    team, local = {"type": "http"}, {"type": "stdio"}
    server = server_of_project(host_env, reverie, f"${{{TOKEN_VARIABLE}}}", team=team, local=local)
    # Otherwise the model has to search for the tools.
    return server | {"alwaysLoad": True}


def has_plugin(settings: Path) -> bool:
    """Return whether Claude Code's settings enable the plugin; unreadable settings are reported later."""
    try:
        enabled = json.loads(read(settings) or b"{}").get("enabledPlugins", {})
        return any(value is True and name.partition("@")[0] == NAME for name, value in enabled.items())
    except (CannotEdit, ValueError, RecursionError, AttributeError):
        return False


def _claude_hooks(host_env: HostEnvironment, reverie: Installation, settings: Path) -> Target:
    version = host_env.version("claude")
    if version is None or version >= EVENTS_SINCE:
        return Target(settings, "json", list_hooks(CLAUDE_CODE, host_env, reverie))
    installed, needed = (".".join(map(str, numbers)) for numbers in (version, EVENTS_SINCE))
    remark = f"Claude Code {installed} does not know every event; after an update to {needed} run the setup again"
    return Target(settings, "json", (), remarks=(remark,), obsolete=list_hooks(CLAUDE_CODE, host_env, reverie))


CLAUDE_CODE_HOST = Host(
    "claude-code",
    "Claude Code",
    ("claude",),
    claude_folder,
    list_claude_code_targets,
    package="@anthropic-ai/claude-code",
)


AMP_APPROVAL = "Amp starts the server of a project only after `amp mcp approve reverie`"
# Amp, opencode and pi read only the first of these files.
AMP_RULES = ("AGENTS.md", "AGENT.md", "CLAUDE.md")
KILO_RULES = ("AGENTS.md",)
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
    plugin, servers, *rules = _list_opencode_files(OPENCODE_HOST, OPENCODE_RULES, host_env, reverie)
    claude = claude_folder(host_env) / "CLAUDE.md"
    if host_env.project is None and not rules[0].path.is_file() and claude.is_file():
        # The host reads Claude Code's rules if it has no rules file.
        rules = [rules_target(reverie, claude)]
    return [plugin, servers, *rules]


def list_kilo_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Kilo, a fork of opencode, with the entries."""
    return _list_opencode_files(KILO_HOST, KILO_RULES, host_env, reverie)


def _list_opencode_files(
    host: Host, names: Sequence[str], host_env: HostEnvironment, reverie: Installation
) -> Sequence[Target]:
    """Return the plugin, the servers and the rules, if any, of opencode or of a fork."""
    folder = host.folder(host_env) if host_env.project is None else host_env.project
    variables = reverie.variables_for(host_env)
    server = {
        "type": "local",
        "command": [reverie.program(host_env, MAIN), "mcp", *reverie.server_arguments],
        "enabled": True,
    } | ({"environment": variables} if variables else {})
    team = project_server(host_env, reverie)
    if team is not None:
        server = describe_with_headers(team, f"{{env:{TOKEN_VARIABLE}}}", type="remote") | {"enabled": True}
    rules, remarks = list_agents_rules(host_env, reverie, folder, names)
    settings = find_existing(folder, (f"{host.name}.jsonc", f"{host.name}.json"), f"{host.name}.json")
    plugins = folder if host_env.project is None else folder / f".{host.name}"
    file = plugins / "plugin" / "reverie.js"
    plugin = plugin_target(host.name, host_env, reverie, file, program=OPENCODE)
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
KILO_HOST = Host(
    KILO,
    "Kilo CLI",
    ("kilo",),
    lambda host_env: host_env.configuration / "kilo",
    list_kilo_targets,
    package="@kilocode/cli",
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
