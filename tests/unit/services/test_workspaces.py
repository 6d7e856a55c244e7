"""Which workspace a folder's commands, hooks and requests work on."""

import pytest

from config.settings import Settings
from pipeline.services.workspaces import WorkspaceChoice, choose_workspace, history_of_folder, identify


@pytest.fixture
def choose(tmp_path):
    """Choose the workspace of a folder in a home where some workspaces were written to."""

    def chosen(folder, *existing, explicit=None, environment=None, to_write=False, **configured) -> WorkspaceChoice:
        settings = Settings(home=tmp_path / "home", **configured)
        for name in existing:
            events = settings.paths.workspace(name).events
            events.parent.mkdir(parents=True, exist_ok=True)
            events.touch()
        return choose_workspace(folder, settings, explicit=explicit, environment=environment, to_write=to_write)

    return chosen


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def make_repository(folder):
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/config").write_text('[remote "origin"]\n\turl = https://example.org/canal/lock.git\n')
    return folder


def test_a_derived_workspace_is_used_once_it_exists(choose, folder):
    derived = identify(folder).id
    before = choose(folder)
    after = choose(folder, derived)
    assert (before.workspace, after.workspace) == ("default", derived)
    assert "nothing was written to it yet" in before.reason
    assert choose(folder, derived, workspace="set").workspace == "set"


def test_to_write_a_projects_own_workspace_is_used_before_it_exists(choose, folder):
    assert choose(folder, to_write=True).workspace == "default"
    project = make_repository(folder / "lock")
    assert choose(project, to_write=True).workspace == identify(project).id
    assert choose(project).workspace == "default"


def test_a_named_workspace_is_used_whether_it_exists_or_not(choose, folder):
    (folder / ".reverie.toml").write_text('workspace = "own"')
    assert choose(folder, workspace="set").workspace == "own"
    assert choose(folder, workspace="set", environment="env").workspace == "env"
    assert choose(folder, environment="env", explicit="said").workspace == "said"


def test_without_a_folder_the_file_rules_are_passed_over(choose):
    assert choose(None).workspace == "default"
    assert choose(None, workspace="set").workspace == "set"
    assert choose(None, workspace="set", environment="env").workspace == "env"
    assert choose(None, environment="env", explicit="said").workspace == "said"


def test_the_setting_splits(choose, folder):
    project = make_repository(folder / "lock")
    by_clone = identify(project, split="clone").id
    assert choose(project, by_clone, workspace_split="clone").workspace == by_clone
    assert by_clone != identify(project).id


def test_all_worktrees_of_a_repository_have_one_history(folder):
    main = make_repository(folder / "main")
    private = main / ".git/worktrees/linked"
    private.mkdir(parents=True)
    (private / "commondir").write_text("../..\n")
    (folder / "linked").mkdir()
    (folder / "linked/.git").write_text(f"gitdir: {private}\n")
    assert history_of_folder(folder / "linked") == history_of_folder(main / "below") == main
    assert history_of_folder(folder) == folder
    (folder / "broken").mkdir()
    (folder / "broken/.git").write_text("nonsense")
    assert history_of_folder(folder / "broken") == folder / "broken"
