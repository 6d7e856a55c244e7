"""What each host is told of a team's server: exactly what stands in its files, and that it comes and goes."""

import json
import tomllib
from dataclasses import replace

import pytest

from web.hosts.environment import RemoteServer
from web.hosts.hook_entries import EVENTS, is_our_hook, is_our_named_hooks
from web.hosts.host import is_remote
from web.hosts.hosts import HOSTS

ALL = [host.name for host in HOSTS]
URL = "https://memory.acme.example"
WORKSPACE = "X-Reverie-Workspace"


@pytest.fixture
def team(sandbox):
    sandbox.reverie = replace(sandbox.reverie, server=RemoteServer("memory.acme.example", URL))
    return sandbox


@pytest.fixture
def shared(team):
    """The same for a project, whose workspace is known."""
    team.reverie = replace(team.reverie, server=RemoteServer("memory.acme.example", URL, "shop-1a2b3c4d"))
    return team


def read(file):
    return json.loads(file.read_text())


def bridge(sandbox, **more):
    return more | {"command": f"{sandbox.reverie.bin}/reverie", "args": ["mcp", "--server", "memory.acme.example"]}


@pytest.mark.parametrize("server", [None, RemoteServer("memory.acme.example", URL)])
def test_the_entry_of_an_earlier_setup_is_replaced(team, server):
    helper = f"{team.reverie.bin}/reverie-hook headers --server memory.acme.example"
    former = {"type": "http", "url": f"{URL}/mcp", "headersHelper": helper}
    file = team.home / ".claude.json"
    file.write_text(json.dumps({"mcpServers": {"reverie": former}}))
    team.reverie = replace(team.reverie, server=server)
    team.setup("claude-code")
    words = {} if server is None else {"args": ["mcp", "--server", server.name]}
    local = {"type": "stdio", "command": f"{team.reverie.bin}/reverie", "args": ["mcp"], "alwaysLoad": True}
    assert read(file)["mcpServers"]["reverie"] == local | words
    team.remove("claude-code")
    assert read(file) == {"mcpServers": {}}


@pytest.mark.parametrize(
    ("host", "file", "place", "more"),
    [
        ("claude-code", ".claude.json", "mcpServers", {"type": "stdio", "alwaysLoad": True}),
        ("cursor", ".cursor/mcp.json", "mcpServers", {}),
        ("vscode", ".config/Code/User/mcp.json", "servers", {"type": "stdio"}),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers", {}),
        ("gemini", ".gemini/settings.json", "mcpServers", {}),
        ("qwen-code", ".qwen/settings.json", "mcpServers", {"alwaysLoadTools": True}),
        ("copilot", ".copilot/mcp-config.json", "mcpServers", {"type": "local", "tools": ["*"]}),
        ("zed", ".config/zed/settings.json", "context_servers", {"source": "custom"}),
        ("antigravity", ".gemini/config/mcp_config.json", "mcpServers", {}),
        ("amp", ".config/amp/settings.json", "amp.mcpServers", {}),
        ("kiro", ".kiro/settings/mcp.json", "mcpServers", {}),
    ],
)
def test_host_with_static_headers_starts_the_bridge(team, host, file, place, more):
    team.setup(host)
    assert read(team.home / file)[place]["reverie"] == bridge(team, **more)


def test_codex_and_opencode_start_the_bridge_as_they_write_it(team):
    team.setup("codex", "opencode")
    codex = tomllib.loads((team.home / ".codex" / "config.toml").read_text())
    assert codex["mcp_servers"]["reverie"] == bridge(team)
    assert codex["notify"] == [f"{team.reverie.bin}/reverie-codex-notify", "--server", "memory.acme.example"]
    opencode = read(team.home / ".config" / "opencode" / "opencode.json")["mcp"]["reverie"]
    assert opencode["command"] == [f"{team.reverie.bin}/reverie", "mcp", "--server", "memory.acme.example"]


