import json
from contextlib import closing

import pytest
from click.testing import CliRunner

from config.paths import HomePaths
from pipeline.features.people.usecases import find_caller
from pipeline.kernel.errors import AnswerLost
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.people import People
from tests.fakes.command_line import serve_app
from tests.fakes.in_process import fast_settings, open_web
from web.cli import cli


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    return HomePaths(tmp_path / "home")


def run(*arguments, code=0):
    result = CliRunner().invoke(cli, ["user", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def caller_of(home, token):
    return find_caller(People(HomeFile(home.home)), None, token)


def test_new_token_is_on_the_last_line_and_has_the_granted_role(home):
    shown = run("add", "Ada Lovelace", "--role", "reader", "--workspace", "team", "--device", "laptop")
    caller = caller_of(home, shown.splitlines()[-1])
    assert (caller.person.id, caller.roles) == ("ada-lovelace", {"team": "reader"})
    assert shown.splitlines()[-1] not in run("list")


def test_new_person_is_a_writer_of_the_default_workspace(home):
    ada = caller_of(home, run("add", "ada").splitlines()[-1])
    admin = caller_of(home, run("add", "anna", "--admin").splitlines()[-1])
    assert (ada.roles, ada.is_admin) == ({"default": "writer"}, False)
    assert (admin.roles, admin.is_admin) == ({}, True)


def test_known_person_gets_a_token_for_another_device(home):
    first = json.loads(run("add", "Ada", "--json"))
    second = json.loads(run("add", "ada", "--expires", "90d", "--json"))
    assert (first["id"], first["device"], second["id"], second["device"]) == ("ada", "first", "ada", "device-2")
    assert second["expires_at"] is not None
    assert second["grants"] == {}
    assert "has a token" in run("add", "ada", "--device", "first", code=1)
    run("revoke", "ada", "--device", "first")
    assert caller_of(home, first["token"]) is None
    assert caller_of(home, second["token"]) is not None
    (listed,) = json.loads(run("list", "--json"))
    assert [token["revoked_at"] is not None for token in listed["tokens"]] == [True, False]
    run("revoke", "ada", "--token", second["token_id"])
    assert caller_of(home, second["token"]) is None


def test_roles_are_given_and_taken(home):
    token = run("add", "ada").splitlines()[-1]
    run("grant", "ada", "team", "owner")
    assert caller_of(home, token).roles == {"default": "writer", "team": "owner"}
    run("ungrant", "ada", "team")
    run("ungrant", "ada", "team", code=1)
    run("remove", "ada", "--yes")
    assert caller_of(home, token) is None
    assert json.loads(run("list", "--json")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "工程"),
        ("add", "ada", "--role", "king"),
        ("add", "ada", "--expires", "soon"),
        ("add", "ada", "--workspace", "me.bob"),
        ("add", "ada", "--device", " "),
        ("grant", "nobody", "team", "reader"),
        ("revoke", "nobody"),
        ("remove", "nobody", "--yes"),
    ],
)
def test_invalid_user_commands_fail_without_a_traceback(home, arguments):
    result = CliRunner().invoke(cli, ["user", *arguments])
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output
    assert caller_of(home, "rvp_x") is None


def test_person_who_cannot_be_added_completely_is_not_added(home):
    run("add", "ada", "--email", "ada@example.com")
    assert "ada is known by this address" in run("add", "bob", "--email", "Ada@example.com", code=1)
    assert [person["id"] for person in json.loads(run("list", "--json"))] == ["ada"]
    assert "ada has a token" in run("add", "ada", "--device", "first", "--admin", "--role", "owner", code=1)
    (listed,) = json.loads(run("list", "--json"))
    assert (listed["admin"], listed["grants"], len(listed["tokens"])) == (False, {"default": "writer"}, 1)


@pytest.mark.parametrize("arguments", [("工程",), ("ada", "--workspace", "me.bob")])
def test_a_name_that_is_not_valid_creates_no_file_of_people(home, arguments):
    run("add", *arguments, code=1)
    assert not home.home.exists()


@pytest.mark.parametrize("command", [["user", "list"], ["workspace", "list"]])
def test_a_list_creates_no_data_directory(home, command):
    listed = CliRunner().invoke(cli, command)
    assert listed.exit_code == 0, listed.output
    assert listed.stderr.startswith("There ")
    assert not home.root.exists()


def test_a_running_server_answers(home, monkeypatch):
    monkeypatch.setattr("web.http.local_server.answer_here", None)
    with closing(open_web(fast_settings(home.root))) as container, serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        run("add", "AC/DC")
        assert "no such person" in run("grant", "ada", "team", "reader", code=1)
        run("grant", "AC/DC", "team", "reader")
        assert "ac-dc  AC/DC  writer of default, reader of team" in run("list")
        run("remove", "AC/DC", "--yes")


def test_a_request_whose_answer_was_lost_is_not_repeated(home, monkeypatch):
    def lose(*_args):
        raise AnswerLost("the connection broke")

    monkeypatch.setattr("web.http.client.Client.call", lose)
    assert "the connection broke" in run("add", "ada", code=1)
    assert not home.home.exists()


def test_copies_are_taken_listed_and_put_back(home):
    def snapshot(*arguments, code=0):
        result = CliRunner().invoke(cli, ["store", "snapshot", *arguments, "--people"])
        assert result.exit_code == code, result.output
        return result

    assert "There are no users to copy" in snapshot("take", code=1).output
    kept, revoked = (json.loads(run("add", name, "--json"))["token"] for name in ("ada", "bob"))
    taken = json.loads(snapshot("take", "--json").stdout)
    assert taken["people"] == 2
    run("revoke", "bob")
    run("remove", "ada", "--yes")
    later = json.loads(run("add", "cy", "--json"))["token"]
    assert f"{taken['name']}  daily" in snapshot("list").stdout
    shown = snapshot("restore", "latest").stdout
    assert "stay in force" in shown
    assert [caller_of(home, token) for token in (kept, revoked, later)] == [None, None, None]
    copies = json.loads(snapshot("list", "--json").stdout)["items"]
    assert [(one["taken"], one["people"]) for one in copies] == [("before-restore", 2), ("daily", 2)]
    home.home.unlink()
    found = snapshot("restore", taken["name"])
    assert "may be valid again" in found.stderr
    assert caller_of(home, kept) is not None
    assert "There is no snapshot named nothing" in snapshot("restore", "nothing", code=1).output
