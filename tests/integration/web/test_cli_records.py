import click
import pytest

from pipeline.features.workspaces.identify import identify
from pipeline.write import revise
from tests.fakes.command_line import remember, run, run_json, serve_app
from web.cli import options
from web.features.memories import commands as memories
from web.http.client import Client

NOBODY = "01M7YZWD2TYS3P4A1GQPPBMFZK"


@pytest.fixture(autouse=True)
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield port


def test_a_memory_is_shown_with_all_that_is_known_of_it(digested):
    memory = remember("verdict-policy.ts moved to SQLite", "--tag", "ops", "--session", "s1", "--kind", "decision")
    digested()
    run("edit", memory, "--content", "verdict-policy.ts moved to SQLite 3", "--pin", "--anchor", "web/app.py:3-9")
    lines = run("get", memory).stdout.splitlines()
    assert lines[0].startswith(f"{memory}  decision  ")
    assert lines[0].endswith("  user  session s1")
    assert lines[1].strip() == "verdict-policy.ts moved to SQLite 3"
    told = {line.split("  ", 1)[0]: line.split("  ", 1)[1].strip() for line in lines[3:] if "  " in line}
    assert told["tags"] == "ops"
    assert told["state"] == "pinned"
    assert told["code"].startswith("web/app.py:3-9")
    assert told["admitted"] == "created"
    assert "verdict-policy.ts" in told["mentions"]
    # The text before the change stands in the history.
    assert lines[-1].strip() == "verdict-policy.ts moved to SQLite"
    assert run_json("get", memory)["history"][0]["content"] == "verdict-policy.ts moved to SQLite"


def test_edges_and_details_are_shown():
    old = remember("Jobs wait in Redis", "--kind", "decision")
    new = remember("Jobs wait in SQLite", "--kind", "decision")
    run("edit", new, "--details", '{"reason": "it was there\\u001b[2J"}', "--metadata", '{"by": "ann"}')
    output = run("get", new).stdout
    assert "reason it was there\n" in output
    assert '{"by": "ann"}' in output
    assert run("get", old).stdout.startswith(f"{old}  decision")


def test_edit_changes_only_the_named_fields():
    memory = remember("Builds run at night", "--tag", "a", "--tag", "b", "--importance", "0.9")
    changed = run_json("edit", memory, "--tag", "c", "--importance", "0")
    assert (changed["tags"], changed["importance"], changed["content"]) == (["c"], 0.0, "Builds run at night")
    assert run_json("edit", memory, "--no-tags", "--trust", "evidence")["tags"] == []
    assert run_json("edit", memory, "--unpin")["trust"] == "evidence"
    assert run("edit", memory, "--content", "-", stdin="Builds run at noon\n").stdout == f"changed {memory}: content\n"
    assert run_json("get", memory)["content"] == "Builds run at noon"


def test_wrong_changes_are_wrong_usage():
    memory = remember("Builds run at night")
    for wrong in (
        [],
        ["--tag", "a", "--no-tags"],
        ["--importance", "2"],
        ["--metadata", "[]"],
        ["--trust", "much"],
        ["--anchor", ""],
    ):
        assert run("edit", memory, *wrong, code=2).stdout == ""
    assert run_json("get", memory)["history"] == []


def test_without_an_option_the_text_is_edited_in_the_editor(monkeypatch):
    memory = remember("Builds run at night")
    monkeypatch.setattr(memories, "sys", type("Terminal", (), {"stdin": type("In", (), {"isatty": lambda: True})}))
    seen = []
    answers = [None, "Builds run at night\n", "Builds run at noon\n"]

    def edit(text, extension):
        seen.append(text)
        return answers.pop(0)

    monkeypatch.setattr(click, "edit", edit)
    for _ in range(2):
        assert run("edit", memory).stderr == "nothing was changed\n"
    assert run("edit", memory).stdout == f"changed {memory}: content\n"
    assert seen == ["Builds run at night"] * 3
    assert run_json("get", memory)["content"] == "Builds run at noon"


def test_a_purge_asks_first():
    memory = remember("The old office was in Mill Lane")
    refused = run("purge", memory, stdin="n\n", code=1)
    assert "The old office was in Mill Lane" in refused.stdout
    assert "nothing was purged" in refused.stderr
    assert run("purge", memory, stdin="", code=130).stdout.startswith(memory)
    assert (
        run_json("purge", memory, code=2)["error"]["message"]
        == "Cannot ask for confirmation with --json. Add --yes to confirm."
    )
    assert run_json("get", memory)["id"] == memory

    assert f"purged {memory}" in run("purge", memory, stdin="y\n").stdout
    assert "no such memory" in run("get", memory, code=1).stderr
    other = remember("The older office was in Water Lane")
    assert run_json("purge", other, "--yes")["purged"]


