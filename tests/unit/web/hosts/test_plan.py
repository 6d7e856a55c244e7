"""A plan and its carrying out: what is left alone, what is kept, what is shared."""

import json
import os
import stat

import pytest

from config import file_modes
from web.hosts import installed_files

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_plan_changes_nothing(sandbox):
    write_file(sandbox.home / ".cursor" / "mcp.json", "{}")
    before = sandbox.files()
    assert [change.action for change in sandbox.plan("cursor")] == ["create", "change"]
    assert sandbox.files() == before
    assert not sandbox.state.exists()


@pytest.mark.parametrize("content", [b"{", b'{"a": "\xff"}', b'{"mcpServers": []}'])
def test_a_file_that_cannot_be_taken_is_left_alone_and_the_others_are_done(sandbox, content):
    file = sandbox.home / ".gemini" / "settings.json"
    write_file(file, "").write_bytes(content)
    [settings, rules] = sandbox.setup("gemini")
    assert (settings.action, rules.action) == ("error", "create")
    assert file.read_bytes() == content
    removed = [change.action for change in sandbox.remove("gemini")]
    assert removed == (["error", "delete"] if content != b'{"mcpServers": []}' else ["delete"])
    assert file.read_bytes() == content


def test_a_file_that_changed_after_the_look_at_it_is_left_alone(sandbox, monkeypatch):
    file = write_file(sandbox.home / ".cursor" / "mcp.json", "{}")
    plan = sandbox.plan("cursor")
    file.write_text('{"late": 1}')
    monkeypatch.setattr(sandbox, "plan", lambda *_hosts, **_options: plan)
    [_hooks, change] = sandbox.setup("cursor")
    assert change.error == "it changed during the setup; run the setup again"
    assert file.read_text() == '{"late": 1}'
    assert str(file) not in installed_files.read_state(sandbox.state)


def test_entry_is_removed_although_others_changed_the_file(sandbox):
    file = write_file(sandbox.home / ".cursor" / "mcp.json", '{\n  "mcpServers": {}\n}\n')
    sandbox.setup("cursor")
    found = json.loads(file.read_text())
    found["mcpServers"]["later"] = {"command": "x"}
    file.write_text(json.dumps(found, indent=2))
    sandbox.remove("cursor")
    assert json.loads(file.read_text()) == {"mcpServers": {"later": {"command": "x"}}}


def test_a_file_that_was_made_stays_if_others_use_it_by_now(sandbox):
    sandbox.setup("cursor")
    file = sandbox.home / ".cursor" / "mcp.json"
    file.write_text(file.read_text().replace('"mcpServers": {', '"mcpServers": {\n    "mine": {},'))
    sandbox.remove("cursor")
    assert json.loads(file.read_text()) == {"mcpServers": {"mine": {}}}


def test_without_the_record_the_entries_go_and_no_file_does(sandbox):
    sandbox.setup("claude-code", "codex", "cursor")
    (sandbox.state / "setup.json").write_text("not json")
    sandbox.remove("claude-code", "codex", "cursor")
    assert {name: content for name, content in sandbox.files().items() if content is not None} == {
        "home/.claude.json": b"{}\n",
        "home/.claude/CLAUDE.md": b"",
        "home/.claude/settings.json": b"{}\n",
        "home/.codex/AGENTS.md": b"",
        "home/.codex/config.toml": b"",
        "home/.codex/hooks.json": b"{}\n",
        "home/.cursor/mcp.json": b"{}\n",
    }


def test_rules_that_hosts_share_stay_until_the_last_of_them_goes(sandbox):
    file = write_file(sandbox.project / "AGENTS.md", "mine\n")
    host_env = sandbox.in_project()
    sandbox.setup("codex", "opencode", "zed", host_env=host_env)
    for host in ("codex", "zed"):
        sandbox.remove(host, host_env=host_env)
        assert file.read_text().count("reverie:begin") == 1
    sandbox.remove("opencode", host_env=host_env)
    assert file.read_text() == "mine\n"


def test_the_user_s_files_and_a_project_s_are_set_up_apart(sandbox):
    sandbox.setup("cursor")
    user = sandbox.files()
    sandbox.setup("cursor", host_env=sandbox.in_project())
    sandbox.remove("cursor", host_env=sandbox.in_project())
    assert sandbox.files() == user


def test_manually_reverted_file_is_recorded_again(sandbox):
    file = sandbox.home / ".cursor" / "mcp.json"
    sandbox.setup("cursor")
    file.write_text("{ }")
    sandbox.setup("cursor")
    sandbox.remove("cursor")
    assert file.read_text() == "{ }"


@posix
def test_a_file_of_a_project_is_made_as_its_owner_makes_files(sandbox, monkeypatch):
    # The program itself leaves nothing of what it makes to others.
    monkeypatch.setattr(file_modes, "_umask", [0o022])
    sandbox.setup("cursor", host_env=sandbox.in_project())
    [file] = sandbox.project.rglob("mcp.json")
    assert mode(file) == 0o644
    assert mode(file.parent) == 0o755


