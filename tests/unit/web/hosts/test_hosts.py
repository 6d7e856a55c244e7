"""Where hosts are found on each platform, and what an older version of one is spared."""

import json
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from web.hooks import client
from web.hosts import rules_block
from web.hosts.command_line_agents import is_our_notify
from web.hosts.editors import ZED_RULES
from web.hosts.hook_entries import EVENTS, is_our_hook, read_client_words
from web.hosts.host import compose_rules, is_our_server
from web.hosts.hosts import BY_NAME, HOSTS
from web.hosts.installed_files import InstalledFile, read_state, write_state

HOME = Path("/home/ann")


def paths(sandbox, host, **host_env):
    host_env = replace(sandbox.host_env, home=HOME, **host_env)
    return [str(target.path).replace("\\", "/") for target in BY_NAME[host].targets(host_env, sandbox.reverie)]


def hooks_of(sandbox):
    return json.loads((sandbox.home / ".claude" / "settings.json").read_text())["hooks"]


def with_version(sandbox, *version):
    return replace(sandbox.host_env, version=lambda program: version if program == "claude" else None)


@pytest.mark.parametrize(
    ("platform", "vscode", "zed"),
    [
        ("linux", "/home/ann/.config/Code/User/mcp.json", "/home/ann/.config/zed/settings.json"),
        ("darwin", "/home/ann/Library/Application Support/Code/User/mcp.json", "/home/ann/.config/zed/settings.json"),
        ("win32", "/home/ann/AppData/Roaming/Code/User/mcp.json", "/home/ann/AppData/Roaming/Zed/settings.json"),
    ],
)
def test_host_files_are_at_the_platform_paths(sandbox, platform, vscode, zed):
    assert paths(sandbox, "vscode", platform=platform)[0] == vscode
    assert paths(sandbox, "zed", platform=platform)[0] == zed


def test_variables_move_folders(sandbox):
    moved = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/g", "APPDATA": "not/absolute"}
    assert paths(sandbox, "claude-code", environment=moved) == ["/c/settings.json", "/c/.claude.json", "/c/CLAUDE.md"]
    assert paths(sandbox, "codex", environment=moved) == ["/x/hooks.json", "/x/config.toml", "/x/AGENTS.md"]
    assert paths(sandbox, "opencode", environment=moved)[:2] == [
        "/g/opencode/plugin/reverie.js",
        "/g/opencode/opencode.json",
    ]
    pi = ["/p/extensions/reverie.js", "/p/mcp.json", "/p/AGENTS.md"]
    assert paths(sandbox, "pi", environment={"PI_CODING_AGENT_DIR": "/p"}) == pi
    cline = ["/l/plugins/reverie.js", "/d/settings/cline_mcp_settings.json", "/l/rules/reverie.md"]
    assert paths(sandbox, "cline", environment={"CLINE_DIR": "/l", "CLINE_DATA_DIR": "/d"}) == cline
    assert paths(sandbox, "vscode", environment=moved, platform="win32")[0].startswith("/home/ann/AppData/Roaming/")


def test_claude_config_dir_moves_the_state_file_into_it(sandbox):
    told = {"CLAUDE_CONFIG_DIR": "/home/ann/.claude"}
    assert paths(sandbox, "claude-code", environment=told)[1] == "/home/ann/.claude/.claude.json"
    for ignored in ({}, {"CLAUDE_CONFIG_DIR": ""}, {"CLAUDE_CONFIG_DIR": "not/absolute"}):
        assert paths(sandbox, "claude-code", environment=ignored)[1] == "/home/ann/.claude.json"


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_a_host_is_found_by_its_folder_or_its_program(sandbox, host):
    assert not host.is_found(sandbox.host_env)
    on_path = replace(sandbox.host_env, which=lambda name: "/usr/bin/x" if name in host.programs else None)
    # An extension of an editor is no program.
    assert host.is_found(on_path) == bool(host.programs)
    host.folder(sandbox.host_env).mkdir(parents=True)
    assert host.is_found(sandbox.host_env)


def test_only_its_own_folder_finds_a_host(sandbox):
    for host in HOSTS:
        host.folder(sandbox.host_env).mkdir(parents=True)
    sandbox.home.joinpath(".cursor").rmdir()
    assert [host.name for host in HOSTS if not host.is_found(sandbox.host_env)] == ["cursor"]


