"""What people type without reading the help: words without quotes, days, suffixes, prefixes; and what asks first."""

import tomllib
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import click
import pytest

from config.settings import ENVIRONMENT_ONLY, SETTINGS, WORKSPACE_SETTINGS, load_settings
from pipeline.kernel.times import parse
from tests.fakes.command_line import remember, run, run_json, serve_app
from web.cli import options
from web.features.configuration.commands import add_missing_settings
from web.features.export.commands import choose_format
from web.http.client import Client

FACT = "The billing service uses port 8123"


@pytest.fixture
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield port


@pytest.fixture
def say(home, server):
    """Say something in a session."""

    def say(session, text="Which port?"):
        body = {"session_id": session, "messages": [{"role": "assistant", "content": text}]}
        with Client(f"http://127.0.0.1:{server}", home.paths.token()) as client:
            client.call("POST", "/v1/turns", body)

    return say


@pytest.mark.usefixtures("server")
def test_quotes_are_optional():
    run("remember", "we", "use", "ruff", "here", "--kind", "decision")
    assert run_json("list")["items"][0]["content"] == "we use ruff here"
    assert "we use ruff here" in run("recall", "what", "do", "we", "use", "-k", "3").stdout
    assert "we use ruff here" in run("search", "ruff").stdout
    assert run_json("goals", "add", "ship", "the", "importer")["title"] == "ship the importer"
    mine = run_json("me", "add", "I", "like", "tabs")["id"]
    assert "I like spaces" in run("me", "edit", mine, "I", "like", "spaces").stdout
    assert run_json("facts", "set", "api", "owner", "team", "blue")["value"] == "team blue"


@pytest.mark.usefixtures("server")
def test_recall_without_a_query_lists_memories():
    run("remember", FACT)
    assert FACT in run("recall").stdout


def since_midnight(days):
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=days)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("today", lambda: since_midnight(0)),
        ("yesterday", lambda: since_midnight(-1)),
        ("Tomorrow", lambda: since_midnight(1)),
        ("now", lambda: datetime.now(UTC)),
        ("12h", lambda: datetime.now(UTC) - timedelta(hours=12)),
        ("7d", lambda: datetime.now(UTC) - timedelta(days=7)),
        ("2w", lambda: datetime.now(UTC) - timedelta(weeks=2)),
        ("2026-03-01", lambda: datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_times_are_typed_as_people_say_them(typed, expected):
    moment = parse(options.PAST.convert(typed, None, None))
    assert abs(moment - expected()) < timedelta(minutes=1)


def test_a_span_counts_forward_where_the_time_is_in_the_future():
    moment = parse(options.FUTURE.convert("7d", None, None))
    assert abs(moment - datetime.now(UTC) - timedelta(days=7)) < timedelta(minutes=1)


@pytest.mark.parametrize("typed", ["", "soon", "7", "7y", "2026-02-30"])
def test_invalid_time_is_rejected_with_examples(typed):
    with pytest.raises(click.BadParameter, match="is not a time"):
        options.PAST.convert(typed, None, None)


@pytest.mark.usefixtures("server")
def test_options_take_days_and_spans():
    run("remember", FACT, "--occurred-at", "3d")
    for since, count in (("yesterday", 0), ("7d", 1), ("2w", 1), ("2020-01-01", 1)):
        assert len(run_json("recall", "billing", "--since", since)["results"]) == count


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("notes.md", None, ("markdown", "notes")),
        ("memories.jsonl", None, ("jsonl", "memories.jsonl")),
        ("memories.JSON", None, ("jsonl", "memories.JSON")),
        ("home.bundle", None, ("bundle", "home.bundle")),
        ("home", None, ("bundle", "home")),
        ("home", "markdown", ("markdown", "home")),
        ("notes.md", "bundle", ("bundle", "notes.md")),
    ],
)
def test_the_suffix_chooses_the_format_of_an_export(name, form, expected):
    assert choose_format(Path(name), form) == (expected[0], Path(expected[1]))


