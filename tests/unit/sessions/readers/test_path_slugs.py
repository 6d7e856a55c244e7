"""The folder behind a name that an agent made from its path."""

import re

from pipeline.sessions.readers.cursor import find_folder


def slug_of(path):
    return re.sub(r"[^A-Za-z0-9]+", "-", str(path)).strip("-")


def test_the_only_folder_of_the_name_is_found(tmp_path):
    folder = tmp_path / "my.shop" / "web_app"
    folder.mkdir(parents=True)
    (tmp_path / "my.shop" / "web").mkdir()
    assert find_folder(slug_of(folder)) == str(folder)


def test_of_two_folders_none_is_right(tmp_path):
    (tmp_path / "a-b").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_folder(slug_of(tmp_path / "a-b")) == ""


def test_a_folder_that_is_gone_is_not_guessed(tmp_path):
    assert find_folder(slug_of(tmp_path / "gone")) == ""


def test_a_folder_behind_a_link_is_found_by_the_path_with_the_link(tmp_path):
    (tmp_path / "disk" / "shop").mkdir(parents=True)
    (tmp_path / "work").symlink_to(tmp_path / "disk")
    assert find_folder(slug_of(tmp_path / "work" / "shop")) == str(tmp_path / "work" / "shop")