def test_a_current_claude_code_gets_every_event_by_one_program(sandbox):
    sandbox.setup("claude-code", host_env=with_version(sandbox, 2, 1, 63))
    handlers = {event: groups[0]["hooks"][0] for event, groups in hooks_of(sandbox).items()}
    assert set(handlers) == set(EVENTS["claude-code"])
    program = f"{sandbox.reverie.bin}/reverie-hook"
    commands = {handler["command"] for handler in handlers.values()}
    assert commands == {f"[ ! -x {program} ] || exec {program} claude-code"}
    limits = {event: handler["timeout"] for event, handler in handlers.items()}
    # A prompt may wait until the stack has started.
    assert limits.pop("UserPromptSubmit") == 6
    assert max(limits.values()) <= 3


def test_a_claude_code_that_does_not_know_every_event_keeps_its_file(sandbox):
    [settings, *_] = sandbox.setup("claude-code", host_env=with_version(sandbox, 2, 1, 62))
    assert "2.1.62 does not know every event" in settings.remarks[0]
    assert not (sandbox.home / ".claude" / "settings.json").exists()
    assert (sandbox.home / ".claude.json").exists()


def test_settings_unreadable_by_an_old_claude_code_are_removed(sandbox):
    sandbox.setup("claude-code")
    sandbox.setup("claude-code", host_env=with_version(sandbox, 2, 0, 0))
    assert not (sandbox.home / ".claude" / "settings.json").exists()
    sandbox.remove("claude-code")
    assert sandbox.files() == {}


def test_gemini_is_given_milliseconds_and_a_name_to_turn_the_hook_off_by(sandbox):
    sandbox.setup("gemini")
    hooks = json.loads((sandbox.home / ".gemini" / "settings.json").read_text())["hooks"]
    assert set(hooks) == set(EVENTS["gemini"])
    [handler] = hooks["BeforeAgent"][0]["hooks"]
    assert (handler["name"], handler["timeout"]) == ("reverie", 6000)


def test_codex_setup_reports_the_trust_prompt(sandbox):
    [hooks, *_] = sandbox.setup("codex")
    assert set(json.loads(hooks.after)["hooks"]) == {"SessionStart", "UserPromptSubmit", "PreToolUse"}
    assert any("Trust all and continue" in remark for remark in hooks.remarks)


@pytest.mark.parametrize("in_project", [False, True])
def test_where_the_plugin_brings_the_server_the_setup_takes_its_own_out(sandbox, in_project):
    host_env = sandbox.in_project() if in_project else sandbox.host_env
    sandbox.setup("claude-code", host_env=host_env)
    server = sandbox.project / ".mcp.json" if in_project else sandbox.home / ".claude.json"
    assert "reverie" in server.read_text()
    settings = sandbox.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    kept = json.loads(settings.read_text()) if settings.exists() else {}
    settings.write_text(json.dumps(kept | {"enabledPlugins": {"reverie@reverie": True}}))
    changes = sandbox.setup("claude-code", host_env=host_env)
    assert "reverie" not in (server.read_text() if server.exists() else "")
    assert any("plugin brings the MCP server" in remark for change in changes for remark in change.remarks)
    settings.write_text(json.dumps(kept | {"enabledPlugins": {"reverie@reverie": False, "other@reverie": True}}))
    sandbox.setup("claude-code", host_env=host_env)
    assert "reverie" in server.read_text()


def test_custom_data_directory_is_written_for_user_servers_not_projects(sandbox):
    sandbox.reverie = replace(sandbox.reverie, variables={"REVERIE_HOME": "/srv/memory"})
    sandbox.setup("codex", "zed", "opencode")
    for name in (".codex/config.toml", ".config/zed/settings.json", ".config/opencode/opencode.json"):
        assert '"/srv/memory"' in (sandbox.home / name).read_text()
    sandbox.setup("codex", "zed", "opencode", host_env=sandbox.in_project())
    assert not any(b"/srv/memory" in (content or b"") for name, content in sandbox.files().items() if "project" in name)


ELSEWHERE = {"REVERIE_HOME": "/srv/ann's memory", "REVERIE_PORT": "7099"}


def read_start_words(sandbox):
    """Return the words by which Claude Code and Codex start the clients."""
    [group] = hooks_of(sandbox)["SessionStart"]
    notify = tomllib.loads((sandbox.home / ".codex" / "config.toml").read_text())["notify"]
    return read_client_words(group["hooks"][0]["command"], "linux"), notify


def test_custom_data_directory_is_passed_to_hooks_by_options(sandbox):
    sandbox.reverie = replace(sandbox.reverie, variables=ELSEWHERE)
    sandbox.setup("claude-code", "codex")
    options = ["--home", "/srv/ann's memory", "--port", "7099"]
    start, notify = read_start_words(sandbox)
    assert start == [str(sandbox.reverie.bin / "reverie-hook"), "claude-code", *options]
    assert notify == [str(sandbox.reverie.bin / "reverie-codex-notify"), *options]
    assert client.read_variables(start[1:]) == ELSEWHERE
    assert {change.action for change in sandbox.plan("claude-code", "codex")} == {"none"}


