"""Editors and their extensions: their files and the entries that setup writes into them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hook_entries import ANTIGRAVITY, CURSOR, describe_named_hooks, list_hooks
from web.hosts.host import (
    TOKEN_VARIABLE,
    Host,
    Target,
    list_agents_rules,
    mcp_target,
    rules_target,
    server_of_project,
    stdio_server,
)

# Copilot CLI reads this file of VS Code too.
INSTRUCTIONS = ".github/instructions/reverie.instructions.md"
INSTRUCTIONS_HEAD = '---\ndescription: Memory of this project\napplyTo: "**"\n---\n'
# The head of rules that Windsurf and Antigravity always read.
ALWAYS_ON = "---\ntrigger: always_on\n---\n"
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


def list_cursor_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Cursor with the entries."""
    folder = (host_env.project or host_env.home) / ".cursor"
    targets = [
        Target(folder / "hooks.json", "json", list_hooks(CURSOR, host_env, reverie)),
        mcp_target(
            folder / "mcp.json", "mcpServers", server_of_project(host_env, reverie, f"${{env:{TOKEN_VARIABLE}}}")
        ),
    ]
    if host_env.project is None:
        # Cursor stores a user's rules inside the program.
        return targets
    head = "---\ndescription: Memory of this project\nalwaysApply: true\n---\n"
    return [*targets, rules_target(reverie, folder / "rules" / "reverie.mdc", head)]


def _find_vscode_folder(host_env: HostEnvironment) -> Path:
    return host_env.application_data / "Code" / "User"


def list_vscode_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of VS Code with the entries."""
    folder = _find_vscode_folder(host_env)
    servers, rules = folder / "mcp.json", folder / "prompts" / "reverie.instructions.md"
    if host_env.project is not None:
        servers, rules = host_env.project / ".vscode" / "mcp.json", host_env.project / INSTRUCTIONS
    team, local = {"type": "http"}, {"type": "stdio"}
    server = server_of_project(host_env, reverie, f"${{env:{TOKEN_VARIABLE}}}", team=team, local=local)
    return [mcp_target(servers, "servers", server), rules_target(reverie, rules, INSTRUCTIONS_HEAD)]


def _find_roo_code_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of its data in VS Code, of which it is an extension."""
    return _find_vscode_folder(host_env) / "globalStorage" / "rooveterinaryinc.roo-cline"


def list_roo_code_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Roo Code with the entries."""
    folder = (host_env.project or host_env.home) / ".roo"
    servers = folder / "mcp.json"
    if host_env.project is None:
        servers = _find_roo_code_folder(host_env) / "settings" / "mcp_settings.json"
    return [
        mcp_target(servers, "mcpServers", stdio_server(host_env, reverie)),
        rules_target(reverie, folder / "rules" / "reverie.md"),
    ]


def list_windsurf_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Windsurf with the entries."""
    if host_env.project is not None:
        # The host has no MCP servers per project.
        return [rules_target(reverie, host_env.project / ".windsurf" / "rules" / "reverie.md", ALWAYS_ON)]
    folder = WINDSURF.folder(host_env)
    return [
        mcp_target(folder / "mcp_config.json", "mcpServers", stdio_server(host_env, reverie)),
        rules_target(reverie, folder / "memories" / "global_rules.md"),
    ]


def _find_zed_folder(host_env: HostEnvironment) -> Path:
    return host_env.application_data / "Zed" if host_env.platform == "win32" else host_env.configuration / "zed"


def list_zed_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Zed with the entries."""
    folder = _find_zed_folder(host_env) if host_env.project is None else host_env.project / ".zed"
    # Older versions mark a server of the user with `source`.
    server = stdio_server(host_env, reverie, source="custom")
    servers = mcp_target(folder / "settings.json", "context_servers", server)
    if host_env.project is None:
        return [servers, rules_target(reverie, folder / "AGENTS.md")]
    rules, remarks = list_agents_rules(host_env, reverie, host_env.project, ZED_RULES)
    return [replace(servers, remarks=remarks), *rules]


def _find_antigravity_folder(host_env: HostEnvironment) -> Path:
    """Return the folder of the program that is installed: the command line program or the editor."""
    command_line, editor = (host_env.home / ".gemini" / name for name in ("antigravity-cli", "antigravity"))
    return command_line if command_line.is_dir() else editor


def list_antigravity_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Antigravity with the entries."""
    gemini = host_env.home / ".gemini"
    folder = gemini / "config" if host_env.project is None else host_env.project / ".agents"
    hooks = describe_named_hooks(ANTIGRAVITY, host_env, reverie)
    # The prompt is in a file of this machine, which a team's server cannot read.
    is_local = reverie.server is None
    rules = rules_target(reverie, gemini / "GEMINI.md")
    if host_env.project is not None:
        rules = rules_target(reverie, folder / "rules" / "reverie.md", ALWAYS_ON)
    return [
        Target(folder / "hooks.json", "json", (hooks,) if is_local else (), obsolete=() if is_local else (hooks,)),
        mcp_target(folder / "mcp_config.json", "mcpServers", stdio_server(host_env, reverie)),
        rules,
    ]


def list_kiro_targets(host_env: HostEnvironment, reverie: Installation) -> Sequence[Target]:
    """Return the files of Kiro, the editor and the command line program, with the entries."""
    folder = (host_env.project or host_env.home) / ".kiro"
    return [
        mcp_target(folder / "settings" / "mcp.json", "mcpServers", stdio_server(host_env, reverie)),
        rules_target(reverie, folder / "steering" / "reverie.md", "---\ninclusion: always\n---\n"),
    ]


CURSOR_HOST = Host(
    CURSOR, "Cursor", ("cursor", "cursor-agent"), lambda host_env: host_env.home / ".cursor", list_cursor_targets
)
VSCODE = Host("vscode", "VS Code", ("code",), _find_vscode_folder, list_vscode_targets, ("vscode-copilot",))
WINDSURF = Host(
    "windsurf",
    "Windsurf",
    ("windsurf",),
    lambda host_env: host_env.home / ".codeium" / "windsurf",
    list_windsurf_targets,
)
ZED = Host("zed", "Zed", ("zed", "zeditor"), _find_zed_folder, list_zed_targets)
ANTIGRAVITY_HOST = Host(
    ANTIGRAVITY, "Antigravity", ("agy", "antigravity"), _find_antigravity_folder, list_antigravity_targets
)
ROO_CODE = Host("roo-code", "Roo Code", (), _find_roo_code_folder, list_roo_code_targets)
KIRO = Host("kiro", "Kiro", ("kiro-cli", "kiro"), lambda host_env: host_env.home / ".kiro", list_kiro_targets)
