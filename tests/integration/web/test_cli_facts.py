import math

import pytest
from hypothesis import given, strategies as st

from pipeline.features.arcs.store import ArcStatus
from pipeline.prompt.render import Usefulness
from tests.fakes.command_line import remember, run, run_json, serve_app
from web.cli.render import format_value
from web.features.arcs.commands import ARC_STATUSES
from web.features.facts.commands import parse_value


@pytest.fixture
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield


def test_a_fact_changes_and_is_asked_for_on_a_day(server):
    assert run("facts", "set", "staging", "port", "5433", "--from", "2026-01-27").stdout == (
        "created staging/port = 5433\n"
    )
    first = run_json("facts", "get", "staging", "port")["id"]
    changed = run("facts", "set", "staging", "port", "6543", "--from", "2026-09-02").stdout
    assert changed == f"created staging/port = 6543, replaces {first}\n"

    assert run("facts", "get", "staging", "port").stdout == "6543\n"
    then = run("facts", "get", "staging", "port", "--as-of", "2026-03-01")
    assert then.stdout == "5433\n"
    assert "from 2026-01-27 00:00 until 2026-09-02 00:00" in then.stderr
    assert run_json("facts", "get", "staging", "port")["value"] == 6543

    rows = [line.split() for line in run("facts", "history", "staging", "port").stdout.splitlines()]
    assert [row[2] for row in rows[1:]] == ["5433", "6543"]
    assert len(run_json("facts")["items"]) == 2
    assert [one["value"] for one in run_json("facts", "list", "--as-of", "2026-03-01")["items"]] == [5433]
    assert run_json("facts", "list", "--subject", "production")["items"] == []


def test_a_fact_ends(server):
    run("facts", "set", "staging", "port", "5433", "--from", "2026-01-27")
    assert run("facts", "end", "staging", "port", "--at", "2026-02-01").stdout == (
        "staging/port was 5433 until 2026-02-01 00:00\n"
    )
    assert "no current value" in run("facts", "get", "staging", "port", code=1).stderr


def test_a_fact_has_a_scope(server):
    run("facts", "set", "laptop", "editor", "vim", "--scope", "user")
    assert "The fact has no current value" in run("facts", "get", "laptop", "editor", code=1).stderr
    assert run("facts", "get", "laptop", "editor", "--scope", "user").stdout == "vim\n"
    assert run_json("facts", "list", "--scope", "user")["items"][0]["scope"] == {"kind": "user", "id": None}
    run("facts", "set", "laptop", "editor", "vim", "--scope", "galaxy", code=2)
    run("facts", "get", "a/b", "c", code=2)


@pytest.mark.parametrize(
    ("text", "value"),
    [("5433", 5433), ("-1", -1), ("0.5", 0.5), ("true", True), ("false", False), ("vim", "vim"), ("null", "null")]
    + [(text, text) for text in ("3.10", "007", "1e3", "NaN", "Infinity", '"x"', "[1]", "{}", "", "+1", "True")],
)
def test_fact_value_is_parsed_exactly_as_written(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


@given(st.text() | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_value_that_is_shown_can_be_given_again(value):
    found = parse_value(format_value(value))
    assert format_value(found) == format_value(value)
    assert not isinstance(value, float) or math.isclose(found, value, abs_tol=0)


def test_number_can_be_stored_as_text(server):
    run("facts", "set", "shop", "code", "5433", "--text")
    assert run_json("facts", "get", "shop", "code")["value"] == "5433"


def test_goals_are_set_and_changed(server):
    told = run("goals", "add", "Move staging behind PgBouncer", "--due", "2026-12-01", "--tag", "ops").stdout
    assert told.endswith("Move staging behind PgBouncer (open, 0%, due 2026-12-01 23:59)\n")
    [goal] = run_json("goals")["items"]
    assert goal["tags"] == ["ops"]
    changed = run("goals", "set", goal["id"], "--status", "in_progress", "--progress", "0.4", "--no-due").stdout
    assert changed.endswith("(in_progress, 40%)\n")
    assert run_json("goals", "set", goal["id"], "--title", "Move staging")["title"] == "Move staging"
    assert "40%" in run("goals", "list", "--status", "in_progress").stdout
    assert run_json("goals", "list", "--status", "done")["items"] == []
    for wrong in ([], ["--due", "2026-12-01", "--no-due"], ["--status", "won"], ["--progress", "2"]):
        run("goals", "set", goal["id"], *wrong, code=2)
    assert "no such goal" in run("goals", "set", "01M7YZWD2TYS3P4A1GQPPBMFZK", "--progress", "1", code=1).stderr


def test_agents_own_goal_is_shown_only_to_that_agent(server):
    run("goals", "add", "Read all the tests", "--scope", "agent:reviewer")
    assert run_json("goals")["items"] == []
    assert len(run_json("goals", "list", "--agent", "reviewer")["items"]) == 1


def test_a_lesson_is_shown_and_answered(server):
    run("remember", "Run the migrations before the deploy", "--kind", "lesson")
    for other in ("Tea is in the kitchen", "The lift stands still", "Rain all afternoon"):
        remember(other)
    assert "unproven (shown 0, followed 0, ignored 0)" in run("lessons").stdout
    [lesson] = run_json("lessons", "list", "--about", "run the migrations before the deploy")["items"]
    answer = ["lessons", "outcome", lesson["surface_id"], "followed", "--note", "went well"]
    assert run(*answer).stdout == f"lesson {lesson['id']} was followed\n"
    assert "followed 1" in run("lessons").stdout
    assert "reverie lessons outcome" in run("lessons", "list", "--about", "migrations before the deploy").stdout
    assert "Error" in run("lessons", "outcome", "nothing", "ignored", code=1).stderr
    run("lessons", "outcome", lesson["surface_id"], "forgotten", code=2)


def test_entities_and_their_graph(server, digested):
    remember("Staging of verdict-policy.ts runs PostgreSQL on port 5433")
    remember("The deploy of verdict-policy.ts moved to SQLite")
    digested()
    rows = [line.split() for line in run("graph", "entities").stdout.splitlines()]
    assert rows[1][1:] == ["file", "2", "verdict-policy.ts"]
    assert [one["name"] for one in run_json("graph", "entities", "list", "postg")["items"]] == ["postgresql"]
    shown_ = run("graph", "entities", "show", "verdict-policy.ts").stdout
    assert "mentioned 2 times" in shown_
    assert "The deploy of verdict-policy.ts moved to SQLite" in shown_
    assert run_json("graph", "entities", "show", rows[1][0])["name"] == "verdict-policy.ts"
    assert ["postgresql", "5433", "1"] in [line.split() for line in run("graph", "PostgreSQL").stdout.splitlines()]
    assert run_json("graph", "SQLite", "--depth", "2")["nodes"][0]["name"] == "sqlite"
    assert "no such entity" in run("graph", "nobody", code=1).stderr


def test_there_may_be_no_arcs(server):
    remember("A workspace is needed")
    assert "There are no threads here yet" in run("graph", "arcs").stderr
    assert run_json("graph", "arcs", "--status", "active") == {"items": [], "next_cursor": None}


def test_choices_are_those_of_the_store():
    assert tuple(ArcStatus) == ARC_STATUSES
    assert set(Usefulness) == {"useful", "unproven", "dead"}