def test_changed_data_directory_updates_hooks_and_removal_restores_files(sandbox):
    (sandbox.home / ".claude").mkdir()
    (sandbox.home / ".claude" / "settings.json").write_text('{"hooks": {"SessionStart": [ ]},\n "a": 1}')
    before = sandbox.files()
    for variables in (ELSEWHERE, {"REVERIE_HOME": "/other"}, {}):
        sandbox.reverie = replace(sandbox.reverie, variables=variables)
        sandbox.setup("claude-code", "codex")
        start, notify = read_start_words(sandbox)
        assert start[2:] == notify[1:] == [word for n, v in variables.items() for word in (f"--{n[8:].lower()}", v)]
    sandbox.reverie = replace(sandbox.reverie, variables=ELSEWHERE)
    sandbox.setup("claude-code", "codex")
    sandbox.reverie = replace(sandbox.reverie, variables={})
    sandbox.remove("claude-code", "codex")
    assert sandbox.files() == before


def test_windows_data_directory_with_a_space_is_quoted(sandbox):
    host_env = replace(sandbox.host_env, platform="win32")
    sandbox.reverie = replace(sandbox.reverie, variables={"REVERIE_HOME": r"C:\Ann B\memory"})
    sandbox.setup("claude-code", host_env=host_env)
    [group] = hooks_of(sandbox)["SessionStart"]
    assert group["hooks"][0]["command"].endswith('reverie-hook claude-code --home "C:\\Ann B\\memory"')
    assert is_our_hook(group["hooks"][0])


@given(st.dictionaries(st.sampled_from(["home", "host", "port"]), st.text(min_size=1)))
def test_hook_command_is_recognized_with_any_data_directory(moved):
    command = shlex.join(["/opt/bin/reverie-hook", "gemini", *(w for n, v in moved.items() for w in (f"--{n}", v))])
    assert is_our_hook({"type": "command", "command": command})


# The hosts that read the first of some files in a project, in their order.
READ_FIRST = {
    "opencode": ("AGENTS.md", "CLAUDE.md", "CONTEXT.md"),
    "kilo": ("AGENTS.md",),
    "pi": ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md"),
    "amp": ("AGENTS.md", "AGENT.md", "CLAUDE.md"),
    "zed": ZED_RULES,
    "codex": ("AGENTS.override.md", "AGENTS.md"),
    "claude-code": ("CLAUDE.md", "AGENTS.md"),
}


def test_no_setup_hides_the_rules_that_another_host_reads(sandbox):
    """Whatever rules file a project has, each host goes on reading what it read before the setup of any host."""
    for name in sorted({name for names in READ_FIRST.values() for name in names}):
        for host in HOSTS:
            file = sandbox.project / name
            file.parent.mkdir(exist_ok=True)
            file.write_text("mine\n")
            sandbox.setup(host.name, host_env=sandbox.in_project())
            for reader, names in READ_FIRST.items():
                first = next((name for name in names if (sandbox.project / name).exists()), None)
                assert first == name or name not in names, (host.name, reader, first)
            assert file.read_text().startswith("mine\n")
            sandbox.remove(host.name, host_env=sandbox.in_project())
            assert file.read_text() == "mine\n"
            file.unlink()


@pytest.mark.parametrize(
    ("host", "name"), [("codex", "AGENTS.override.md"), ("pi", "AGENTS.override.md"), ("opencode", "CONTEXT.md")]
)
def test_the_rules_go_into_the_file_that_the_host_reads(sandbox, host, name):
    (sandbox.project / name).write_text("mine\n")
    sandbox.setup(host, host_env=sandbox.in_project())
    assert "reverie" in (sandbox.project / name).read_text()


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENT.md"])
def test_codex_setup_reports_why_it_wrote_no_rules(sandbox, name):
    (sandbox.project / name).write_text("mine\n")
    [hooks, *others] = sandbox.setup("codex", host_env=sandbox.in_project())
    assert any(f"stop reading {name}" in remark for remark in hooks.remarks)
    assert [change.path.suffix for change in others] == [".toml"]


