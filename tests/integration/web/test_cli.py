import http.server
import json
import re
import subprocess
import sys
import threading
from typing import ClassVar

import click
import pytest
from click.testing import CliRunner

from config.paths import HomePaths
from tests.fakes.local_server import LocalServer
from web.cli import cli
from web.features.recall import commands as recall

ULID = "01M7YZWD2TYS3P4A1GQPPBMFZK"
HIT = {
    "id": ULID,
    "content": "The queue is SQLite.\nSince spring.",
    "kind": "decision",
    "score": 0.75,
    "created_at": "2026-01-02T03:04:05Z",
    "occurred_at": "2026-01-02T03:04:05.000Z",
    "session_id": "s1",
    "source": "user",
}
SIGNALS = {
    "channels": {
        "lexical": {"rank": 1, "score": 4.5, "contribution": 0.5},
        "dense": {"rank": None, "score": 0.25, "contribution": 0.125},
    },
    "parts": {"lexical": 0.5, "dense": 0.125, "session": 0.1},
    "lifted_by": [{"part": "session", "id": "01NEIGHBOUR", "contribution": 0.1}],
    "coverage": 0.5,
    "closeness": 0.25,
    "relevance": 0.875,
}
CHANNELS = {"lexical": {"state": "ok", "took_ms": 1}, "dense": {"state": "cold", "took_ms": 0}}
QUEUE = {
    "pending": {"embed": 2, "entities": 0, "purge": 0},
    "dead": {"embed": 1, "entities": 0, "purge": 0},
    "oldest_pending_s": 75.0,
    "workers": [{"owner": "h:1:2", "started_at": "2026-01-02T03:04:05Z", "seen_at": "2026-01-02T03:04:05Z"}],
}
SWITCHES = {
    "workspace": "default",
    "enabled": True,
    "hook_recall": True,
    "journal": True,
    "capture": "on",
    "personal": True,
    "write_tools": True,
    "read_only": False,
    "incognito": False,
    "imports_in_prompts": True,
}
IDLE = QUEUE | {"pending": {"embed": 0, "entities": 0, "purge": 0}, "oldest_pending_s": None}
ENCODER = {"model": "all-MiniLM-L6-v2", "languages": None, "next_model": None, "embedded": None}
ON_THE_WAY = ENCODER | {"languages": "9 of 40 memories", "next_model": "multilingual-e5-small", "embedded": 7}
WORKSPACE = {"id": "default", "memories": 2, "problem": None} | ON_THE_WAY
STATS = {
    "workspace": "default",
    "generation": 3,
    "memories": {"active": 2, "archived": 1, "sessions": 1, "by_kind": {"fact": 2}, "by_source": {"user": 2}},
    "graph": {"entities": 4, "mentions": 5},
    "index": {"segment": None, "tail_rows": 2, "passages": 2, "encoder": "ready"} | ENCODER,
    "bytes": {"events": 2048, "vectors": 0, "lexical": 3 * 1024 * 1024},
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    canned: ClassVar[dict] = {
        "GET /healthz": {"status": "ok", "version": "0.1.0", "encoder": "ready", "uptime_s": 5.0},
        "POST /v1/memories": {"id": ULID, "outcome": "created"},
        "POST /v1/recall": {"results": [HIT], "took_ms": 1.5, "channels": CHANNELS, "degraded": True},
        "GET /v1/stats": STATS,
        "GET /v1/switches": SWITCHES,
        "GET /v1/queue": QUEUE,
        "GET /v1/sessions/import": {"text": "12 sessions imported", "running": False, "sessions": 12},
        "POST /v1/queue/retry": {"retried": 3},
        "POST /v1/rebuild": {"queued": 2},
        "GET /v1/workspaces": {
            "items": [{"id": "default", "memories": 2, "problem": None} | ON_THE_WAY],
            "next_cursor": None,
        },
        "GET /v1/errors": {
            "items": [
                {
                    "id": 1,
                    "at": "2026-01-02T03:04:05Z",
                    "workspace": None,
                    "component": "digest.embed",
                    "message": "broken \x1b[2J",
                    "repaired_at": None,
                }
            ],
            "next_cursor": None,
        },
    }

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        route = f"{self.command} {self.path.partition('?')[0]}"
        self.server.seen.append((route, self.headers["X-Reverie-Workspace"], json.loads(body) if body else None))
        found = (self.server.answers | {}).get(route)
        answer = found.pop(0) if isinstance(found, list) else found
        status = answer.get("status", 200) if "title" in answer else 200
        kind = "application/problem+json" if "title" in answer else "application/json"
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer  # noqa: N815 - the names that http.server looks for

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    with LocalServer(tmp_path / "home", Handler) as server:
        server.seen = []
        server.answers = dict(Handler.canned)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("REVERIE_HOME", str(home))
    # The discard port: nothing listens there.
    monkeypatch.setenv("REVERIE_PORT", "9")
    return home


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(cli, arguments, input=stdin)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def run_json(*arguments, code=0, stdin=None):
    return json.loads(run("--json", *arguments, code=code, stdin=stdin).stdout)


def test_json_and_workspace_are_taken_before_and_after_the_command(server):
    for arguments in (
        ["--json", "-w", "mine", "workspace", "stats"],
        ["workspace", "stats", "--json", "--workspace", "mine"],
        ["-w", "mine", "workspace", "stats", "--json"],
    ):
        assert json.loads(run(*arguments).stdout) == STATS
    assert [workspace for _, workspace, _ in server.seen] == ["mine"] * 3


def test_options_reach_the_commands_of_a_group(server):
    assert json.loads(run("jobs", "queue", "retry", "--json", "-w", "mine").stdout) == {"retried": 3}
    assert json.loads(run("jobs", "queue", "--json", "retry").stdout) == {"retried": 3}
    assert server.seen[0][1] == "mine"


def test_the_workspace_is_the_setting_unless_named(server, monkeypatch):
    monkeypatch.setenv("REVERIE_WORKSPACE", "from-env")
    run("workspace", "stats")
    run("workspace", "stats", "-w", "named")
    assert [workspace for _, workspace, _ in server.seen] == ["from-env", "named"]


def test_remember_sends_exactly_the_given_options(server):
    options = ["--kind", "decision", "--tag", "a", "--tag", "b", "--importance", "0", "--session", "s1"]
    options += ["--source", "agent", "--scope", "agent:x", "--occurred-at", "2026-01-02T03:04:05Z"]
    assert run("remember", "text", *options, "--metadata", '{"n": 1}').stdout == f"created {ULID}\n"
    # The id that lets the command send the memory again.
    assert len(server.seen[0][2].pop("id")) == len(ULID)
    assert server.seen[0] == (
        "POST /v1/memories",
        "default",
        {
            "content": "text",
            "kind": "decision",
            "tags": ["a", "b"],
            "importance": 0.0,
            "session_id": "s1",
            "source": "agent",
            "scope": {"kind": "agent", "id": "x"},
            "occurred_at": "2026-01-02T03:04:05.000Z",
            "metadata": {"n": 1},
        },
    )


def test_remember_sends_the_severity_of_a_lesson(server):
    run("remember", "Never run make deploy by hand", "--kind", "lesson", "--severity", "critical")
    assert server.seen[0][2]["details"] == {"severity": "critical"}
    run("remember", "Never run make deploy by hand", "--severity", "critical", code=2)


def test_remember_reads_standard_input(server):
    assert run_json("remember", "-", stdin="two\nlines\n") == {"id": ULID, "outcome": "created"}
    assert server.seen[0][2]["content"] == "two\nlines"


def test_remember_reports_the_outcome(server):
    server.answers["POST /v1/memories"] = {"id": ULID, "outcome": "rejected", "reason": "too vague"}
    assert run("remember", "x").stdout == f"rejected {ULID}: too vague\n"
    server.answers["POST /v1/memories"] = {"id": ULID, "outcome": "merged", "duplicate_of": "other"}
    assert "same as other" in run("remember", "x").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--metadata", "no json"],
        ["--metadata", "[1]"],
        ["--scope", "galaxy"],
        ["--kind", "opinion"],
        ["--importance", "2"],
        ["-w", "No!"],
    ],
)
def test_invalid_usage_exits_with_2_and_sends_no_request(server, arguments):
    result = run("remember", "x", *arguments, code=2)
    assert result.stdout == ""
    assert result.stderr
    assert "message" in run_json("remember", "x", *arguments, code=2)["error"]
    assert server.seen == []


