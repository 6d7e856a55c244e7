import os

import pytest

from config.paths import is_workspace_id
from pipeline.errors import InvalidField
from pipeline.identity import workspace_of_folder


def test_every_folder_of_a_repository_is_one_workspace(tmp_path):
    inner = tmp_path / "My Project" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "My Project" / ".git").mkdir()
    name = workspace_of_folder(tmp_path / "My Project")
    assert name.startswith("my-project-")
    assert workspace_of_folder(inner) == workspace_of_folder(inner / "not-yet-there") == name


def test_a_worktrees_git_file_counts(tmp_path):
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    (tmp_path / "src").mkdir()
    assert workspace_of_folder(tmp_path / "src") == workspace_of_folder(tmp_path)


def test_folders_of_one_name_in_two_places_are_two_workspaces(tmp_path):
    for place in ("a", "b"):
        (tmp_path / place / "app" / ".git").mkdir(parents=True)
    assert workspace_of_folder(tmp_path / "a" / "app") != workspace_of_folder(tmp_path / "b" / "app")


def test_a_link_leads_to_what_it_names(tmp_path):
    (tmp_path / "real" / ".git").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert workspace_of_folder(tmp_path / "link") == workspace_of_folder(tmp_path / "real")


@pytest.mark.parametrize("name", ["ünïcode", "x" * 200, "...", "--", "UPPER_case 1", "日本", os.fsdecode(b"\xff\xfe")])
def test_every_folder_has_a_valid_id(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    assert is_workspace_id(workspace_of_folder(folder))


@pytest.mark.parametrize("path", ["\x00", "loop"])
def test_a_path_that_cannot_be_followed_is_an_invalid_field(tmp_path, path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InvalidField):
        workspace_of_folder(tmp_path / path)
