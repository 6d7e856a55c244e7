import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from config.paths import CurrentToken, HomePaths, file_identity, is_workspace_id


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def paths(tmp_path):
    return HomePaths(tmp_path / "home")


def test_the_token_is_made_once_and_is_its_owners_alone(paths):
    token = paths.token()
    assert paths.token() == token
    assert len(token) >= 40
    assert mode(paths.token_file) == 0o600
    assert mode(paths.root) == 0o700


@pytest.mark.parametrize("content", ["", "\n", "  \n"])
def test_a_file_without_a_token_gets_one(paths, content):
    paths.root.mkdir(parents=True, exist_ok=True)
    paths.token_file.write_text(content)
    made = paths.token()
    assert len(made) > 40
    assert paths.token() == made
    assert paths.token_file.stat().st_mode & 0o777 == 0o600


def test_racing_first_starts_agree_on_one_token(tmp_path):
    for attempt in range(10):
        start, tokens = threading.Barrier(8), []
        root = tmp_path / str(attempt)

        def ask(start=start, tokens=tokens, root=root):
            start.wait()
            tokens.append(HomePaths(root).token())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(tokens) == 8
        assert len(set(tokens)) == 1
        assert [entry.name for entry in root.iterdir()] == ["token"]


def test_a_new_token_takes_the_place_of_the_present_one_at_once(paths):
    known = CurrentToken(paths.token_file)
    assert known() == ""
    first = paths.token()
    assert known() == first
    paths.token_file.chmod(0o644)
    second = paths.renew_token()
    assert second != first
    assert len(second) >= 40
    assert known() == paths.token() == second
    assert mode(paths.token_file) == 0o600
    assert [entry.name for entry in paths.root.iterdir()] == ["token"]


def test_a_token_whose_file_is_gone_or_empty_stays_known(paths):
    known = CurrentToken(paths.token_file)
    token = paths.token()
    assert known() == token
    paths.token_file.write_text("")
    assert known() == token
    paths.token_file.unlink()
    assert known() == token


def test_the_homes_folders_are_their_owners_alone(paths):
    paths.ensure()
    paths.ensure()
    assert {mode(folder) for folder in (paths.root, paths.models, paths.logs, paths.workspaces)} == {0o700}


def test_only_workspaces_that_hold_memories_are_listed(paths):
    assert paths.workspace_ids() == []
    paths.ensure()
    for name in ("beta", "alpha", "Not-An-Id", "empty"):
        paths.workspaces.joinpath(name).mkdir()
        if name != "empty":
            paths.workspaces.joinpath(name, "events.sqlite").touch()
    paths.workspaces.joinpath("file").touch()
    assert paths.workspace_ids() == ["alpha", "beta"]


@given(st.text(max_size=70))
def test_a_workspace_id_is_one_safe_folder_name(text):
    if is_workspace_id(text):
        folder = HomePaths(Path("/home")).workspace(text).root
        assert folder.parent == Path("/home/workspaces")
        assert folder.name == text
        assert text.isascii()
    else:
        with pytest.raises(ValueError, match="not a workspace id"):
            HomePaths(Path("/home")).workspace(text)


def test_a_replaced_file_is_another_file(tmp_path):
    file = tmp_path / "file"
    assert file_identity(file) is None
    file.write_text("one")
    first = file_identity(file)
    file.write_text("two")
    assert file_identity(file) == first
    other = tmp_path / "other"
    other.write_text("three")
    other.replace(file)
    assert file_identity(file) != first