def test_recall_prints_results(server):
    result = run("recall", "queue", "-k", "3", "--kind", "fact", "--kind", "decision", "--session", "s1")
    assert server.seen[0][2] == {"query": "queue", "k": 3, "kinds": ["fact", "decision"], "session_id": "s1"}
    assert result.stdout.splitlines() == [
        f"  1  0.750  decision  2026-01-02T03:04  session s1  {ULID}",
        "     The queue is SQLite.",
        "     Since spring.",
    ]
    assert result.stderr == (
        "1 result in 1.5 ms (lexical ok, dense cold); the search was incomplete, there may be more results\n"
    )


def test_recall_by_session_and_in_json(server):
    best = {"session_id": "s1", "score": 0.75, "best": [HIT]}
    answer = {"results": [best], "took_ms": 1, "channels": CHANNELS, "degraded": False}
    server.answers["POST /v1/recall"] = answer
    options = ["--group", "session", "--since", "2026-01-01T00:00:00Z", "--until", "2027-01-01T00:00:00Z"]
    assert run("recall", "q", *options, "--budget-ms", "50").stdout.startswith("session s1  0.750\n  1  0.750")
    assert server.seen[0][2] == {
        "query": "q",
        "since": "2026-01-01T00:00:00.000Z",
        "until": "2027-01-01T00:00:00.000Z",
        "group": "session",
        "budget_ms": 50,
    }
    assert run_json("recall", "q") == answer


