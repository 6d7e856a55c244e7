"""What git makes of a repository, a worktree and a clone is understood without git."""

import os
import shutil
import subprocess

import pytest

from pipeline.features.workspaces.identify import identify
from pipeline.kernel.git.repository import branch_of_folder


def id_of(folder):
    return identify(folder).id


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
def test_git_worktrees_clones_and_separate_git_dirs_are_identified(tmp_path):
    def git(*arguments, cwd):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        whole = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(whole, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    main = tmp_path / "main"
    main.mkdir()
    git("init", "-b", "trunk", cwd=main)
    git("commit", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", "-b", "topic/one", "../linked", cwd=main)
    git("clone", "main", "cloned", cwd=tmp_path)
    git("clone", "--bare", "main", "store.git", cwd=tmp_path)
    git("worktree", "add", "--detach", "../loose", cwd=tmp_path / "store.git")
    assert [branch_of_folder(tmp_path / place) for place in ("main", "linked", "cloned", "loose")] == [
        "trunk",
        "topic/one",
        "trunk",
        None,
    ]
    ids = {id_of(tmp_path / place) for place in ("main", "linked", "cloned", "loose")}
    assert ids == {id_of(main)}
    git("remote", "add", "origin", 'ssh://git@h/we"ird #;/r.git', cwd=main)
    assert identify(main).detail.endswith('is h/we"ird #;/r')
    assert id_of(tmp_path / "linked") == id_of(main) != id_of(tmp_path / "cloned")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
def test_ignored_workspace_file_is_approved_and_a_cloned_file_is_not(tmp_path):
    def git(*arguments, cwd):
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        whole = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(whole, cwd=cwd, env=environment, capture_output=True, check=True)

    hostile, clone = tmp_path / "hostile", tmp_path / "clone"
    hostile.mkdir()
    git("init", "-q", cwd=hostile)
    (hostile / ".reverie.toml").write_text('workspace = "theirs"\n')
    # To ignore what is tracked makes it nobody's own.
    (hostile / ".gitignore").write_text(".reverie.toml\n")
    git("add", "-f", "-A", cwd=hostile)
    git("commit", "-q", "-m", "first", cwd=hostile)
    git("clone", "-q", "hostile", "clone", cwd=tmp_path)
    assert identify(clone).waits is True
    git("rm", "-q", "--cached", ".reverie.toml", cwd=clone)
    os.utime(clone / ".reverie.toml", ns=(1, 1))
    assert (identify(clone).id, identify(clone).waits) == ("theirs", False)