@pytest.mark.usefixtures("server")
def test_notes_are_exported_by_their_suffix(tmp_path):
    remember(FACT)
    assert "to the folder of notes" in run("export", str(tmp_path / "notes.md")).stdout
    assert any(FACT in file.read_text() for file in (tmp_path / "notes").rglob("*.md"))


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("spelling", [["purge"], ["forget", "--hard"], ["me", "purge"]])
def test_permanent_deletion_asks_for_confirmation(spelling):
    scope = ["--scope", "user"] if spelling[0] == "me" else []
    memory = remember(FACT, *scope)
    assert "permanently?" in run(*spelling, memory, stdin="n\n", code=1).stderr
    assert "nothing was purged" in run(*spelling, memory, stdin="n\n", code=1).stderr
    assert "Add --yes" in run("--json", *spelling, memory, code=2).stderr
    assert run_json("get", memory)["id"] == memory
    run(*spelling, memory, "-y")
    run("get", memory, code=1)


def test_removing_a_person_asks_first(home):
    run("user", "add", "ada")
    assert "permanently?" in run("user", "remove", "ada", stdin="n\n", code=1).stderr
    assert [person["id"] for person in run_json("user", "list")] == ["ada"]
    run("user", "remove", "ada", stdin="y\n")
    assert run_json("user", "list") == []


def test_the_newest_session_becomes_incognito(say):
    say("s-old")
    say("s-new")
    assert "session s-new is incognito" in run("sessions", "incognito", "on").stdout
    assert [item["session_id"] for item in run_json("sessions", "incognito", "list")["items"]] == ["s-new"]
    assert "s-new is no longer incognito" in run("sessions", "incognito", "off", "--session", "s-new").stdout


@pytest.mark.usefixtures("server")
def test_incognito_without_a_session_explains_the_alternative():
    remember(FACT)
    assert "REVERIE_INCOGNITO=true" in run("sessions", "incognito", "on", code=1).stderr


def test_the_start_of_a_session_is_enough(say):
    for session in ("abc-1", "abc-2", "xyz-1"):
        say(session, f"hello from {session}")
    assert "hello from xyz-1" in run("sessions", "xyz").stdout
    assert "hello from abc-1" in run("sessions", "show", "abc-1").stdout
    assert "2 sessions start with" in run("sessions", "abc", code=1).stderr
    assert "renamed abc-2 to The port" in run("sessions", "rename", "abc-2", "The", "port").stdout
    assert "proposed" in run("lessons", "distill", "xyz").stdout


# Every command that lists, and the command that it names to fill the list.
LISTS = {
    ("list",): "reverie remember",
    ("recall", "tea"): "reverie remember",
    ("recall",): "reverie remember",
    ("workspace", "stats"): "reverie remember",
    ("workspace", "list"): "reverie remember",
    ("me",): "reverie me add",
    ("lessons",): "reverie remember",
    ("goals",): "reverie goals add",
    ("facts",): "reverie facts set",
    ("sessions",): "connected agent",
    ("sessions", "incognito", "list"): "reverie sessions incognito on",
    ("review", "candidates"): "No memory waits for review",
    ("review", "duplicates"): "No pair of similar memories waits for review",
    ("review", "duplicates", "--list"): "No pair of similar memories waits for review",
    ("review", "refused"): "No memory was offered again",
    ("review", "decisions"): "Everything that was offered was stored",
    ("graph", "arcs"): "reverie jobs run arcs",
    ("graph", "entities"): "reverie remember",
    ("jobs",): "reverie remember",
    ("jobs", "queue"): "reverie remember",
    ("index", "list"): "reverie index project",
    ("logs", "journal"): "reverie setup",
    ("logs", "hooks"): "reverie setup",
    ("logs", "errors"): "No background errors",
    ("logs", "audit"): "reverie remember",
    ("logs", "audit", "list"): "There are no automatic changes yet",
    ("logs", "audit", "access"): "reverie user add",
    ("store", "snapshot", "list"): "reverie store snapshot take",
}


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_an_empty_list_names_the_command_that_fills_it(command):
    answer = run(*command)
    assert LISTS[command] in answer.output
    assert "Error" not in answer.output
    found = run_json(*command)
    listed = found.get("items", found.get("results", [])) if isinstance(found, dict) else []
    assert listed == []


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "command", [["get", "x"], ["forget", "x"], ["graph", "show", "tea"], ["facts", "get", "a", "b"]]
)
def test_record_command_in_an_empty_installation_explains_how_to_start(command):
    error = run(*command, code=1).stderr
    assert error.startswith('Error: There are no memories in workspace "default" yet. Store one with `reverie remember')


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("command", [["list"], ["recall", "tea"], ["workspace", "stats"], ["goals"], ["forget", "x"]])
def test_an_unknown_workspace_name_is_an_error(command):
    remember(FACT)
    assert "Other workspaces: default; choose one with `-w ID`" in run(*command, "-w", "defualt", code=1).stderr


