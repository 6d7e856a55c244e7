import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = '[project]\nname = "reverie"\nversion = "1.2.3"\n'

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


@pytest.fixture
def repository(tmp_path):
    """A repository that may be released, but for the tools, which are not there."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "release", tmp_path / ".ci")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-11-24)\n\n- It works.\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(folder, *arguments):
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder, tag="v1.2.3"):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "A change", "--allow-empty")
    if tag:
        git(folder, "tag", "--force", tag)


def release(folder):
    """Return what the release ends with, tools missing."""
    done = subprocess.run([".ci/release", "no-such-folder"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


def test_committed_tagged_and_described_release_is_built(repository):
    said = release(repository)
    assert "no release" not in said
    assert "no-such-folder/python" in said


def test_a_tree_with_changes_is_not_released(repository):
    (repository / "new.py").touch()
    assert "no release: the tree holds what is not committed" in release(repository)


def test_a_commit_without_a_tag_is_not_released(repository):
    commit(repository, tag=None)
    assert "no release: this commit has no tag v1.2.3" in release(repository)


@pytest.mark.parametrize("distribution", [".", "clients/python"])
def test_a_tag_that_says_another_version_is_not_released(repository, distribution):
    folder = repository / distribution
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT.replace("1.2.3", "1.2.4"))
    commit(repository)
    assert f"no release: the tag is v1.2.3, {distribution}/pyproject.toml says 1.2.4" in release(repository)


@pytest.mark.parametrize("heading", ["1.2.3 (unreleased)", "1.2.30 (2026-11-24)"])
def test_a_version_without_its_changes_is_not_released(repository, heading):
    (repository / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n\n- It works.\n")
    commit(repository)
    assert 'no release: CHANGELOG.md has no part "## 1.2.3 (DATE)"' in release(repository)