@pytest.mark.parametrize("length", [26, 8])
def test_id_outside_a_project_refers_to_the_default_workspace(tmp_path, monkeypatch, length):
    monkeypatch.chdir(tmp_path)
    memory = remember("My locker in the coworking space is 417")
    assert memory in run("recall", "which locker do I have", "--min-relevance", "0").stdout
    name = memory[-length:]
    assert run_json("get", name)["id"] == memory
    assert run_json("edit", name, "--pin")["id"] == memory
    run("forget", name)
    assert run_json("restore", name)["id"] == memory
    assert f"purged {memory}" in run("purge", name, "--yes").stdout
    assert "417" not in run("list").stdout


@pytest.mark.parametrize("command", ["get", "restore", "purge", "forget"])
def test_an_unknown_id_is_refused_with_the_workspace_that_was_searched(command):
    remember("A workspace is needed")
    arguments = ("--yes",) if command == "purge" else ()
    error = run(command, NOBODY, *arguments, code=1).stderr
    assert 'no such memory in workspace "default"' in error
    assert "-w ID" in error


def test_an_archived_memory_comes_back(container):
    memory = remember("The old office was in Mill Lane")
    revise.archive(container.databases.get("default"), memory)
    assert "archived" in run("get", memory).stdout
    assert run("restore", memory).stdout == f"restored {memory}: The old office was in Mill Lane\n"
    assert run_json("get", memory)["archived_at"] is None
    assert run_json("restore", memory)["id"] == memory


@pytest.mark.parametrize("name", ["", "  ", "../stats", "a/b"])
def test_an_id_stays_within_its_place(name):
    for command in ("get", "restore", "purge"):
        assert "must not be empty" in run(command, name, code=2).stderr


@pytest.mark.parametrize("name", ["..", ".", NOBODY, "a?hard=true", "%2e%2e", "x#y"])
def test_unknown_memory_is_reported_by_get(name):
    remember("A workspace is needed")
    assert "no such memory" in run("get", name, code=1).stderr
    assert run_json("get", name, code=1)["error"]["type"] == "NotFound"


def test_results_are_explained():
    memory = remember("The deploy runs on Fridays")
    other = remember("Tea is in the kitchen")
    assert "Format of a channel: rank" in run("recall", "deploy Fridays", "--explain", "-k", "1").stdout
    assert run_json("recall", "deploy Fridays", "--explain")["results"][0]["signals"]["parts"]
    assert run("recall", "deploy Fridays", "--why", memory).stdout.startswith("found: number 1")
    assert run_json("recall", "deploy Fridays", "--why", other)["id"] == other


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("2026-03-01", "2026-03-01T00:00:00.000Z"),
        ("2026-03-01 12:30", "2026-03-01T12:30:00.000Z"),
        ("2026-03-01T12:30:00Z", "2026-03-01T12:30:00.000Z"),
        ("2026-03-01T12:30:00+02:00", "2026-03-01T10:30:00.000Z"),
    ],
)
def test_a_date_is_a_time(given, told):
    assert options.PAST.convert(given, None, None) == told


@pytest.mark.parametrize("given", ["someday", "2026-02-30", "", "1", "d"])
def test_invalid_as_of_time_is_invalid_usage(given):
    assert run("recall", "x", "--as-of", given, code=2).stdout == ""


def test_recall_takes_a_day():
    remember("The deploy runs on Fridays", "--occurred-at", "2026-02-01")
    assert len(run_json("recall", "deploy", "--as-of", "2026-03-01")["results"]) == 1
    assert run_json("recall", "deploy", "--as-of", "2026-01-01")["results"] == []
    assert run_json("recall", "deploy", "--since", "2026-02-02")["results"] == []


def test_a_list_is_gathered_from_pages(server, container, client):
    client.post("/v1/memories/batch", {"items": [{"content": f"number {n}"} for n in range(205)]})
    with Client(f"http://127.0.0.1:{server}", container.token) as asking:
        some, every = asking.list_items("/v1/memories", 203), asking.list_items("/v1/memories", 1000, kind=None)
        gathered = list(asking.items("/v1/memories", 203, page=50))
    assert some["items"] == every["items"][:203] == gathered
    assert (some["next_cursor"] is None, every["next_cursor"], len(every["items"])) == (False, None, 205)
    assert run_json("logs", "audit")["counted"] == 205


def test_new_project_starts_empty_and_its_first_write_creates_a_workspace(tmp_path, monkeypatch):
    run("remember", "Jobs wait in Redis")
    assert run("workspace", "current").stdout == "default\n"
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    own = identify(tmp_path / "project").id
    assert run("workspace", "current").stdout == f"{own}\n"
    told = run("recall", "where do jobs wait")
    assert "Redis" not in told.stdout + told.stderr
    assert f'There are no memories in workspace "{own}" yet' in told.stderr
    run("remember", "Jobs wait in SQLite")
    assert run("workspace", "current").stdout == f"{own}\n"
    assert "SQLite" in run("recall", "where do jobs wait").stdout
    assert "Redis" in run("recall", "where do jobs wait", "-w", "default").stdout


def test_the_end_of_an_id_will_do():
    memory = remember("Builds run at night")
    assert run_json("get", memory[-8:].lower())["id"] == memory
    run("forget", memory[-8:])
    assert run_json("get", memory[-8:])["archived_at"] is not None
    assert "no such memory" in run("get", "ZZZZZZZZ", code=1).stderr