@pytest.mark.usefixtures("server")
def test_an_empty_workspace_of_a_folder_points_to_the_others(monkeypatch):
    remember(FACT)
    monkeypatch.setenv("REVERIE_WORKSPACE", "another")
    answer = run("goals")
    assert "There are no goals here yet. Add one with `reverie goals add TITLE`." in answer.stderr
    assert 'Nothing is stored in workspace "another" yet. Other workspaces: default; choose one with' in answer.stderr


@pytest.mark.usefixtures("server")
def test_memories_about_the_user_are_listed_although_no_workspace_has_any():
    run("me", "add", "I am called Ada")
    assert "I am called Ada" in run("me").stdout


def test_a_setting_is_set_for_all_workspaces_or_for_one(home):
    said = run("config", "set", "capture", "off")
    assert f"{home.paths.config}: capture = off" in said.stdout
    assert "restart Reverie" in said.stderr
    assert load_settings().capture == "off"
    assert run_json("-w", "mine", "config", "set", "capture", "suggest")["value"] == "suggest"
    assert "suggest" in home.paths.workspace("mine").config.read_text()
    run("capture", "on")
    assert load_settings().capture == "on"
    run("config", "set", "web_threads", "4", "--here", code=1)


def test_a_setting_of_one_folder_applies_to_its_workspace(home):
    run("config", "set", "personal", "off", "--here")
    assert home.paths.workspace("default").config.read_text() == "personal = false\n"


