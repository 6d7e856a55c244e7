"""The pages on upgrading and uninstalling, step by step, with a real stack in a scratch data directory."""

import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.fakes.kept_directories import OLDEST, unpack_directory
from tests.support.encoders import link_encoders, link_models
from tests.support.stack import ROOT, free_port

pytestmark = pytest.mark.timeout(300)

PAGE = (ROOT / "docs" / "how-to" / "uninstall.md").read_text(encoding="utf-8")


@pytest.fixture
def user(tmp_path, models):
    """Run commands as a user whose home folder is scratch; whatever runs at the end is stopped."""
    values = {"REVERIE_HOME": str(tmp_path / "home"), "REVERIE_PORT": str(free_port()), "HOME": str(tmp_path / "ann")}
    values |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REVERIE_", "XDG_"))}
    (tmp_path / "ann" / ".claude").mkdir(parents=True)
    link_encoders(tmp_path / "ann", models)
    link_models(tmp_path / "home", models)

    def run(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "web.cli", *arguments],
            cwd=tmp_path / "ann",
            env=kept | values,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    yield run
    run("down")


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def list_commands(page):
    return re.findall(r"`reverie ([a-z][^`]*)`", page)


def test_an_upgrade_keeps_every_memory_and_can_be_taken_back(user, home):
    unpack_directory(OLDEST, home)
    assert "mcpServers" in user("setup", "claude-code", "--dry-run", "--diff")
    user("up", "--daemon")
    assert "6543" in user("recall", "staging database")
    assert "before-migration" in user("store", "snapshot", "list")
    assert "store" not in "".join(line for line in user("doctor").splitlines() if line.startswith("fail"))
    user("remember", "The next port is 7654")
    user("down")
    before = re.search(r"before-migration-\S+", user("store", "snapshot", "list"))[0]
    user("-w", "default", "store", "snapshot", "restore", before)
    user("up", "--daemon")
    # A restore leaves the index of words to the next run of this job.
    user("jobs", "run", "segment")
    assert "6543" in user("recall", "staging database")
    assert "7654" not in user("recall", "next port", "--min-relevance", "0")


def test_uninstall_leaves_only_the_documented_files(user, home, tmp_path):
    user("up", "--daemon")
    user("remember", "The staging database listens on port 6543")
    user("setup", "claude-code", "--yes")
    settings = tmp_path / "ann" / ".claude" / "settings.json"
    assert "reverie" in settings.read_text()
    for command in ("service remove", "setup --remove --yes", "down"):
        assert command in list_commands(PAGE)
        user(*command.split())
    files = [file for file in (tmp_path / "ann").rglob("*") if file.is_file()]
    assert [file for file in files if "reverie" in file.read_text(errors="replace").lower()] == []
    rows = PAGE.partition("## The data directory")[2]
    named = [
        name.rstrip("/") for name in re.findall(r"`([^`]+)`", "".join(re.findall(r"^\|[^|]*\|", rows, re.MULTILINE)))
    ]
    left = {place.name for place in home.iterdir()}
    assert {name for name in left if not any(fnmatch(name, pattern) for pattern in named)} == set()
    assert Path(home / "workspaces" / "default" / "events.sqlite").is_file()