def test_recall_explains(server):
    server.answers["POST /v1/recall"] = {
        "results": [HIT | {"signals": SIGNALS}],
        "took_ms": 1.5,
        "channels": CHANNELS,
        "degraded": False,
    }
    lines = run("recall", "queue", "--explain").stdout.splitlines()
    assert server.seen[0][2] == {"query": "queue", "explain": True}
    header = next(i for i, line in enumerate(lines) if line.startswith("#"))
    assert re.split(r"\s{2,}", lines[header + 1].strip()) == [
        "1",
        "1 / 4.500 / +0.500",
        "- / 0.250 / +0.125",
        "0.88",
        "0.750",
    ]
    assert lines[-2:] == [
        "  1  lexical +0.500, dense +0.125, session +0.100",
        "     session +0.100 from 01NEIGHBOUR",
    ]


def test_recall_says_why_not(server):
    server.answers["POST /v1/recall/why"] = {
        "id": ULID,
        "rank": None,
        "score": None,
        "channels": {},
        "reasons": ["filtered by kinds: it is a fact"],
        "signals": None,
    }
    assert run("recall", "queue", "--kind", "lesson", "--why", ULID).stdout == "filtered by kinds: it is a fact\n"
    assert server.seen[0][2] == {"query": "queue", "kinds": ["lesson"], "id": ULID}
    assert run_json("recall", "queue", "--why", ULID)["rank"] is None


def test_stats_for_a_reader(server):
    output = run("workspace", "stats").stdout
    assert "2 active, 1 archived" in output
    assert "none yet, 2 newer writes" in output
    assert "encoder    all-MiniLM-L6-v2\n" in output
    assert "events 2.0 KiB, vectors 0 B, lexical 3.0 MiB" in output


def test_queue_for_a_reader(server):
    lines = run("jobs", "queue").stdout.splitlines()
    assert [line.split() for line in lines[:2]] == [["stage", "pending", "failed"], ["embed", "2", "1"]]
    assert "oldest pending item: 1 min 15 s" in lines
    assert run_json("jobs", "queue") == QUEUE


def test_retry_names_the_stage(server):
    assert run("jobs", "queue", "retry", "--stage", "embed").stdout == "3 queued again\n"
    assert server.seen[0][2] == {"stage": "embed"}


def test_rebuild_waits_until_the_queue_is_empty(server):
    server.answers["GET /v1/queue"] = [QUEUE, IDLE]
    result = run("store", "rebuild")
    assert result.stdout.startswith("indexed 2 memories of default in")
    assert "failed permanently: embed 1" in result.stderr
    assert [route for route, *_ in server.seen] == ["POST /v1/rebuild", "GET /v1/queue", "GET /v1/queue"]
    server.answers["GET /v1/queue"] = [IDLE]
    assert run_json("store", "rebuild") | {"took_s": 0} == {"queued": 2, "dead": IDLE["dead"], "took_s": 0}


