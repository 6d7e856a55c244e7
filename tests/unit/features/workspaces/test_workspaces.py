"""Which workspace a folder's commands, hooks and requests work on."""

import pytest

from config.settings import Settings
from pipeline.features.workspaces.identify import identify
from pipeline.features.workspaces.project_file import MAX_WAITING, Claims
from pipeline.features.workspaces.usecases import (
    WorkspaceChoice,
    agree_to_claim,
    choose_workspace,
    history_of_folder,
    list_claims,
    note_claim,
    withdraw_claim,
)
from pipeline.kernel.errors import NotFound


@pytest.fixture
def choose(tmp_path):
    """Choose the workspace of a folder in a home where some workspaces were written to."""

    def chosen(folder, *existing, explicit=None, environment=None, **configured) -> WorkspaceChoice:
        settings = Settings(home=tmp_path / "home", **configured)
        for name in existing:
            events = settings.paths.workspace(name).events
            events.parent.mkdir(parents=True, exist_ok=True)
            events.touch()
        return choose_workspace(folder, settings, explicit=explicit, environment=environment)

    return chosen


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def make_repository(folder):
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/config").write_text('[remote "origin"]\n\turl = https://example.org/canal/lock.git\n')
    return folder


def test_outside_git_the_workspace_of_a_folder_is_used_if_it_exists(choose, folder):
    derived = identify(folder).id
    before = choose(folder)
    after = choose(folder, derived)
    assert (before.workspace, after.workspace) == ("default", derived)
    assert "in no git repository" in before.detail
    assert choose(folder, derived, workspace="set").workspace == "set"


def test_a_workspace_that_has_only_settings_is_used(choose, folder, tmp_path):
    project = make_repository(folder / "lock")
    config = Settings(home=tmp_path / "home").paths.workspace(identify(project).id).config
    config.parent.mkdir(parents=True)
    config.write_text("incognito = true\n")
    assert choose(project).workspace == identify(project).id


@pytest.mark.parametrize("place", [".", "src/deep", "../linked"])
def test_a_new_project_uses_its_own_empty_workspace_and_never_default(choose, folder, place):
    """What was said outside a project must not appear inside it."""
    project = make_repository(folder / "lock")
    (project / "src/deep").mkdir(parents=True)
    (folder / "linked").symlink_to(project, target_is_directory=True)
    choice = choose(project / place, "default", "other-0d1a25a8")
    assert choice.workspace == identify(project).id
    assert "default" not in choice.detail


def test_a_project_without_a_remote_has_its_own_workspace_too(choose, folder):
    (folder / "alone/.git").mkdir(parents=True)
    assert choose(folder / "alone", "default").workspace == identify(folder / "alone").id


def test_a_workspace_that_the_user_has_set_is_used_in_every_project(choose, folder):
    assert choose(make_repository(folder / "lock"), "set", workspace="set").workspace == "set"


def test_a_named_workspace_is_used_whether_it_exists_or_not(choose, folder, tmp_path):
    (folder / ".reverie.toml").write_text('workspace = "own"')
    assert choose(folder, workspace="set").workspace == "own"
    agree_to_claim(Settings(home=tmp_path / "home"), folder / ".reverie.toml", "own")
    assert choose(folder, "own", workspace="set").workspace == "own"
    assert choose(folder, workspace="set", environment="env").workspace == "env"
    assert choose(folder, environment="env", explicit="said").workspace == "said"


@pytest.mark.parametrize("name", ["theirs", "default", "set", "verdict-0d1a25a8"])
def test_a_file_names_no_workspace_of_another_project(choose, folder, name):
    """What exists is another's, the set one is everybody's, and whose a derived one is can be computed by anybody."""
    (folder / ".reverie.toml").write_text(f'workspace = "{name}"')
    choice = choose(folder, "theirs", workspace="set")
    assert (choice.identity.waits, choice.identity.id) == (True, identify(folder).id)


def test_workspace_name_belongs_to_its_first_claimant_until_approved(tmp_path, folder):
    settings = Settings(home=tmp_path / "home")
    first, second = folder / "first" / ".reverie.toml", folder / "second" / ".reverie.toml"
    for file in (first, second):
        file.parent.mkdir()
        file.write_text('workspace = "canal"')

    def identity(file):
        choice = choose_workspace(file.parent, settings, explicit=None, environment=None)
        note_claim(settings, choice.identity, to_write=True)
        return choice.identity

    assert identity(first).rule == "file"
    assert identity(second).waits
    assert [(one.file, one.agreed) for one in list_claims(settings)] == [(str(first), True), (str(second), False)]
    assert identity(second).waits
    agree_to_claim(settings, second, "canal")
    assert identity(second).rule == identity(first).rule == "file"
    withdraw_claim(settings, second)
    assert identity(second).waits
    with pytest.raises(NotFound):
        withdraw_claim(settings, second)
    assert settings.paths.claims.stat().st_mode & 0o777 == 0o600


def test_an_agreement_is_for_one_name(tmp_path, folder, choose):
    file = folder / ".reverie.toml"
    file.write_text('workspace = "canal"')
    agree_to_claim(Settings(home=tmp_path / "home"), file, "canal")
    assert choose(folder, "canal", "theirs").workspace == "canal"
    file.write_text('workspace = "theirs"')
    assert choose(folder, "canal", "theirs").identity.waits


def test_only_so_many_claims_wait(tmp_path, folder):
    settings = Settings(home=tmp_path / "home")
    agree_to_claim(settings, folder / "mine", "canal")
    for number in range(MAX_WAITING + 5):
        Claims(settings.paths.claims).note(folder / f"{number}", "canal")
    kept = list_claims(settings)
    assert (len(kept), kept[0].agreed, kept[1].file) == (MAX_WAITING + 1, True, str(folder / f"{MAX_WAITING + 4}"))


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
