"""A data directory that was moved away is not replaced by a new one without a word."""

import shutil
from pathlib import Path

import pytest

from config.settings import Settings
from web.cli import cli
from web.cli.state import warn_if_replaced


@pytest.fixture
def user(tmp_path, monkeypatch):
    folder = tmp_path / "user"
    (folder / ".claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def warn(capsys, root):
    warn_if_replaced(Settings(home=root), {}, Path.home())
    return capsys.readouterr().err


@pytest.mark.parametrize("sign", ["token", "setup.json"])
def test_a_moved_data_directory_is_reported_before_a_new_one_is_made(user, capsys, sign):
    root = user / ".reverie"
    settings = user / ".claude" / "settings.json"
    settings.write_text('{"command": "/usr/bin/reverie-hook claude-code"}')
    root.mkdir()
    (root / sign).write_text("{}")
    assert warn(capsys, root) == ""
    root.rename(user / "backup")
    # A hook that ran since then stored its events.
    (root / "spool").mkdir(parents=True)
    said = warn(capsys, root)
    assert f"{root} is a new, empty data directory" in said
    assert f"({settings})" in said
    shutil.rmtree(root)
    (user / "backup").rename(root)
    assert warn(capsys, root) == ""


@pytest.mark.parametrize("words", [["list"], ["status"], ["remember", "The gate is open."], ["recall", "gate"]])
def test_every_command_that_needs_a_data_directory_warns(user, capsys, monkeypatch, words):
    (user / ".claude" / "settings.json").write_text('{"command": "/usr/bin/reverie-hook claude-code"}')
    monkeypatch.setenv("REVERIE_HOME", str(user / ".reverie"))
    monkeypatch.setenv("REVERIE_PORT", "1")
    with pytest.raises(SystemExit):
        cli.main(words)
    assert "new, empty data directory" in capsys.readouterr().err


@pytest.mark.parametrize(("named", "is_reported"), [("", False), ("own", True), ("other", False)])
def test_only_agents_of_the_same_data_directory_count(user, tmp_path, capsys, named, is_reported):
    variable = f"REVERIE_HOME={tmp_path / named} " if named else ""
    (user / ".claude" / "settings.json").write_text(f'{{"command": "{variable}/usr/bin/reverie-hook"}}')
    assert ("new, empty data directory" in warn(capsys, tmp_path / "own")) is is_reported


def test_the_first_start_of_a_new_installation_says_nothing(user, capsys):
    assert warn(capsys, user / ".reverie") == ""