def test_status_with_a_server(server):
    found = run_json("status")
    assert found["answers"]
    assert found["encoder"] == "ready"
    queued = {"pending": QUEUE["pending"], "dead": QUEUE["dead"]}
    assert found["workspaces"] == [WORKSPACE | queued | {"waiting": None}]
    output = run("status").stdout
    assert "answers (version 0.1.0)" in output
    assert "digest.embed: broken [2J" in output
    assert "12 sessions imported" in output
    on_the_way = "all-MiniLM-L6-v2; multilingual-e5-small has embedded 7; 9 of 40 memories not in English"
    assert on_the_way in output


def test_status_and_down_without_anything(empty_home):
    assert run("status").stdout.startswith("nothing runs on")
    assert not run_json("status")["answers"]
    assert run("down").stdout.startswith("nothing runs on")
    assert run_json("down") == {"stopped": []}
    assert not empty_home.exists()


def test_workspaces_are_listed_with_and_without_a_server(server, tmp_path):
    assert run("workspace", "list").stdout.splitlines()[1].split() == ["*", "default", "2"]
    folder = tmp_path / "home" / "workspaces" / "alone"
    folder.mkdir(parents=True)
    (folder / "events.sqlite").touch()
    server.shutdown()
    server.server_close()
    assert run_json("workspace", "list")["items"] == [{"id": "alone", "memories": None}]


def make_workspaces(home, *names):
    for name in names:
        events = home / "workspaces" / name / "events.sqlite"
        events.parent.mkdir(parents=True, exist_ok=True)
        events.touch()


def test_a_workspace_is_used_from_then_on(empty_home, monkeypatch):
    assert run("workspace", "current").stdout == "default\n"
    make_workspaces(empty_home, "healthchecks-0d1a25a8", "shop", "shop-0c2afda7")
    run("workspace", "use", "healthchecks")
    assert run_json("workspace", "current") == {"workspace": "healthchecks-0d1a25a8"}
    assert run("-w", "other", "workspace", "current").stdout == "other\n"
    monkeypatch.setenv("REVERIE_WORKSPACE", "loud")
    assert "REVERIE_WORKSPACE=loud" in run("workspace", "use", "shop").stderr
    monkeypatch.delenv("REVERIE_WORKSPACE")
    run("workspace", "use", "default")
    assert run("workspace", "current").stdout == "default\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("healtcheck", "The workspaces are: healthchecks-0d1a25a8, shop-0c2afda7, shop-1d1a25a8"),
        ("healthchecks-2", "there is no workspace healthchecks-2"),
        ("../outside", "there is no workspace ../outside"),
        ("shop", "several workspaces start with shop: shop-0c2afda7, shop-1d1a25a8"),
        ("Shop", "there is no workspace Shop"),
    ],
)
def test_an_unknown_workspace_is_refused(empty_home, name, said):
    """A mistyped name must not send every project to a new empty workspace."""
    make_workspaces(empty_home, "healthchecks-0d1a25a8", "shop-0c2afda7", "shop-1d1a25a8")
    error = " ".join(run("workspace", "use", name, code=2).stderr.split())
    assert said in error
    assert "reverie -w ID remember" in error
    assert run("workspace", "current").stdout == "default\n"


def test_reverie_is_turned_off_and_on_in_a_project(project, tmp_path, monkeypatch):
    assert "Reverie is off" in run("off").stdout
    told = {setting["name"]: setting["value"] for setting in run_json("config")["settings"]}
    assert (told["enabled"], told["incognito"]) == (False, True)
    assert run_json("on")["on"] is True
    told = {setting["name"]: setting["value"] for setting in run_json("config")["settings"]}
    assert (told["enabled"], told["incognito"]) == (True, False)
    monkeypatch.chdir(tmp_path)
    assert "is in no Git repository and shares workspace default" in run("off", code=1).stderr


@pytest.fixture
def project(empty_home, tmp_path, monkeypatch):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text('[remote "origin"]\nurl = https://ann:hunter2@h/o/r.git\n')
    monkeypatch.chdir(folder)
    return folder


