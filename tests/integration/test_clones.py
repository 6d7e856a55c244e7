"""A clone keeps its workspace when its remote or its folder changes, and two projects never share one by accident."""

import os
import shutil
import subprocess

import pytest

from config.settings import Settings
from pipeline.features.workspaces.clones import Clones, list_moved_away
from pipeline.features.workspaces.identify import identify
from pipeline.features.workspaces.project_file import Claims
from pipeline.features.workspaces.usecases import choose_workspace, note_claim

HOST = "git@git.example.org:"


class Machine:
    """A machine with repositories, on which Reverie stores memories by folder."""

    def __init__(self, folder):
        self.folder = folder
        self.settings = Settings(home=folder / "data")

    def git(self, place, *words):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
        done = subprocess.run(
            [*command, *words], cwd=self.folder / place, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def create(self, place, message="Start", remote=None, name="origin"):
        (self.folder / place).mkdir(parents=True, exist_ok=True)
        self.git(place, "init", "--quiet", "-b", "main")
        if message:
            self.commit(place, message)
        if remote:
            self.git(place, "remote", "add", name, HOST + remote)

    def commit(self, place, message):
        self.git(place, "commit", "--quiet", "--allow-empty", "-m", f"{message} in {place}")

    def clone(self, source, place, remote=None, *options):
        """Clone a repository on this machine as if it was on a server."""
        self.git(".", "clone", "--quiet", *options, f"file://{self.folder / source}", place)
        if remote:
            self.git(place, "remote", "set-url", "origin", HOST + remote)

    def choose(self, place):
        return choose_workspace(self.folder / place, self.settings, explicit=None, environment=None)

    def ask(self, place):
        choice = self.choose(place)
        note_claim(self.settings, choice.identity, to_write=False)
        return choice.workspace

    def remember(self, place):
        choice = self.choose(place)
        note_claim(self.settings, choice.identity, to_write=True)
        events = self.settings.paths.workspace(choice.workspace).events
        events.parent.mkdir(parents=True, exist_ok=True)
        events.touch()
        return choice.workspace


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return Machine(tmp_path)


def publish(machine):
    machine.git("one", "remote", "add", "origin", f"{HOST}acme/one.git")


def rename_on_the_host(machine):
    machine.git("one", "remote", "set-url", "origin", f"{HOST}globex/ledger.git")


def remove_the_remote(machine):
    machine.git("one", "remote", "remove", "origin")


def fork(machine):
    machine.git("one", "remote", "rename", "origin", "upstream")
    machine.git("one", "remote", "add", "origin", f"{HOST}me/one.git")


def fork_in_place(machine):
    rename_on_the_host(machine)
    machine.git("one", "remote", "add", "upstream", f"{HOST}acme/one.git")


def rename_the_remote(machine):
    machine.git("one", "remote", "rename", "origin", "github")


def leave_origin_to_a_mirror(machine):
    machine.git("one", "remote", "add", "alpha", f"{HOST}mirrors/one.git")
    remove_the_remote(machine)


CHANGES = [rename_on_the_host, remove_the_remote, fork, fork_in_place, rename_the_remote, leave_origin_to_a_mirror]


@pytest.mark.parametrize("change", CHANGES)
def test_a_clone_keeps_its_workspace_when_its_remote_changes(machine, change):
    machine.create("one", remote="acme/one.git")
    before = machine.remember("one")
    assert before == identify(machine.folder / "one").id
    change(machine)
    assert machine.ask("one") == before
    assert machine.remember("one") == before


@pytest.mark.parametrize("message", ["Start", ""])
def test_a_repository_keeps_its_workspace_when_it_is_published(machine, message):
    machine.create("one", message)
    before = machine.remember("one")
    publish(machine)
    assert machine.ask("one") == before
    machine.commit("one", "More")
    assert machine.ask("one") == before
    # A clone of the published project meets it.
    machine.clone("one", "second", "acme/one.git")
    assert machine.ask("second") == before


@pytest.mark.parametrize("message", ["Start", ""])
@pytest.mark.parametrize("remote", [None, "acme/one.git"])
def test_a_moved_repository_keeps_its_workspace(machine, message, remote):
    machine.create("one", message, remote)
    before = machine.remember("one")
    (machine.folder / "one").rename(machine.folder / "renamed")
    assert machine.ask("renamed") == before
    (machine.folder / "deeper/down").mkdir(parents=True)
    (machine.folder / "renamed").rename(machine.folder / "deeper/down/again")
    assert machine.remember("deeper/down/again") == before


def test_a_moved_folder_of_repositories_keeps_every_workspace(machine):
    for name in ("code/one", "code/two"):
        machine.create(name)
    machine.git("code/one", "submodule", "--quiet", "add", f"file://{machine.folder}/code/two", "sub")
    machine.git("code/one", "worktree", "add", "--quiet", "--detach", "../linked")
    before = {name: machine.remember(f"code/{name}") for name in ("one", "two", "one/sub")}
    assert len(set(before.values())) == 3
    assert machine.ask("code/linked") == before["one"]
    (machine.folder / "code").rename(machine.folder / "moved")
    assert {name: machine.ask(f"moved/{name}") for name in before} == before
    machine.git("moved/one", "worktree", "repair", "../linked")
    assert machine.ask("moved/linked") == before["one"]


def test_a_repository_whose_remote_and_folder_change_keeps_its_workspace(machine):
    machine.create("one")
    before = machine.remember("one")
    publish(machine)
    (machine.folder / "one").rename(machine.folder / "renamed")
    assert machine.ask("renamed") == before


def test_folder_keeps_its_workspace_when_it_becomes_a_repository(machine):
    (machine.folder / "one").mkdir()
    own = machine.settings.paths.workspace(identify(machine.folder / "one").id).events
    own.parent.mkdir(parents=True)
    own.touch()
    before = machine.ask("one")
    machine.create("one")
    assert machine.ask("one") == before
    publish(machine)
    assert machine.ask("one") == before


def test_a_repository_that_is_restored_from_a_copy_keeps_its_workspace(machine):
    machine.create("one")
    before = machine.remember("one")
    rename = machine.folder / "copy"
    shutil.copytree(machine.folder / "one", rename)
    shutil.rmtree(machine.folder / "one")
    rename.rename(machine.folder / "one")
    assert machine.ask("one") == before


def test_a_new_clone_of_the_same_remote_keeps_the_workspace(machine):
    machine.create("origin")
    machine.clone("origin", "one", "acme/one.git")
    before = machine.remember("one")
    shutil.rmtree(machine.folder / "one")
    machine.clone("origin", "one", "acme/one.git")
    assert machine.ask("one") == before
    machine.clone("origin", "another/place", "acme/one.git")
    assert machine.ask("another/place") == before


def test_clones_of_a_remote_share_a_workspace_on_any_branch_or_depth(machine):
    machine.create("origin")
    machine.commit("origin", "Second")
    machine.clone("origin", "one", "acme/one.git")
    machine.clone("origin", "two", "acme/one.git")
    machine.clone("origin", "flat", "acme/one.git", "--depth", "1")
    machine.git("two", "checkout", "--quiet", "-b", "topic")
    machine.commit("two", "Local work")
    machine.commit("one", "Other local work")
    assert machine.remember("one") == machine.remember("two") == machine.remember("flat")


# Two projects that do not belong together.


@pytest.mark.parametrize("name", ["template", "upstream", "origin"])
def test_projects_with_a_template_as_remote_share_nothing(machine, name):
    machine.create("a", "Kranich", "acme/template.git", name)
    machine.create("b", "Storch", "acme/template.git", name)
    machine.create("c", "Reiher", "acme/template.git", name)
    assert len({machine.remember(place) for place in ("a", "b", "c")}) == 3
    assert len({machine.ask(place) for place in ("a", "b", "c")}) == 3


@pytest.mark.parametrize("name", ["template", "origin"])
def test_projects_without_commits_share_no_template(machine, name):
    machine.create("a", "", "acme/template.git", name)
    machine.create("b", "", "acme/template.git", name)
    assert machine.remember("a") != machine.remember("b")
    machine.commit("a", "First")
    machine.commit("b", "First")
    assert machine.remember("a") != machine.remember("b")


def test_a_template_is_free_again_for_its_own_clone_when_a_project_left_it(machine):
    machine.create("template")
    for name in ("a", "b"):
        machine.clone("template", name, "acme/template.git")
        workspace = machine.remember(name)
        machine.git(name, "remote", "set-url", "origin", f"{HOST}customers/{name}.git")
        assert machine.ask(name) == workspace
    assert machine.ask("a") != machine.ask("b")
    machine.clone("template", "c", "acme/template.git")
    assert machine.ask("c") not in (machine.ask("a"), machine.ask("b"))


def test_a_clone_that_leaves_a_shared_remote_takes_no_workspace_along(machine):
    machine.create("template")
    for name in ("a", "b"):
        machine.clone("template", name, "acme/template.git")
    shared = machine.remember("a")
    assert machine.remember("b") == shared
    machine.git("a", "remote", "set-url", "origin", f"{HOST}customers/a.git")
    choice = machine.choose("a")
    assert choice.workspace != shared
    assert shared in choice.identity.clone.earlier
    assert machine.ask("b") == shared


def test_a_copy_of_a_repository_without_a_remote_has_its_own_workspace(machine):
    machine.create("one")
    before = machine.remember("one")
    shutil.copytree(machine.folder / "one", machine.folder / "copy", copy_function=shutil.copy2)
    assert machine.ask("copy") != before
    assert machine.ask("one") == before


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_new_repository_in_the_place_of_a_moved_one_starts_empty(machine, is_seen):
    machine.create("one")
    before = machine.remember("one")
    (machine.folder / "one").rename(machine.folder / "renamed")
    if is_seen:
        machine.remember("renamed")
    machine.create("one", "Another start")
    assert machine.remember("one") != before
    assert machine.ask("renamed") == before
    assert machine.ask("one") != before


def test_a_repository_cloned_to_the_place_of_another_one_starts_empty(machine):
    machine.create("one")
    before = machine.remember("one")
    machine.create("two", "Something else")
    shutil.rmtree(machine.folder / "one")
    machine.clone("two", "one", "acme/two.git")
    assert machine.ask("one") != before


def test_a_strangers_repository_joins_nothing_by_the_name_of_its_remote(machine):
    machine.create("mine", remote="acme/secret.git")
    mine = machine.remember("mine")
    machine.create("mine/vendor/theirs", "Their own start", "acme/secret.git")
    assert machine.ask("mine/vendor/theirs") != mine
    (machine.folder / "mine/vendor/theirs/.git/reverie").write_text(mine)
    assert machine.ask("mine/vendor/theirs") != mine


def test_a_clone_that_is_gone_and_may_be_this_one_is_listed(machine):
    machine.create("one")
    before = machine.remember("one")
    shutil.copytree(machine.folder / "one", machine.folder / "other-disk")
    shutil.rmtree(machine.folder / "one")
    choice = machine.choose("other-disk")
    assert choice.workspace != before
    known = Clones(machine.settings.paths.clones).list_all()
    assert list_moved_away(choice.identity.clone, known) == [before]


def test_a_renamed_workspace_stays_with_its_clone(machine):
    from pipeline.features.workspaces.usecases import Renames

    machine.create("one")
    before = machine.remember("one")
    Renames(machine.settings.paths.renames).add(before, "ledger")
    root = machine.settings.paths.workspace(before).root
    root.rename(root.with_name("ledger"))
    publish(machine)
    assert machine.ask("one") == "ledger"


def test_questions_record_nothing_and_the_file_is_private(machine):
    machine.create("one", remote="acme/one.git")
    machine.ask("one")
    assert not machine.settings.paths.clones.exists()
    machine.remember("one")
    assert machine.settings.paths.clones.stat().st_mode & 0o777 == 0o600
    assert Claims(machine.settings.paths.claims).list_all() == []


def test_a_known_clone_is_found_without_git(machine, monkeypatch):
    machine.create("one", remote="acme/one.git")
    before = machine.remember("one")
    monkeypatch.setattr("pipeline.kernel.git.git.shutil.which", lambda _name: pytest.fail("git was started"))
    assert machine.remember("one") == before
    rename = machine.folder / "renamed"
    (machine.folder / "one").rename(rename)
    assert machine.choose("renamed").workspace == before


def test_on_a_team_server_the_remote_decides_for_every_member(machine):
    machine.create("one")
    machine.remember("one")
    publish(machine)
    of_team = choose_workspace(
        machine.folder / "one", machine.settings, explicit=None, environment=None, is_of_team=True
    )
    machine.clone("one", "colleague", "acme/one.git")
    assert of_team.workspace == identify(machine.folder / "colleague").id