@pytest.mark.usefixtures("home")
def test_a_setting_that_cannot_be_set_is_explained(monkeypatch):
    assert "Did you mean capture?" in run("config", "set", "captur", "off", code=1).stderr
    assert "must be one of off, suggest, on" in run("config", "set", "capture", "loud", code=1).stderr
    assert "REVERIE_LLM_API_KEY" in run("config", "set", "llm_api_key", "hush", code=1).stderr
    monkeypatch.setenv("REVERIE_CAPTURE", "on")
    assert "takes precedence" in run("config", "set", "capture", "off").stderr


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Edit with a program that keeps what it was given and replaces a text."""
    given = tmp_path / "given"

    def use(old, new):
        program = tmp_path / "editor"
        program.write_text(f"#!/bin/sh\ncp \"$1\" '{given}'\nsed -i 's/{old}/{new}/' \"$1\"\n")
        program.chmod(0o755)
        monkeypatch.setenv("VISUAL", str(program))
        return given

    return use


@pytest.fixture
def config_file(tmp_path, monkeypatch):
    """Use a data directory without settings."""
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "new"))
    return tmp_path / "new" / "config.toml"


def test_every_setting_is_offered_as_a_comment(config_file, editor):
    given = editor("# port = .*", "port = 7099")
    answer = run_json("config", "--edit")
    assert answer == {"place": str(config_file), "changed": True}
    text = given.read_text()
    offered = {name for name in SETTINGS if name not in ENVIRONMENT_ONLY}
    for name in offered:
        assert f"# {SETTINGS[name].help}" in text
    values = tomllib.loads("\n".join(line[2:] for line in text.splitlines() if " = " in line and line.startswith("# ")))
    assert values == {name: SETTINGS[name].default for name in offered}
    assert tomllib.loads(config_file.read_text()) == {"port": 7099}
    assert run_json("config", "--edit") == {"place": str(config_file), "changed": False}


def test_settings_of_a_workspace_are_offered_alone(home, editor):
    given = editor("# capture = .*", 'capture = "off"')
    run("-w", "mine", "config", "--edit")
    assert {name for name in SETTINGS if f"# {name} = " in given.read_text()} == WORKSPACE_SETTINGS
    assert tomllib.loads(home.paths.workspace("mine").config.read_text()) == {"capture": "off"}


def test_an_edited_file_with_a_mistake_is_not_saved(config_file, editor):
    editor("# port = .*", "port = 70990")
    assert "port: must be at most 65535" in run("config", "--edit", code=1).stderr
    assert not config_file.exists()


def test_only_settings_that_are_missing_are_added():
    text = "# ours\ncapture = 'off'\n"
    added = add_missing_settings(text, "all workspaces", ["capture", "port"])
    assert added.startswith(text)
    assert added.count("capture") == 1
    assert "# port = 7077\n" in added


@pytest.mark.usefixtures("far_zone")
def test_days_are_those_of_the_local_time_zone():
    today = datetime.now().astimezone().date()
    start = datetime.combine(today, time()).astimezone()
    assert parse(options.PAST.convert("today", None, None)) == start
    assert parse(options.PAST.convert(str(today), None, None)) == start
    assert parse(options.PAST.convert(f"{today}T12:30", None, None)) == start.replace(hour=12, minute=30)
    for typed in ("today", str(today)):
        end = parse(options.FUTURE.convert(typed, None, None))
        assert datetime.now(UTC) < end
        assert end.astimezone().isoformat().startswith(f"{today}T23:59:59.999")


@pytest.mark.usefixtures("far_zone")
def test_the_days_of_a_search_are_those_of_the_local_time_zone(server):
    yesterday = datetime.now().astimezone().date() - timedelta(days=1)
    hours = [(-1, 23), (0, 1), (0, 23), (1, 0)]
    for days, hour in hours:
        run("remember", f"Incident {days} {hour}", "--occurred-at", f"{yesterday + timedelta(days=days)}T{hour:02}:00")
    found = run_json("recall", "incident", "--since", "yesterday", "--until", "today")["results"]
    assert {hit["content"] for hit in found} == {"Incident 0 1", "Incident 0 23"}
    listed = run("list").stdout
    assert all(f"{yesterday + timedelta(days=days)} {hour:02}:00" in listed for days, hour in hours)


@pytest.mark.usefixtures("server", "far_zone")
def test_a_memory_that_expires_today_is_there_today():
    today = str(datetime.now().astimezone().date())
    for number, typed in enumerate((today, "today", "tomorrow", "7d")):
        run("remember", f"The dam gate {number} stays open only until {typed}.", "--expires-at", typed)
    assert len(run_json("list")["items"]) == 4


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("typed", ["yesterday", "2020-01-01", "2020-01-01T12:00:00Z", "now"])
def test_an_expiry_in_the_past_is_refused(typed):
    assert "is in the past" in run("remember", FACT, "--expires-at", typed, code=2).stderr


@pytest.mark.usefixtures("server", "far_zone")
def test_a_goal_is_due_at_the_end_of_its_day():
    tomorrow = datetime.now().astimezone().date() + timedelta(days=1)
    assert f"due {tomorrow} 23:59" in run("goals", "add", "Send the report", "--due", str(tomorrow)).stdout


LOG = b"cc: Fehler: Bibliothek f\xfcr den Drucker fehlt\n"


@pytest.mark.usefixtures("server")
def test_a_log_that_is_not_utf_8_is_read_with_replacement_characters():
    run("fix", "-", stdin=LOG)
    run("fix", "-", stdin="Fehler: Bibliothek für den Drucker fehlt".encode("utf-16"))


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("command", [("remember", "-"), ("me", "add", "-")])
def test_a_text_that_is_not_utf_8_is_refused_in_one_line(command):
    refused = run(*command, stdin=LOG, code=2)
    assert "Standard input is not valid UTF-8: byte 25 is no text." in refused.stderr
    assert "Traceback" not in refused.output


@pytest.mark.usefixtures("server")
def test_a_text_with_a_mark_of_its_encoding_is_read():
    run("remember", "-", stdin="Der Drucker steht im fünften Stock.\r\n".encode("utf-16"))
    run("remember", "-", stdin="\ufeffDer Scanner auch.\n".encode())
    contents = {memory["content"] for memory in run_json("list")["items"]}
    assert contents == {"Der Drucker steht im fünften Stock.", "Der Scanner auch."}