@posix
def test_a_file_keeps_its_mode(sandbox):
    file = write_file(sandbox.home / ".cursor" / "mcp.json", "{}")
    file.chmod(0o640)
    sandbox.setup("cursor")
    assert mode(file) == 0o640
    sandbox.remove("cursor")
    assert mode(file) == 0o640


@posix
def test_a_symbolic_link_is_written_through(sandbox):
    target = write_file(sandbox.root / "dotfiles" / "mcp.json", "{}")
    link = sandbox.home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(target)
    sandbox.setup("cursor")
    assert link.is_symlink()
    assert "reverie" in target.read_text()
    sandbox.remove("cursor")
    assert (link.is_symlink(), target.read_text()) == (True, "{}")


@posix
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error_of_that_file(sandbox):
    file = write_file(sandbox.home / ".cursor" / "mcp.json", "{}")
    file.parent.chmod(0o500)
    [_hooks, change] = sandbox.setup("cursor")
    file.parent.chmod(0o700)
    assert change.error == "it cannot be written: Permission denied"
    assert installed_files.read_state(sandbox.state) == {}


def test_unreplaceable_file_is_unchanged_and_leaves_no_draft(sandbox, monkeypatch):
    file = write_file(sandbox.home / ".cursor" / "mcp.json", "{}")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    plan = sandbox.plan("cursor")
    monkeypatch.setattr(sandbox, "plan", lambda *_hosts, **_options: plan)
    monkeypatch.setattr("web.hosts.setup_plan.write_state", lambda *_: None)
    monkeypatch.setattr("os.fsync", full)
    [_hooks, change] = sandbox.setup("cursor")
    assert change.error == "it cannot be written: No space left on device"
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]
    assert file.read_text() == "{}"


def test_project_setup_warns_about_programs_of_this_machine(sandbox):
    host_env = sandbox.in_project(sandbox.host_env)
    [_hooks, server, _rules] = sandbox.setup("cursor", host_env=host_env)
    assert any("programs of this machine" in remark for remark in server.remarks)
    [_hooks, server, _rules] = sandbox.setup("cursor", host_env=sandbox.in_project())
    assert server.remarks == ()


ODD_FILES = {
    "device": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "folder": lambda path: path.mkdir(),
    "link to itself": lambda path: path.symlink_to(path.name),
    "large": lambda path: [path.touch(), os.truncate(path, installed_files.MOST_BYTES + 1)],
}


@posix
@pytest.mark.parametrize("kind", ODD_FILES)
@pytest.mark.parametrize("name", [".mcp.json", ".claude/rules/reverie.md", ".claude/settings.json"])
def test_an_odd_file_of_a_project_is_left_alone_and_named(sandbox, kind, name):
    file = sandbox.project / name
    file.parent.mkdir(parents=True, exist_ok=True)
    ODD_FILES[kind](file)
    for run in (sandbox.plan, sandbox.setup, sandbox.remove):
        run("claude-code", host_env=sandbox.in_project())
    changes = sandbox.plan("claude-code", host_env=sandbox.in_project())
    assert [change.error for change in changes if change.error]
    assert not file.is_file() or file.stat().st_size > installed_files.MOST_BYTES


@posix
@pytest.mark.parametrize("name", [".mcp.json", ".claude/rules/reverie.md", ".claude/settings.json", ".claude"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_file_of_a_project_that_a_link_puts_elsewhere_is_left_alone(sandbox, tmp_path, name, exists):
    project, outside = sandbox.project, tmp_path / "outside"
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    if exists and name == ".claude":
        write_file(outside / "settings.json", '{"mine": true}')
    elif exists:
        write_file(outside, '{"mine": true}' if name.endswith("json") else "Mine.")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "outside" in str(path)}
    (project / name).symlink_to(outside)
    changes = sandbox.setup("claude-code", host_env=sandbox.in_project())
    errors = [str(change.error) for change in changes if change.error]
    assert errors
    assert all("link" in error for error in errors)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "outside" in str(path)}
    assert after == before


@posix
def test_a_link_within_the_project_and_a_users_own_links_are_followed(sandbox, tmp_path):
    project = sandbox.project
    write_file(project / "shared.json", "{}")
    (project / ".mcp.json").symlink_to("shared.json")
    assert not [change.error for change in sandbox.setup("claude-code", host_env=sandbox.in_project()) if change.error]
    assert "reverie" in (project / "shared.json").read_text()
    write_file(tmp_path / "dotfiles" / "mcp.json", "{}")
    (sandbox.home / ".cursor").mkdir(parents=True)
    (sandbox.home / ".cursor" / "mcp.json").symlink_to(tmp_path / "dotfiles" / "mcp.json")
    assert not [change.error for change in sandbox.setup("cursor") if change.error]