RULES = ".claude/rules/reverie.md"


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"])
def test_claude_code_keeps_reading_the_rules_of_a_project(sandbox, name):
    file = sandbox.project / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine\n")
    sandbox.setup("claude-code", host_env=sandbox.in_project())
    assert "reverie" in (sandbox.project / RULES).read_text()
    rules = [path for path in sandbox.project.rglob("*.md") if path != sandbox.project / RULES]
    assert (rules, file.read_text()) == ([file], "mine\n")
    sandbox.remove("claude-code", host_env=sandbox.in_project())
    assert not (sandbox.project / RULES).exists()


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("claude-code", "CLAUDE.md"),
        ("cline", "AGENTS.md"),
        ("goose", "AGENTS.md"),
        ("copilot", ".github/copilot-instructions.md"),
    ],
)
@pytest.mark.parametrize("text", ["", "mine\n"])
def test_block_of_an_earlier_setup_is_moved_from_the_hiding_file(sandbox, host, name, text):
    former = sandbox.project / name
    former.parent.mkdir(exist_ok=True)
    former.write_text(rules_block.add(text, compose_rules(None)))
    record = InstalledFile(created=not text, hosts=frozenset({host}), project=str(sandbox.project))
    write_state(sandbox.state, {str(former): record})
    sandbox.setup(host, host_env=sandbox.in_project())
    assert (former.read_text() if former.exists() else "") == text
    assert former.exists() == bool(text)
    assert {change.action for change in sandbox.plan(host, host_env=sandbox.in_project())} == {"none"}
    assert str(former) not in read_state(sandbox.state)


def test_a_block_that_another_host_reads_stays(sandbox):
    claude = sandbox.project / "CLAUDE.md"
    claude.write_text("mine\n")
    sandbox.setup("pi", host_env=sandbox.in_project())
    with_block = claude.read_text()
    assert "reverie" in with_block
    for hosts in (("claude-code",), ("claude-code", "pi"), ("pi", "claude-code")):
        sandbox.setup(*hosts, host_env=sandbox.in_project())
        assert claude.read_text() == with_block
    sandbox.remove("claude-code", host_env=sandbox.in_project())
    assert claude.read_text() == with_block
    sandbox.remove("pi", host_env=sandbox.in_project())
    assert claude.read_text() == "mine\n"


@pytest.mark.parametrize("name", [".rules", ".cursorrules", "CLAUDE.md"])
def test_zed_keeps_reading_the_rules_that_it_reads(sandbox, name):
    (sandbox.project / name).write_text("mine\n")
    sandbox.setup("zed", host_env=sandbox.in_project())
    assert not (sandbox.project / "AGENTS.md").exists()
    assert "reverie" in (sandbox.project / name).read_text()
    (sandbox.project / "AGENTS.md").write_text("later\n")
    sandbox.remove("zed", host_env=sandbox.in_project())
    assert (sandbox.project / name).read_text() == "mine\n"


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ({"command": "reverie", "args": ["mcp"]}, True),
        ({"command": r"C:\Program Files\reverie\reverie.exe", "args": ["mcp"]}, True),
        ({"command": ["/opt/bin/reverie", "mcp"]}, True),
        ({"command": "/opt/bin/reverie-ui", "args": ["mcp"]}, False),
        ({"command": "npx", "args": ["reverie", "mcp"]}, False),
        ({"url": "http://127.0.0.1"}, False),
        ("reverie mcp", False),
        (None, False),
    ],
)
def test_own_server_entry_is_recognized(value, known):
    assert is_our_server(value) is known


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ({"type": "command", "command": "'/a b/bin/reverie-hook' codex --port 7099"}, True),
        ({"type": "command", "command": "reverie-hook"}, False),
        ({"type": "command", "command": "my-reverie-hook codex"}, False),
        ({"type": "command", "command": "reverie-hook codex"}, True),
        ({"type": "command", "command": "[ ! -x '/a b/reverie-hook' ] || exec '/a b/reverie-hook' codex"}, True),
        ({"type": "command", "command": "! command -v reverie-hook >/dev/null || exec reverie-hook codex"}, True),
        ({"type": "command", "command": r'cmd /d /c if exist "C:\reverie-hook.exe" "C:\reverie-hook.exe" codex'}, True),
        ({"type": "command", "command": 'cmd /d /c "where /q reverie-hook && reverie-hook codex || exit 0"'}, True),
        ({"type": "command", "command": "reverie-hook codex || exit 1"}, False),
        ({"type": "command", "command": "reverie-hook codex && rm x"}, False),
        ({"type": "prompt", "prompt": "x"}, False),
        ({"type": "http", "url": "http://a/hooks/claude-code", "headers": {"Authorization": "Bearer x"}}, False),
    ],
)
def test_own_hook_entry_is_recognized(value, known):
    assert is_our_hook(value) is known


def test_own_notify_program_is_recognized():
    assert is_our_notify(["/opt/bin/reverie-codex-notify"])
    assert not is_our_notify(["notify-send", "reverie-codex-notify"])
    assert not is_our_notify([])
