"""What was taken from a project before it had a workspace of its own is offered once, and brought there."""

import re

import pytest

from pipeline.identity import identify
from pipeline.services.ingestion import source_name
from tests.fakes.command_line import run, run_json, serve_app


@pytest.fixture(autouse=True)
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A git project of which an earlier version took the files into `default`."""
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    (folder / "README.md").write_text("# Lock shop\n\nThe shop sells tea at the upper lock, from nine on.\n")
    run("index", "project", str(folder), "-w", "default")
    monkeypatch.chdir(folder)
    return folder


def sources(workspace):
    return {one["source"] for one in run_json("index", "list", "-w", workspace)["items"] if one["memories"]}


def test_the_first_thing_that_is_stored_makes_the_workspace_and_offers_to_bring_the_rest(project):
    own, source = identify(project).id, source_name("project", project)
    offered = run("remember", "Tea is sold by the cup").stderr
    assert f"created workspace {own} for this project; workspace default contains 1 memory indexed from it" in offered
    assert "`reverie workspace adopt` moves them" in offered
    assert run("remember", "Cake is sold on Sundays").stderr == "", "offered once"
    assert sources("default") == {source}
    run("workspace", "adopt")
    assert sources("default") == set()
    assert sources(own) == {source}
    assert "tea" in run("recall", "what does the shop sell at the upper lock").stdout
    assert "workspace default contains no memories indexed from this project" in run("workspace", "adopt").stdout


def test_a_program_is_told_of_every_step(project):
    run("remember", "Tea is sold by the cup")
    there, here = run_json("workspace", "adopt")
    assert (there["workspace"], there["items"]) == (identify(project).id, {"created": 1})
    assert (here["workspace"], here["items"]) == ("default", {"forgotten": 1})
    assert run_json("workspace", "adopt") == []


def test_an_index_into_a_project_makes_its_workspace_too(project):
    told = run("index", "project")
    assert identify(project).id in told.stdout
    assert "`reverie workspace adopt`" in told.stderr


def test_nothing_is_offered_where_a_workspace_was_named(project):
    assert run("remember", "Tea is sold by the cup", "-w", "mine").stderr == ""


def test_a_folder_of_no_project_has_nothing_to_adopt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "uses workspace default, not one of its own" in run("workspace", "adopt", code=1).stderr


def test_an_empty_answer_says_where_else_something_stands(project):
    run("remember", "Boats pass at dawn", "-w", "default")
    run("remember", "Tea is sold by the cup")
    told = run("recall", "zeppelin airfield mooring").stderr
    assert f"Searched workspace {identify(project).id}. Workspace default has 2 memories; add `-w default`" in told


def test_status_says_which_workspace_answers_here_and_why(project):
    run("remember", "Tea is sold by the cup")
    here = run_json("status")["here"]
    assert here["workspace"] == identify(project).id
    assert here["rule"] == "git"
    assert "commands and hooks use it" in here["detail"]
    assert re.search(rf"^here +{here['workspace']}: ", run("status").stdout, re.MULTILINE)