def test_workspace_why_shows_id_rule_and_current_use(project, empty_home):
    told = run_json("workspace", "why")
    assert set(told) == {"id", "rule", "detail"}
    assert (told["id"][:2], told["rule"]) == ("r-", "git-remote")
    assert "is h/o/r; commands and hooks use it" in told["detail"]
    assert "hunter2" not in str(told)
    assert run("workspace", "current").stdout == f"{told['id']}\n"

    make_workspaces(empty_home, told["id"], "set")
    assert run("workspace", "why").stdout.startswith(f"{told['id']} (by git-remote)\nremote origin of ")
    assert run("workspace", "why").stdout.endswith("; commands and hooks use it\n")
    assert run("workspace", "current").stdout == f"{told['id']}\n"
    assert f"in this folder, {told['id']} takes precedence" in run("workspace", "use", "default").stderr

    run("workspace", "use", "set")
    assert "commands and hooks use set" in run_json("workspace", "why")["detail"]
    assert run("workspace", "current").stdout == "set\n"


def test_why_follows_every_rule(project, tmp_path, monkeypatch):
    assert run_json("workspace", "why", "-C", str(tmp_path))["rule"] == "path"
    (project / ".reverie.toml").write_text('workspace = "own"')
    assert run_json("workspace", "why") == {
        "id": "own",
        "rule": "file",
        "detail": f"{project}/.reverie.toml names it; commands and hooks use it",
    }
    monkeypatch.setenv("REVERIE_WORKSPACE", "loud")
    assert run_json("workspace", "why")["rule"] == "environment"
    assert run_json("workspace", "why", "-w", "said") | {"detail": ""} == {
        "id": "said",
        "rule": "explicit",
        "detail": "",
    }
    run("workspace", "why", "--folder", str(tmp_path / "nowhere"), code=2)


def test_the_file_of_a_folder_decides_and_a_broken_file_is_reported(project, empty_home):
    (project / ".reverie.toml").write_text('workspace = "own"')
    make_workspaces(empty_home, "set")
    assert run("workspace", "current").stdout == "own\n"
    assert "in this folder, own takes precedence" in run("workspace", "use", "set").stderr
    (project / ".reverie.toml").write_text('colour = "red"')
    for command in ("current", "why"):
        error = run_json("workspace", command, code=1)["error"]
        assert (error["type"], error["errors"][0]["loc"]) == ("InvalidField", f"{project}/.reverie.toml")
        assert "unknown key colour" in error["message"]
    assert run("-w", "said", "workspace", "current").stdout == "said\n"


