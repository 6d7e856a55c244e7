"""Which files of a checkout are read is what git says, whatever the repository would have git do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.features.ingest.fields import Item, Skipped
from pipeline.features.ingest.project import read_project
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.git import Git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


class Checkout:
    """A repository on disk and what the reader makes of a folder of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def git(self, *arguments: str, below: str = "") -> str:
        name = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder.parent)}
        command = ["git", "-C", str(self.folder / below), *name, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout

    def write(self, *names: str) -> None:
        for name in names:
            place = self.folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("A = 1\n")

    def rules(self, text: str, below: str = "") -> None:
        (self.folder / below / ".gitignore").write_text(text)

    def read(self, below: str = "") -> tuple[set[str], dict[str, str]]:
        found = list(read_project(self.folder / below, {}, lambda *_: None))
        keys = {one.key for one in found if isinstance(one, Item)}
        skipped = {one.key: one.reason for one in found if isinstance(one, Skipped)}
        skipped.pop(".gitignore", None)
        return keys, skipped


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "project")
    made.git("init", "-q", "-b", "main")
    return made


def test_ignored_folder_is_a_single_skipped_entry(checkout):
    checkout.rules("logs/\n*.tmp.py\n!kept.tmp.py\n")
    checkout.write("logs/a.py", "logs/b/c.py", "a.tmp.py", "kept.tmp.py", "a.py", "deep/b.tmp.py", "deep/c.py")
    assert checkout.read() == (
        {"a.py", "kept.tmp.py", "deep/c.py"},
        dict.fromkeys(["logs/", "a.tmp.py", "deep/b.tmp.py"], "ignored by git"),
    )


def test_committed_file_is_read_although_an_ignore_rule_matches(checkout):
    checkout.write("a.py", "b.py")
    checkout.git("add", "-A")
    checkout.git("commit", "-q", "-m", "One")
    checkout.rules("*.py\n")
    assert checkout.read()[0] == {"a.py", "b.py"}


def test_deleted_committed_file_is_skipped(checkout):
    checkout.write("a.py", "b.py")
    checkout.git("add", "-A")
    (checkout.folder / "b.py").unlink()
    assert checkout.read() == ({"a.py"}, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_may_not_be_looked_into_is_named(checkout):
    checkout.write("a.py", "closed/known.py", "closed/inner/new.py")
    checkout.git("add", "closed/known.py")
    (checkout.folder / "closed").chmod(0)
    try:
        assert checkout.read()[1] == dict.fromkeys(["closed/", "closed/known.py"], "cannot be read")
    finally:
        (checkout.folder / "closed").chmod(0o700)


def test_folder_that_git_cannot_open_is_reported(checkout, monkeypatch):
    checkout.write("a.py")
    checkout.git("add", "-A")
    run = Git._run

    def run_with_a_closed_folder(self, *arguments):
        done = run(self, *arguments)
        done.stderr = "warning: could not open directory 'clösed/in'side/': Permission denied\n".encode()
        return done

    monkeypatch.setattr(Git, "_run", run_with_a_closed_folder)
    assert checkout.read() == ({"a.py"}, {"clösed/in'side/": "cannot be read"})


def test_a_folder_below_follows_the_rules_above_it(checkout):
    checkout.rules("b.py\n")
    (checkout.folder / ".git/info/exclude").write_text("c.py\n")
    checkout.write("below/a.py", "below/b.py", "below/c.py", "beside.py")
    assert checkout.read("below") == ({"a.py"}, dict.fromkeys(["b.py", "c.py"], "ignored by git"))


def test_a_folder_that_is_ignored_itself_is_read_when_it_is_asked_for(checkout):
    checkout.rules("notes/\n")
    checkout.write("notes/a.py")
    assert checkout.read("notes") == ({"a.py"}, {})


def test_other_repositories_within_are_not_its_own(checkout, tmp_path):
    other = Checkout(tmp_path / "other")
    other.git("init", "-q")
    other.write("a.py")
    other.git("add", "-A")
    other.git("commit", "-q", "-m", "One")
    checkout.git("submodule", "add", "-q", str(other.folder), "module")
    shutil.copytree(other.folder, checkout.folder / "inner")
    checkout.write("a.py")
    keys, skipped = checkout.read()
    assert keys == {"a.py"}
    assert {key for key, reason in skipped.items() if reason == "another repository"} == {"module/", "inner/"}


def test_a_folder_of_repositories_is_read_by_the_rules_of_each(tmp_path):
    whole = Checkout(tmp_path / "all")
    for name in ("one", "two"):
        one = Checkout(whole.folder / name)
        one.git("init", "-q")
        one.rules(f"not_in_{name}.py\n")
        one.write("a.py", "not_in_one.py", "not_in_two.py")
    assert whole.read()[0] == {"one/a.py", "one/not_in_two.py", "two/a.py", "two/not_in_one.py"}


def test_a_worktree_follows_the_rules_of_its_repository(checkout, tmp_path):
    checkout.write("a.py")
    checkout.git("add", "-A")
    checkout.git("commit", "-q", "-m", "One")
    (checkout.folder / ".git/info/exclude").write_text("b.py\n")
    checkout.git("worktree", "add", "-q", str(tmp_path / "tree"))
    tree = Checkout(tmp_path / "tree")
    tree.write("b.py")
    assert tree.read() == ({"a.py"}, {"b.py": "ignored by git"})


def test_dependency_folders_are_skipped_although_committed(checkout):
    checkout.write("a.py", "web/node_modules/b/c.py", "web/node_modules/d.py")
    checkout.git("add", "-A")
    assert checkout.read() == ({"a.py"}, {"web/node_modules/": "folder of dependencies or caches"})


def test_names_come_as_they_are(checkout):
    checkout.write("größe/лодка.py", "a b.py", 'quote".py', "line\nfeed.py")
    (checkout.folder / os.fsdecode(b"caf\xe9.py")).write_text("A = 1")
    keys, skipped = checkout.read()
    assert keys == {"größe/лодка.py", "a b.py", 'quote".py', "line\nfeed.py"}
    assert skipped == {"caf?.py": "name is not valid UTF-8"}


@pytest.mark.parametrize("setting", ["core.fsmonitor", "core.hooksPath", "core.pager", "core.editor", "alias.ls-files"])
def test_no_program_that_a_repository_names_is_run(checkout, tmp_path, setting):
    program = tmp_path / "hooks/post-index-change"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o700)
    checkout.write("a.py")
    value = program.parent if setting == "core.hooksPath" else program
    checkout.git("config", setting, f"!{value}" if setting.startswith("alias") else str(value))
    assert checkout.read()[0] == {"a.py"}
    assert not (tmp_path / "ran").exists()


