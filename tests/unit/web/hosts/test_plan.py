"""A plan and its carrying out: what is left alone, what is kept, what is shared."""

import json
import os
import stat
from dataclasses import replace

import pytest

from web.hosts import ledger

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_plan_changes_nothing(world):
    put(world.home / ".cursor" / "mcp.json", "{}")
    before = world.files()
    assert [change.action for change in world.plan("cursor")] == ["change"]
    assert world.files() == before
    assert not world.state.exists()


@pytest.mark.parametrize("content", [b"{", b'{"a": "\xff"}', b'{"mcpServers": []}'])
def test_a_file_that_cannot_be_taken_is_left_alone_and_the_others_are_done(world, content):
    file = world.home / ".gemini" / "settings.json"
    put(file, "").write_bytes(content)
    [settings, rules] = world.setup("gemini")
    assert (settings.action, rules.action) == ("error", "create")
    assert file.read_bytes() == content
    [settings, rules] = world.remove("gemini")
    assert (settings.action, rules.action) == ("error" if content != b'{"mcpServers": []}' else "none", "delete")
    assert file.read_bytes() == content


def test_a_file_that_changed_after_the_look_at_it_is_left_alone(world, monkeypatch):
    file = put(world.home / ".cursor" / "mcp.json", "{}")
    plan = world.plan("cursor")
    file.write_text('{"late": 1}')
    monkeypatch.setattr(world, "plan", lambda *_hosts, **_options: plan)
    [change] = world.setup("cursor")
    assert change.error == "it has changed meanwhile; run the setup again"
    assert file.read_text() == '{"late": 1}'
    assert ledger.read(world.state) == {}


def test_what_was_set_up_goes_though_others_have_changed_the_file(world):
    file = put(world.home / ".cursor" / "mcp.json", '{\n  "mcpServers": {}\n}\n')
    world.setup("cursor")
    found = json.loads(file.read_text())
    found["mcpServers"]["later"] = {"command": "x"}
    file.write_text(json.dumps(found, indent=2))
    world.remove("cursor")
    assert json.loads(file.read_text()) == {"mcpServers": {"later": {"command": "x"}}}


def test_a_file_that_was_made_stays_if_others_use_it_by_now(world):
    world.setup("cursor")
    file = world.home / ".cursor" / "mcp.json"
    file.write_text(file.read_text().replace('"mcpServers": {', '"mcpServers": {\n    "mine": {},'))
    world.remove("cursor")
    assert json.loads(file.read_text()) == {"mcpServers": {"mine": {}}}


def test_without_the_ledger_the_entries_go_and_no_file_does(world):
    world.setup("claude-code", "codex", "cursor")
    (world.state / "setup.json").write_text("not json")
    world.remove("claude-code", "codex", "cursor")
    assert {name: content for name, content in world.files().items() if content is not None} == {
        "home/.claude.json": b"{}\n",
        "home/.claude/CLAUDE.md": b"",
        "home/.claude/settings.json": b"{}\n",
        "home/.codex/AGENTS.md": b"",
        "home/.codex/config.toml": b"",
        "home/.cursor/mcp.json": b"{}\n",
    }


def test_rules_that_hosts_share_stay_until_the_last_of_them_goes(world):
    file = put(world.project / "AGENTS.md", "mine\n")
    machine = world.in_project()
    world.setup("codex", "opencode", "zed", machine=machine)
    for host in ("codex", "zed"):
        world.remove(host, machine=machine)
        assert file.read_text().count("reverie:begin") == 1
    world.remove("opencode", machine=machine)
    assert file.read_text() == "mine\n"


def test_the_user_s_files_and_a_project_s_are_set_up_apart(world):
    world.setup("cursor")
    user = world.files()
    world.setup("cursor", machine=world.in_project())
    world.remove("cursor", machine=world.in_project())
    assert world.files() == user


def test_what_was_reverted_by_hand_is_recorded_afresh(world):
    file = world.home / ".cursor" / "mcp.json"
    world.setup("cursor")
    file.write_text("{ }")
    world.setup("cursor")
    world.remove("cursor")
    assert file.read_text() == "{ }"


def test_a_new_address_replaces_the_old_one(world):
    file = put(world.home / ".claude" / "settings.json", '{"hooks": {}, "a": [\n]}')
    world.setup("claude-code")
    world.reverie = replace(world.reverie, url="http://127.0.0.1:9999", token="another-token")
    world.setup("claude-code")
    text = file.read_text()
    assert (text.count(":9999/hooks"), text.count(":7077"), text.count("Bearer another-token")) == (7, 0, 7)
    world.remove("claude-code")
    assert file.read_text() == '{"hooks": {}, "a": [\n]}'


@posix
def test_a_file_keeps_its_mode(world):
    file = put(world.home / ".cursor" / "mcp.json", "{}")
    file.chmod(0o640)
    world.setup("cursor")
    assert mode(file) == 0o640
    world.remove("cursor")
    assert mode(file) == 0o640


@posix
def test_a_file_with_the_token_is_the_owner_s_alone_as_long_as_it_has_it(world):
    file = put(world.home / ".claude" / "settings.json", "{}")
    file.chmod(0o644)
    [settings, *_] = world.setup("claude-code")
    assert mode(file) == 0o600
    assert "it holds the token now, so that only its owner may read it" in settings.remarks
    file.chmod(0o604)
    assert world.plan("claude-code")[0].action == "change"
    world.setup("claude-code")
    assert mode(file) == 0o600
    world.remove("claude-code")
    assert (mode(file), file.read_text()) == (0o644, "{}")


@posix
def test_a_new_file_with_the_token_is_the_owner_s_alone(world):
    world.setup("claude-code")
    assert mode(world.home / ".claude" / "settings.json") == 0o600
    assert mode(world.state / "setup.json") == 0o600


@posix
def test_a_symbolic_link_is_written_through(world):
    target = put(world.root / "dotfiles" / "mcp.json", "{}")
    link = world.home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(target)
    world.setup("cursor")
    assert link.is_symlink()
    assert "reverie" in target.read_text()
    world.remove("cursor")
    assert (link.is_symlink(), target.read_text()) == (True, "{}")


@posix
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error_of_that_file(world):
    file = put(world.home / ".cursor" / "mcp.json", "{}")
    file.parent.chmod(0o500)
    [change] = world.setup("cursor")
    file.parent.chmod(0o700)
    assert change.error == "it cannot be written: Permission denied"
    assert ledger.read(world.state) == {}


def test_a_file_that_cannot_be_replaced_keeps_its_bytes_and_leaves_no_draft(world, monkeypatch):
    file = put(world.home / ".cursor" / "mcp.json", "{}")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    plan = world.plan("cursor")
    monkeypatch.setattr(world, "plan", lambda *_hosts, **_options: plan)
    monkeypatch.setattr("web.hosts.carry_out.ledger.write", lambda *_: None)
    monkeypatch.setattr("os.fsync", full)
    [change] = world.setup("cursor")
    assert change.error == "it cannot be written: No space left on device"
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]
    assert file.read_text() == "{}"


def test_a_project_is_told_when_its_files_name_programs_of_this_machine(world):
    machine = world.in_project(world.machine)
    [server, _rules] = world.setup("cursor", machine=machine)
    assert any("programs of this machine" in remark for remark in server.remarks)
    [server, _rules] = world.setup("cursor", machine=world.in_project())
    assert server.remarks == ()