def test_a_project_uses_anothers_workspace_once_a_person_agrees(project, empty_home):
    (empty_home / "workspaces" / "theirs").mkdir(parents=True)
    (empty_home / "workspaces" / "theirs" / "events.sqlite").touch()
    file = project / ".reverie.toml"
    file.write_text('workspace = "theirs"')
    told = run("workspace", "current")
    own = run_json("workspace", "why")["id"]
    assert told.stdout == f"{own}\n"
    assert "to agree, run `reverie workspace trust`" in told.stderr
    assert "claims theirs" in run_json("workspace", "why")["detail"]
    assert "Agree?" in run("workspace", "trust", stdin="n\n", code=130).stderr
    assert run_json("workspace", "trust", "--yes") == {"file": str(file), "workspace": "theirs", "agreed": True}
    assert run("workspace", "current").stdout == "theirs\n"
    assert "no longer used in" in run("workspace", "trust", "--revoke").stdout
    assert run("workspace", "current").stdout == f"{own}\n"
    assert run_json("workspace", "trust", "--revoke", code=1)["error"]["type"] == "NotFound"
    file.unlink()
    assert run_json("workspace", "trust", code=1)["error"]["type"] == "InvalidField"


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Have what is edited replaced by a text."""
    monkeypatch.setenv("VISUAL", f"cp '{tmp_path / 'written'}'")

    def write(text):
        (tmp_path / "written").write_text(text)

    return write


def test_workspace_config_is_edited_and_validated(home, editor):
    editor("# ours\ncapture = 'off'\n")
    file = home.paths.workspace("mine").config
    assert run_json("-w", "mine", "config", "--edit") == {"place": str(file), "changed": True}
    assert file.read_text() == "# ours\ncapture = 'off'\n"
    assert f"{file}: unchanged" in run("-w", "mine", "config", "--edit").stdout
    editor("capture = 'sometimes'\n")
    assert "capture: must be" in run("-w", "mine", "config", "--edit", code=1).stderr
    assert file.read_text() == "# ours\ncapture = 'off'\n"
    editor("\n")
    file.write_text("capture =")
    run("-w", "mine", "config", "--edit")
    assert file.read_text() == "\n"


def test_config_lists_value_origin_and_help(empty_home, monkeypatch):
    monkeypatch.setenv("REVERIE_LOG_LEVEL", "ERROR")
    settings = {setting["name"]: setting for setting in run_json("config")["settings"]}
    assert settings["log_level"]["value"] == "ERROR"
    assert settings["log_level"]["origin"] == "environment"
    assert settings["web_threads"]["origin"] == "default"
    assert all(setting["help"] for setting in settings.values())
    output = run("config").stdout
    assert all(name in output for name in settings)


def test_the_token_is_shown_only_when_asked_for(empty_home):
    assert "first `reverie up` creates" in run("token", code=1).stderr
    empty_home.mkdir()
    (empty_home / "token").write_text("secret\n")
    assert run("token").stdout == f"{empty_home}/token\n"
    assert run_json("token") == {"path": f"{empty_home}/token"}
    assert run("token", "--show").stdout == "secret\n"
    assert run_json("token", "--show")["token"] == "secret"


def test_a_new_token_is_made_after_a_yes(empty_home):
    empty_home.mkdir()
    (empty_home / "token").write_text("secret\n")
    assert "the token was not changed" in run("token", "--renew", code=1, stdin="n\n").stderr
    assert "Cannot ask for confirmation with --json" in run("--json", "token", "--renew", code=2).stderr
    assert (empty_home / "token").read_text() == "secret\n"
    shown = run("token", "--renew", "--yes", "--show").stdout
    assert shown == (empty_home / "token").read_text() != "secret\n"


def test_version(empty_home):
    version = json.loads(run("--json", "--version").stdout)["version"]
    assert run("--version").stdout == f"reverie {version}\n"


def test_an_error_is_one_line_and_json_where_asked(empty_home):
    result = run("workspace", "stats", code=1)
    assert result.stdout == ""
    assert re.fullmatch(
        r"Error: No Reverie server answers at http://127.0.0.1:9. Start the server with .*\n", result.stderr
    )
    error = run_json("workspace", "stats", code=1)["error"]
    assert (error["type"], "reverie up" in error["message"]) == ("ServerUnreachable", True)


def test_rejected_fields_are_named(server):
    problem = {"title": "T", "status": 422, "detail": "d", "errors": [{"loc": "tags.0", "msg": "no"}]}
    server.answers["POST /v1/memories"] = problem
    assert run("remember", "x", code=1).stderr == "Error: tags.0: no\n"
    assert run_json("remember", "x", code=1)["error"]["errors"] == [{"loc": "tags.0", "msg": "no"}]


def test_a_setting_that_cannot_be_taken_is_named(empty_home, monkeypatch):
    monkeypatch.setenv("REVERIE_PROT", "1")
    assert "did you mean port?" in run("workspace", "stats", code=1).stderr
    assert run_json("workspace", "stats", code=1)["error"]["type"] == "SettingsError"


def commands(group, prefix=()):
    context = click.Context(group)
    # By the group's own listing: the root imports a command only when it is asked for.
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*prefix, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*prefix, name))


@pytest.mark.parametrize("path", [path for path, _ in commands(cli)], ids=" ".join)
def test_every_command_explains_itself(path):
    output = run(*path, "--help").stdout
    assert "--json" in output
    assert "--workspace" in output


def test_every_command_and_option_has_help_that_is_a_sentence():
    for path, command in commands(cli):
        options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
        helps = [command.help, *(option.help for option in options)]
        assert [text for text in helps if not text or not text[0].isupper() or "." not in text] == [], path


def test_every_choice_is_a_text():
    for path, command in commands(cli):
        choices = [choice for param in command.params for choice in getattr(param.type, "choices", ())]
        # click names the members of an enum in capitals and refuses their values.
        assert [choice for choice in choices if type(choice) is not str] == [], path


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["workspace", "stats"]])
def test_a_command_loads_no_heavy_library(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path))
    monkeypatch.setenv("REVERIE_PORT", "9")
    program = (
        "import json, sys\n"
        "from web.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(json.dumps(sorted(sys.modules)))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(answer.stdout.splitlines()[-1]))
    heavy = {"torch", "spacy", "lancedb", "flask", "numpy", "huey", "waitress", "onnxruntime", "sqlite_utils"}
    assert loaded & heavy == set()
    assert loaded & {"pydantic", "urllib3"} == set()
    if "stats" not in arguments:
        assert loaded & {"rich", "psutil", "http.client"} == set()


EMPTY = {"results": [], "took_ms": 1.5, "channels": CHANNELS, "degraded": True}


def test_recall_waits_once_for_a_channel_that_is_cold(server):
    server.answers["POST /v1/recall"] = [EMPTY, EMPTY, EMPTY | {"results": [HIT], "degraded": False}]
    assert "The queue is SQLite." in run("recall", "queue").stdout
    asked = [body for route, _, body in server.seen if route == "POST /v1/recall"]
    assert len(asked) == 3
    assert asked[0] == {"query": "queue"}


def test_recall_never_says_that_nothing_was_found_while_memory_loads(server, monkeypatch):
    monkeypatch.setattr(recall, "PATIENCE_S", 0.01)
    server.answers["POST /v1/recall"] = EMPTY
    told = run("recall", "queue", code=3)
    assert "memory is still loading (lexical ok, dense cold); try again in a moment" in told.stderr
    assert "0 results" not in told.output
    assert run_json("recall", "queue", code=3) == EMPTY


LATE = {"lexical": {"state": "ok"}, "dense": {"state": "late"}}
COLD = {"lexical": {"state": "ok"}, "dense": {"state": "cold"}}


def ask_until_complete(server, channels, *options):
    partial = {"results": [HIT], "took_ms": 1.5, "channels": channels, "degraded": True}
    complete = partial | {"channels": {name: {"state": "ok"} for name in channels}, "degraded": False}
    server.answers["POST /v1/recall"] = [partial, partial, complete]
    said = run("recall", "queue", *options)
    return said.stderr, [body for route, _, body in server.seen if route == "POST /v1/recall"]


def test_a_first_recall_waits_for_the_channel_that_is_late(server):
    said, asked = ask_until_complete(server, LATE)
    assert len(asked) == 3
    assert asked[1]["budget_ms"] > 1000
    assert "incomplete" not in said
    assert "late" not in said


def test_a_recall_waits_for_a_compiled_encoder_to_be_loaded(server):
    manifest = HomePaths(server.home).models / "any" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    assert len(ask_until_complete(server, COLD)[1]) == 3


@pytest.mark.parametrize(("channels", "options"), [(COLD, ()), (LATE, ("--budget-ms", "5"))])
def test_incomplete_recall_with_results_does_not_wait_for_compilation(server, channels, options):
    said, asked = ask_until_complete(server, channels, *options)
    assert len(asked) == 1
    assert "the search was incomplete" in said


def test_recall_shows_full_texts_on_request(server, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    long = HIT | {"content": "Before it. " * 40 + "The queue is SQLite. " + "After it. " * 40}
    server.answers["POST /v1/recall"] = {"results": [long], "took_ms": 1, "channels": {}, "degraded": False}
    shown = run("recall", "queue").stdout.splitlines()
    assert len(shown) == 3
    assert max(map(len, shown[1:])) <= 60
    assert "The queue is SQLite." in " ".join(shown)
    assert len(run("recall", "queue", "--full").stdout) > 800


def test_memories_are_listed_one_a_line(server, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    memory = HIT | {"content": "The queue is SQLite. " * 20}
    server.answers["GET /v1/memories"] = {"items": [memory], "next_cursor": None}
    (line,) = run("list", "-n", "1").stdout.splitlines()
    assert line.startswith(f"{ULID[-8:]}  decision    2026-01-02 03:04  The queue")
    assert len(line) == 70
    server.answers["GET /v1/memories"] = {"items": [], "next_cursor": None}
    assert run("list", "--archived").stderr == "No memories match.\n"