def test_neither_the_environment_nor_a_setting_leads_out_of_the_folder(checkout, tmp_path, monkeypatch):
    outside = Checkout(tmp_path / "outside")
    outside.git("init", "-q")
    outside.write("secret.py")
    checkout.write("a.py")
    monkeypatch.setenv("GIT_DIR", str(outside.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(outside.folder))
    assert checkout.read()[0] == {"a.py"}
    checkout.git("config", "core.worktree", str(outside.folder))
    assert checkout.read()[0] == {"a.py"}


def test_a_committed_folder_that_became_a_link_is_not_followed(checkout, tmp_path):
    checkout.write("inside/secret.py", "a.py")
    checkout.git("add", "-A")
    shutil.move(checkout.folder / "inside", tmp_path / "outside")
    (checkout.folder / "inside").symlink_to(tmp_path / "outside")
    assert checkout.read() == ({"a.py"}, {"inside": "symbolic link"})


@pytest.mark.parametrize("broken", ["nonsense", "gitdir: /nowhere\n"])
def test_a_broken_repository_is_read_as_a_folder(tmp_path, broken):
    folder = Checkout(tmp_path / "project")
    (folder.folder / ".git").write_text(broken)
    folder.write("a.py")
    folder.rules("a.py\n")
    assert folder.read() == ({"a.py"}, {})


def test_without_git_a_checkout_is_read_as_a_folder(checkout, monkeypatch):
    checkout.rules("b.py\n")
    checkout.write("a.py", "b.py", "node_modules/c.py")
    monkeypatch.setenv("PATH", "")
    assert checkout.read() == ({"a.py", "b.py"}, {"node_modules/": "folder of dependencies or caches"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_checkout_of_another_user_is_rejected_with_advice(checkout):
    checkout.write("a.py")
    for place in (checkout.folder, checkout.folder / ".git"):
        os.chown(place, 12345, 12345)
    with pytest.raises(InvalidField, match="git config"):
        checkout.read()
