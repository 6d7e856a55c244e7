"""No setting or attribute of a repository runs a program, and none makes git read a file elsewhere, in any command."""

import os
import subprocess
from pathlib import Path

import pytest

from pipeline.features.citations.parser import find_citations
from pipeline.features.citations.resolve import find_changed_since, list_rule_files, resolve_citations
from pipeline.features.ingest.git import read_git
from pipeline.features.ingest.project.files import File, list_files
from pipeline.features.workspaces.project_file import is_of_owner
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git import git as git_module
from pipeline.kernel.git.branches import find_side_branch, list_branches
from pipeline.kernel.git.git import Git
from pipeline.kernel.git.line_commit import find_line_commit

# Values that git runs. Each program leaves a file with the name of its setting.
PROGRAMS = (
    *("core.pager", "pager.log", "pager.blame", "pager.grep", "pager.ls-files", "core.editor", "core.askPass"),
    *("core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.alternateRefsCommand", "credential.helper"),
    *("diff.external", "diff.trap.command", "diff.trap.textconv", "merge.trap.driver", "interactive.diffFilter"),
    *("filter.trap.clean", "filter.trap.smudge", "filter.trap.process"),
    *("gpg.program", "gpg.ssh.program", "gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.defaultKeyCommand"),
    *("uploadpack.packObjectsHook", "sequence.editor", "remote.origin.vcs", "remote.origin.uploadpack"),
    *("alias.log", "alias.blame", "alias.grep", "trailer.trap.cmd", "submodule.sub.update"),
)
SWITCHES = {
    "log.showSignature": "true",
    "diff.submodule": "diff",
    "submodule.recurse": "true",
    "filter.trap.required": "true",
    "diff.trap.cachetextconv": "true",
    "color.ui": "always",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "extensions.partialClone": "origin",
    "remote.origin.promisor": "true",
    "remote.origin.partialclonefilter": "blob:none",
    "core.bigFileThreshold": "1",
}
HOOKS = ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout", "reference-transaction")
# Values that name a file. Git would wait forever for a pipe.
FILES = (
    *("diff.orderFile", "core.attributesFile", "core.excludesFile", "mailmap.file", "blame.ignoreRevsFile"),
    *("commit.template", "core.alternateRefsPrefixes", "gpg.ssh.allowedSignersFile", "gpg.ssh.revocationFile"),
)
SECRET = "root:hunter2:0:0:owner of this machine"