@pytest.mark.parametrize(
    ("host", "file"),
    [
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
        ("qwen-code", ".qwen/settings.json"),
        ("copilot", ".copilot/settings.json"),
    ],
)
def test_hooks_name_the_server_and_are_known_again(team, host, file):
    team.setup(host)
    hooks = read(team.home / file)["hooks"]
    handlers = {event: groups[0]["hooks"][0] for event, groups in hooks.items()}
    assert set(handlers) == set(EVENTS[host])
    program = f"{team.reverie.bin}/reverie-hook"
    command = f"[ ! -x {program} ] || exec {program} {host} --server memory.acme.example"
    assert {handler["command"] for handler in handlers.values()} == {command}
    assert all(map(is_our_hook, handlers.values()))


def test_cursor_hooks_name_the_server_without_groups(team):
    team.setup("cursor")
    written = read(team.home / ".cursor" / "hooks.json")
    program = f"{team.reverie.bin}/reverie-hook"
    command = f"[ ! -x {program} ] || exec {program} cursor --server memory.acme.example"
    assert (written["version"], set(written["hooks"])) == (1, set(EVENTS["cursor"]))
    assert {handler["command"] for [handler] in written["hooks"].values()} == {command}


def test_antigravity_has_no_hooks_of_a_server_that_cannot_read_its_logs(team):
    own, remote = replace(team.reverie, server=None), team.reverie
    team.reverie = own
    team.setup("antigravity")
    hooks = team.home / ".gemini" / "config" / "hooks.json"
    assert is_our_named_hooks(read(hooks)["reverie"])
    team.reverie = remote
    team.setup("antigravity")
    assert not hooks.exists()


HEADERS = {WORKSPACE: "shop-1a2b3c4d"}


@pytest.mark.parametrize(
    ("host", "file", "place", "entry"),
    [
        (
            "claude-code",
            ".mcp.json",
            "mcpServers",
            {
                "type": "http",
                "url": f"{URL}/mcp",
                "headers": {"Authorization": "Bearer ${TEAM_MEMORY_TOKEN}"} | HEADERS,
                "alwaysLoad": True,
            },
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            "mcpServers",
            {"url": f"{URL}/mcp", "headers": {"Authorization": "Bearer ${env:TEAM_MEMORY_TOKEN}"} | HEADERS},
        ),
        (
            "vscode",
            ".vscode/mcp.json",
            "servers",
            {
                "type": "http",
                "url": f"{URL}/mcp",
                "headers": {"Authorization": "Bearer ${env:TEAM_MEMORY_TOKEN}"} | HEADERS,
            },
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "mcpServers",
            {"httpUrl": f"{URL}/mcp", "headers": {"Authorization": "Bearer $TEAM_MEMORY_TOKEN"} | HEADERS},
        ),
        (
            "opencode",
            "opencode.json",
            "mcp",
            {
                "type": "remote",
                "url": f"{URL}/mcp",
                "headers": {"Authorization": "Bearer {env:TEAM_MEMORY_TOKEN}"} | HEADERS,
                "enabled": True,
            },
        ),
        (
            "zed",
            ".zed/settings.json",
            "context_servers",
            {"source": "custom", "command": "reverie", "args": ["mcp", "--server", "memory.acme.example"]},
        ),
    ],
)
def test_a_projects_files_hold_the_address_its_workspace_and_no_token(shared, host, file, place, entry):
    shared.setup(host, host_env=shared.in_project())
    assert read(shared.project / file)[place]["reverie"] == entry


def test_codex_project_config_names_the_token_variable(shared):
    shared.setup("codex", host_env=shared.in_project())
    written = tomllib.loads((shared.project / ".codex" / "config.toml").read_text())
    assert written["mcp_servers"]["reverie"] == {
        "url": f"{URL}/mcp",
        "bearer_token_env_var": "TEAM_MEMORY_TOKEN",
        "http_headers": HEADERS,
    }