class HostileRepository:
    """A checkout with a side branch, a changed file and a submodule, whose attributes name a driver for every file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repo"
        self.traps = folder / "traps"
        self.traps.mkdir()
        self.home = folder
        inner = folder / "inner"
        for repository in (self.folder, inner):
            repository.mkdir()
            self.run("init", "-q", "-b", "main", cwd=repository)
        self.run("commit", "-q", "--allow-empty", "-m", "Start the inner part", cwd=inner)
        (self.folder / "CLAUDE.md").write_text("Run `parse_lock_table` from `canal/locks.py`.\n")
        (self.folder / "app.py").write_text("first = 1\nsecond = 2\n")
        self.commit("Open the gate")
        self.run("checkout", "-q", "-b", "topic")
        (self.folder / "gone.py").write_text("def parse_lock_table(): ...\n")
        self.commit("Parse the table")
        self.head = self.run("rev-parse", "HEAD")
        self.run("checkout", "-q", "main")
        self.run("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
        self.commit("Add the inner part")
        self.run("commit", "-q", "--allow-empty", "-m", "Move the inner part", cwd=self.folder / "sub")
        (self.folder / "app.py").write_text("first = 1\nsecond = 2\nthird = 3\n")
        self.commit("Move everything")
        # Attributes may also come with the commits, and with the checkout's own file.
        (self.folder / ".gitattributes").write_text("* diff=trap filter=trap merge=trap\n")
        self.commit("Name drivers")
        (self.folder / ".git" / "info" / "attributes").write_text("* diff=trap filter=trap merge=trap\n")
        (self.folder / "app.py").write_text("zeroth = 0\nfirst = 1\nsecond = 2\nthird = 3\n")

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            command, cwd=cwd or self.folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, message: str) -> None:
        self.run("add", "-A")
        self.run("commit", "-q", "-m", message)

    def write_trap(self, name: str) -> str:
        program = self.traps / f"{name}.sh"
        program.write_text(f"#!/bin/sh\ntouch '{self.traps}/{name}.ran'\ncat\n")
        program.chmod(0o755)
        return str(program)

    def list_sprung(self) -> list[str]:
        return sorted(path.stem for path in self.traps.glob("*.ran"))


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setattr(git_module, "ANSWER_S", 10)
    monkeypatch.setattr(git_module, "OUTPUT_S", 10)
    return HostileRepository(tmp_path)


def check_blame(hostile):
    commit = find_line_commit(hostile.folder / "app.py", 4)
    assert commit is not None
    assert commit.subject == "Move everything"


def check_history(hostile):
    assert len(list(read_git(hostile.folder, {}, lambda _done, _total: None))) == 4


def check_project(hostile):
    assert "app.py" in {entry.key for entry in list_files(hostile.folder) if isinstance(entry, File)}


def check_branches(hostile):
    assert find_side_branch(hostile.folder) in (None, "topic")
    assert "topic" in list_branches(hostile.folder)


def check_citations(hostile):
    assert list_rule_files(hostile.folder) == ["CLAUDE.md"]
    text = (hostile.folder / "CLAUDE.md").read_text()
    found = resolve_citations(hostile.folder, [find_citations(text)], are_files=True)
    find_changed_since(hostile.folder, [[hostile.head[:10]]], found)


def check_claims(hostile):
    assert is_of_owner(hostile.folder / "app.py", hostile.folder) is False


COMMANDS = (check_blame, check_history, check_project, check_branches, check_citations, check_claims)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_setting_or_attribute_of_a_repository_runs_a_program(hostile, command):
    for setting in PROGRAMS:
        hostile.run("config", setting, hostile.write_trap(setting))
        hostile.run("config", setting, hostile.write_trap(setting), cwd=hostile.folder / "sub")
    for setting, value in SWITCHES.items():
        hostile.run("config", setting, value)
    for address in ("remote.origin.url", "url.ext::sh.insteadOf"):
        hostile.run("config", address, f"ext::{hostile.write_trap(address)}")
    hostile.run("config", "core.hooksPath", str(hostile.folder / "hooks"))
    for folder in (hostile.folder / "hooks", hostile.folder / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in HOOKS:
            os.link(hostile.write_trap(hook), folder / hook)
    command(hostile)
    assert hostile.list_sprung() == []


@pytest.mark.parametrize("command", COMMANDS)
def test_no_file_that_a_repository_names_is_opened(hostile, command):
    os.mkfifo(hostile.home / "pipe")
    for setting in FILES:
        hostile.run("config", setting, str(hostile.home / "pipe"))
    command(hostile)


@pytest.mark.parametrize("name", ["include.path", "includeIf.gitdir:/.path"])
@pytest.mark.parametrize("command", [check_blame, check_history, check_citations])
def test_no_error_shows_a_line_of_an_included_file(hostile, command, name):
    (hostile.home / "passwords").write_text(f"{SECRET}\n")
    hostile.run("config", name, str(hostile.home / "passwords"))
    with pytest.raises(InvalidField) as raised:
        command(hostile)
    assert "hunter2" not in repr(raised.value.errors)


@pytest.mark.parametrize("command", [check_project, check_citations, check_claims])
def test_a_repository_cannot_name_another_folder_as_its_work_tree(hostile, command):
    other = hostile.home / "private"
    other.mkdir()
    (other / "diary.md").write_text(SECRET)
    hostile.run("config", "core.worktree", str(other))
    command(hostile)
    assert not any("diary" in entry.key for entry in list_files(hostile.folder))


def test_users_excludes_file_applies_and_the_repositorys_does_not(hostile):
    for name in ("mine.txt", "theirs.txt"):
        (hostile.folder / name).write_text("text\n")
        (hostile.home / f"{name}.ignore").write_text(f"{name}\n")
    (hostile.home / ".gitconfig").write_text("[core]\nexcludesFile = ~/mine.txt.ignore\n")
    hostile.run("config", "core.excludesFile", str(hostile.home / "theirs.txt.ignore"))
    git = Git(hostile.folder)
    assert git.ignores(hostile.folder / "mine.txt")
    assert not git.ignores(hostile.folder / "theirs.txt")


def test_an_object_that_is_missing_is_not_fetched(hostile):
    hostile.run("config", "extensions.partialClone", "origin")
    hostile.run("config", "remote.origin.url", f"ext::{hostile.write_trap('fetch')}")
    hostile.run("config", "protocol.ext.allow", "always")
    for setting in ("core.sshCommand", "remote.origin.uploadpack"):
        hostile.run("config", setting, hostile.write_trap(setting))
    blob = hostile.run("rev-parse", "HEAD:app.py")
    (hostile.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(InvalidField):
        find_line_commit(hostile.folder / "app.py", 1)
    assert hostile.list_sprung() == []


def test_objects_of_another_repository_run_no_program(hostile):
    (hostile.folder / ".git" / "objects" / "info" / "alternates").write_text(f"{hostile.home}/inner/.git/objects\n")
    hostile.run("config", "core.alternateRefsCommand", hostile.write_trap("refs"))
    for command in COMMANDS:
        command(hostile)
    assert hostile.list_sprung() == []


def test_only_reviewed_commands_of_git_run(hostile):
    """A command of the work tree would apply filters."""
    for words in (("status",), ("diff",), ("blame", "app.py"), ("checkout", "main")):
        with pytest.raises(KeyError):
            Git(hostile.folder).answer(*words)