@pytest.mark.parametrize("in_project", [False, True])
def test_rules_say_where_the_memory_is(shared, in_project):
    host_env = shared.in_project() if in_project else shared.host_env
    shared.setup(*ALL, host_env=host_env)
    rules = {name: content for name, content in shared.files().items() if content and b"## Memory: Reverie" in content}
    # Of a user's own rules Cursor has no file; in a project, those who read AGENTS.md share it.
    assert len(rules) >= 6
    at_team, here = b"a memory on the team's server, reached", b"a memory on this machine, reached"
    assert [name for name, content in rules.items() if at_team not in content or here in content] == []
    shared.reverie = replace(shared.reverie, server=None)
    shared.setup(*ALL, host_env=host_env)
    files = shared.files()
    assert [name for name in rules if here not in files[name] or at_team in files[name]] == []


@pytest.mark.parametrize("in_project", [False, True])
def test_it_comes_once_and_goes_to_the_byte(shared, in_project):
    host_env = shared.in_project() if in_project else shared.host_env
    (shared.home / ".claude.json").write_text('{"mcpServers": {"other": {"command": "x"}}, "n": 1}')
    (shared.project / ".mcp.json").write_text("{\n  // mine\n}\n")
    before = shared.files()
    assert all(change.error is None for change in shared.setup(*ALL, host_env=host_env))
    assert {change.action for change in shared.setup(*ALL, host_env=host_env)} == {"none"}
    shared.remove(*ALL, host_env=host_env)
    assert shared.files() == before


@pytest.mark.parametrize("in_project", [False, True])
def test_switching_between_local_and_server_setup_leaves_no_remains(shared, in_project):
    host_env = shared.in_project() if in_project else shared.host_env
    own, team = replace(shared.reverie, server=None), shared.reverie
    before = shared.files()
    shared.reverie = own
    shared.setup(*ALL, host_env=host_env)
    local = shared.files()
    shared.reverie = team
    assert all(change.error is None for change in shared.setup(*ALL, host_env=host_env))
    for name, content in shared.files().items():
        if content is not None and b'"reverie"' in content and b"memory.acme.example" not in content:
            pytest.fail(f"{name} still names this machine's own")
    shared.reverie = own
    shared.setup(*ALL, host_env=host_env)
    assert {name: json_of(content) for name, content in shared.files().items()} == {
        name: json_of(content) for name, content in local.items()
    }
    # Whoever takes it out need not know which of the two it was.
    shared.reverie = team
    shared.setup(*ALL, host_env=host_env)
    shared.reverie = own
    shared.remove(*ALL, host_env=host_env)
    assert shared.files() == before


def json_of(content):
    try:
        return content and json.loads(content)
    except ValueError:
        return content


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        ({"url": f"{URL}/mcp", "headers": HEADERS}, True),
        ({"httpUrl": f"{URL}/mcp", "headers": HEADERS}, True),
        ({"url": f"{URL}/mcp", "http_headers": HEADERS}, True),
        ({"url": f"{URL}/mcp", "headersHelper": "/opt/bin/reverie-hook headers --server x"}, True),
        ({"url": f"{URL}/mcp", "headersHelper": "'/my bin/reverie-hook' headers --server x"}, True),
        ({"url": f"{URL}/mcp", "headersHelper": "my-reverie-hook headers"}, False),
        ({"url": f"{URL}/mcp"}, False),
        ({"url": f"{URL}/other", "headers": HEADERS}, False),
        ({"url": f"{URL}/mcp", "headers": {"Authorization": "Bearer x"}}, False),
        ({"url": 1, "headers": HEADERS}, False),
        ({"url": f"{URL}/mcp", "headers": "no"}, False),
        ("no", False),
        (None, False),
    ],
)
def test_foreign_entry_with_our_name_is_not_ours(entry, known):
    assert is_remote(entry) is known
