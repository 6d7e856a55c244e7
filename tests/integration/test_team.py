"""A team's memory beside this machine's: two homes, the team's served over HTTP."""

import contextlib
import json
import socket
import stat
import threading
import time

import pytest
import urllib3
from click.testing import CliRunner
from flask import Flask, Response, request

from pipeline.features.team import link
from pipeline.features.team.servers import TeamServer, check_server, list_servers, write_server
from pipeline.features.workspaces.identify import identify
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.http.connections import CONNECT_TIMEOUT_S
from pipeline.kernel.records.recall import Channel
from pipeline.kernel.store import agent_sessions
from pipeline.prompt.line import LineSource, make_text_key
from pipeline.text.normalize import content_hash
from tests.fakes import command_line
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, flush_notes, open_web
from tests.support.served import serve_app, serve_home
from tests.support.stack import free_port as closed_port
from web.cli import cli
from web.http.app import create_app
from web.http.client import ANSWER_TIMEOUT_S

PARCELS = "Parcels over thirty kilos leave from the depot in Graz"
QUESTION = "Where do parcels over thirty kilos leave from?"
STAGING = "Staging listens on port 5433"


class Home:
    """A home in this process and a client of it."""

    def __init__(self, folder):
        self.settings = fast_settings(folder, hook_budget_ms=2000)
        self.container = open_web(self.settings)
        self.client = CheckedClient(create_app(self.container), self.container.token)

    def teams(self):
        return list_servers(self.settings.paths.servers, pytest.fail)

    def know(self, name, url, token):
        write_server(self.settings.paths.servers, TeamServer(name, url, token))


@pytest.fixture
def mine(tmp_path):
    home = Home(tmp_path / "mine")
    yield home
    home.container.close()


class Acme:
    def __init__(self, settings, port):
        self.settings = settings
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    @property
    def token(self):
        return self.settings.paths.token()

    def call(self, method, path, body=None, workspace="default"):
        headers = {"Authorization": f"Bearer {self.token}", "X-Reverie-Workspace": workspace}
        answer = urllib3.request(method, f"{self.url}{path}", json=body, headers=headers, retries=False)
        assert answer.status < 300, answer.data
        return answer.json()

    def remember(self, content, workspace="default", **fields):
        return self.call("POST", "/v1/memories", {"content": content, **fields}, workspace)["id"]


@pytest.fixture
def acme(tmp_path):
    settings = fast_settings(tmp_path / "acme")
    with serve_home(settings) as port:
        yield Acme(settings, port)


@pytest.fixture
def joined(mine, acme):
    mine.know("acme", acme.url, acme.token)
    return mine


def ask(home, query="parcels", **fields):
    return home.client.recall(query, **fields)


def test_installation_without_teams_has_no_team_fields(mine):
    mine.client.write(PARCELS)
    answer = ask(mine)
    assert set(answer["channels"]) == set(Channel)
    assert ["from" in hit for hit in answer["results"]] == [False]
    assert "team" not in mine.client.post("/v1/prepare", {"message": "parcels over thirty kilos?"}).get_json()
    assert not mine.settings.paths.servers.exists()


def test_both_are_asked_and_each_result_says_whose_it_is(joined, acme):
    own = joined.client.write("Parcels are weighed at the gate")
    theirs = acme.remember(PARCELS)
    answer = ask(joined)
    assert {hit["id"]: hit["from"] for hit in answer["results"]} == {own: "local", theirs: "acme"}
    assert answer["channels"]["team:acme"]["state"] == "ok"
    assert not answer["degraded"]
    # Best first, by how probably each is about the question.
    relevances = [hit["relevance"] for hit in answer["results"]]
    assert relevances == sorted(relevances, reverse=True)
    # What others vouch for there is evidence here.
    assert {hit["from"]: hit["trust"] for hit in answer["results"]} == {"local": "trusted", "acme": "evidence"}


def test_memory_in_both_stores_is_shown_once_as_local(joined, acme):
    own = joined.client.write(PARCELS)
    acme.remember(f"  {PARCELS}\n")
    assert [(hit["id"], hit["from"]) for hit in ask(joined)["results"]] == [(own, "local")]


def test_team_memory_is_found_without_local_memories(joined, acme):
    theirs = acme.remember(PARCELS)
    assert [hit["id"] for hit in ask(joined)["results"]] == [theirs]
    prepared = joined.client.post(
        "/v1/prepare", {"message": "Where do parcels over thirty kilos leave from?"}
    ).get_json()
    assert [(hit["id"], hit["from"]) for hit in prepared["team"]] == [(theirs, "acme")]
    assert "From the team's memory" in prepared["text"]
    assert f"team acme] user noted: “{PARCELS}”" in prepared["text"]


def test_recall_with_teams_respects_the_requested_limit(joined, acme):
    for number in range(4):
        joined.client.write(f"Parcels of shelf {number} are weighed twice")
        acme.remember(f"Parcels of hall {number} are weighed once")
    assert len(ask(joined, k=5)["results"]) == 5
    listed = ask(joined, "", k=8)["results"]
    assert {hit["from"] for hit in listed} == {"local", "acme"}


def test_a_question_goes_to_no_team_that_has_not_the_workspace(joined, acme):
    joined.client.post("/v1/memories", {"content": PARCELS}, workspace="secret-project")
    answer = joined.client.recall("parcels", workspace="secret-project")
    assert answer["channels"]["team:acme"]["state"] == "off"
    assert not answer["degraded"]
    asked = acme.call("GET", "/v1/workspaces")["items"]
    assert [one["id"] for one in asked] == []


def test_unstored_project_is_searched_in_the_team_by_its_workspace_id(joined, acme, tmp_path):
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    own = identify(clone, explicit=None, environment=None).id
    theirs = acme.remember(PARCELS, workspace=own)
    body = {"message": QUESTION, "cwd": str(clone)}
    assert [hit["id"] for hit in joined.client.post("/v1/prepare", body).get_json()["team"]] == [theirs]
    asked = joined.client.recall("parcels", workspace=own)
    assert [hit["id"] for hit in asked["results"]] == [theirs]


@pytest.mark.parametrize(
    "fields",
    [{"session_id": "s1"}, {"scope": {"kind": "session", "id": "s1"}}, {"scope": {"kind": "user"}}],
)
def test_queries_limited_to_a_session_or_person_are_not_sent_to_teams(joined, acme, fields):
    acme.remember(PARCELS)
    joined.client.write(PARCELS, session_id="s1")
    assert "team:acme" not in ask(joined, **fields)["channels"]


def test_incognito_prompts_are_not_sent_to_teams(joined, acme):
    acme.remember(PARCELS)
    joined.client.write("Something else")
    joined.client.post("/v1/incognito", {"session_id": "quiet", "on": True})
    told = joined.client.post(
        "/v1/prepare", {"message": "parcels over thirty kilos?", "session_id": "quiet"}
    ).get_json()
    assert told.get("team") is None
    event = {"hook_event_name": "UserPromptSubmit", "prompt": "parcels over thirty kilos?", "session_id": "quiet"}
    assert joined.client.post("/hooks/claude-code", event).get_data() == b""


def test_hook_injects_a_team_memory_once_per_session(joined, acme):
    acme.remember(PARCELS)
    joined.client.write("The gate of the yard opens at six")
    event = {"hook_event_name": "UserPromptSubmit", "prompt": QUESTION}

    def is_shown(session):
        text = joined.client.post("/hooks/claude-code", {**event, "session_id": session}).get_data(as_text=True)
        return PARCELS in text

    assert joined.client.post("/v1/prepare", {"message": event["prompt"]}).status_code == 200
    assert [is_shown("s1"), is_shown("s1"), is_shown("s2")] == [True, False, True]
    # A restart of the server changes nothing: the store knows it.
    flush_notes(joined.container)
    key, version = make_text_key(LineSource.TEAM, content_hash(PARCELS))
    with joined.container.workspace("default").database.read() as db:
        assert agent_sessions.list_seen_versions(db, "s1", "", [key]) == {key: version}


# ——— A team that is away, slow or broken.


def test_unreachable_team_is_reported_as_late_with_full_local_results(mine):
    mine.know("acme", f"http://127.0.0.1:{closed_port()}", "t" * 43)
    own = mine.client.write(PARCELS)
    for _ in range(3):
        answer = ask(mine)
        assert [(hit["id"], hit["from"]) for hit in answer["results"]] == [(own, "local")]
        assert answer["channels"]["team:acme"]["state"] == "late"
        assert answer["degraded"]
    flush_notes(mine.container)
    said = [one["message"] for one in mine.client.get("/v1/errors").get_json()["items"] if one["component"] == "team"]
    assert len(said) == 1
    assert "Cannot connect to the server of team acme" in said[0]


def slow_team(held):
    app = Flask("slow")

    @app.get("/v1/workspaces")
    def workspaces():
        return {"items": [{"id": "default"}]}

    @app.post("/v1/recall")
    def recall():
        held.wait(30)
        return {"results": []}

    return app


def test_unresponsive_team_delays_no_answer_and_is_used_again_later(mine):
    held = threading.Event()
    with serve_app(slow_team(held)) as port:
        mine.know("acme", f"http://127.0.0.1:{port}", "t" * 43)
        mine.client.write(PARCELS)
        assert ask(mine, budget_ms=100)["channels"]["team:acme"]["state"] == "late"
        # More questions than are ever asked at once, of which none waits for another.
        for _ in range(8):
            assert ask(mine, budget_ms=100)["channels"]["team:acme"]["state"] == "late"
        held.set()
        end = time.monotonic() + 20
        while ask(mine, budget_ms=5000)["channels"]["team:acme"]["state"] != "ok":
            assert time.monotonic() < end


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nothing",
        b"[]",
        b'{"results": 1}',
        b'{"results": [{}]}',
        b'{"results": [{"id": "1", "content": "x", "kind": "dream"}]}',
    ],
)
def test_invalid_team_answer_degrades_only_the_team_channel(mine, answer):
    app = Flask("broken")
    app.add_url_rule("/v1/workspaces", "list", lambda: {"items": [{"id": "default"}]})
    app.add_url_rule("/v1/recall", "recall", lambda: Response(answer), methods=["POST"])
    with serve_app(app) as port:
        mine.know("acme", f"http://127.0.0.1:{port}", "t" * 43)
        own = mine.client.write(PARCELS)
        told = ask(mine)
    assert [hit["id"] for hit in told["results"]] == [own]
    assert told["channels"]["team:acme"]["state"] in ("cold", "late")
    assert told["degraded"]


def test_a_token_that_was_taken_back_is_said_and_recall_goes_on(joined, acme):
    own = joined.client.write(PARCELS)
    acme.settings.paths.renew_token()
    answer = ask(joined)
    assert [hit["id"] for hit in answer["results"]] == [own]
    assert answer["channels"]["team:acme"]["state"] == "cold"
    refused = joined.client.post("/v1/memories", {"content": STAGING, "to": "acme"})
    assert refused.status_code == 403
    assert "revoked or has expired" in refused.get_json()["detail"]
    assert ask(joined)["results"][0]["id"] == own


# ——— Writing.


def test_memories_are_stored_locally_unless_a_team_is_named(joined, acme):
    joined.client.write(PARCELS)
    assert acme.call("GET", "/v1/workspaces")["items"] == []
    stored = joined.client.post("/v1/memories", {"content": STAGING, "to": "acme"})
    assert stored.status_code == 201
    assert acme.call("GET", f"/v1/memories/{stored.get_json()['id']}")["content"] == STAGING
    assert joined.client.get(f"/v1/memories/{stored.get_json()['id']}").status_code == 404
    local = joined.client.post("/v1/memories", {"content": STAGING, "to": "local"})
    assert local.status_code == 201
    assert local.get_json()["id"] != stored.get_json()["id"]


def test_batches_facts_and_goals_may_be_a_teams(joined, acme):
    batch = joined.client.post("/v1/memories/batch", {"items": [{"content": STAGING}], "to": "acme"})
    assert [one["outcome"] for one in batch.get_json()["results"]] == ["created"]
    fact = joined.client.put("/v1/facts/staging/port number", {"value": 5433, "to": "acme"})
    assert fact.get_json()["value"] == 5433
    assert acme.call("GET", "/v1/facts/staging/port number")["value"] == 5433
    goal = joined.client.post("/v1/goals", {"title": "Move staging", "to": "acme"})
    assert goal.status_code == 201
    assert [one["title"] for one in acme.call("GET", "/v1/goals")["items"]] == ["Move staging"]
    assert joined.settings.paths.workspace_ids() == []


def test_team_memory_is_read_by_its_full_or_short_id(joined, acme):
    theirs = acme.remember(PARCELS)
    for name in (theirs, theirs[-8:]):
        assert joined.client.get(f"/v1/memories/{name}?from=acme").get_json()["content"] == PARCELS
    assert joined.client.get(f"/v1/memories/{'0' * 26}?from=acme").status_code == 404


def test_unknown_team_is_rejected_by_field(joined):
    refused = joined.client.post("/v1/memories", {"content": STAGING, "to": "acne"})
    assert refused.status_code == 422
    assert refused.get_json()["errors"][0]["loc"] == "to"
    assert "local, acme" in refused.get_json()["errors"][0]["msg"]


def test_rejection_by_a_team_is_reported_with_its_message(joined, acme):
    (acme.settings.home / "workspaces" / "default").mkdir(parents=True)
    (acme.settings.home / "workspaces" / "default" / "config.toml").write_text("read_only = true\n")
    refused = joined.client.post("/v1/memories", {"content": STAGING, "to": "acme"})
    assert refused.status_code == 409
    assert refused.get_json()["detail"].startswith("team acme: ")


def test_nothing_is_acknowledged_that_the_team_has_not_acknowledged(mine):
    mine.know("acme", f"http://127.0.0.1:{closed_port()}", "t" * 43)
    refused = mine.client.post("/v1/memories", {"content": STAGING, "to": "acme"})
    assert refused.status_code == 502
    assert "nothing was sent" in refused.get_json()["detail"]
    # A server that takes the request and goes away before it answers.
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def break_off():
            taken, _ = listening.accept()
            with contextlib.closing(taken):
                taken.recv(1 << 16)

        mine.know("acme", f"http://127.0.0.1:{listening.getsockname()[1]}", "t" * 43)
        thread = threading.Thread(target=break_off)
        thread.start()
        refused = mine.client.post("/v1/memories", {"content": STAGING, "to": "acme"})
        thread.join()
    assert refused.status_code == 502
    assert "may have carried out the request" in refused.get_json()["detail"]
    assert mine.settings.paths.workspace_ids() == []


def test_of_a_team_that_hangs_is_said_that_it_was_the_team(mine, monkeypatch):
    # Whoever gave this machine up first would take it for the one that broke off.
    assert CONNECT_TIMEOUT_S + link.ANSWER_S < ANSWER_TIMEOUT_S
    monkeypatch.setattr(link, "ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        mine.know("acme", f"http://127.0.0.1:{listening.getsockname()[1]}", "t" * 43)
        refused = mine.client.post("/v1/memories", {"content": STAGING, "to": "acme"})
    assert refused.status_code == 502
    assert "server of team acme closed the connection" in refused.get_json()["detail"]


@pytest.mark.parametrize(("status", "retry"), [(429, "7"), (503, "nonsense"), (429, None)])
def test_a_team_that_takes_nothing_now_says_when_to_come_again(mine, status, retry):
    app = Flask("busy")
    headers = {"Content-Type": "application/problem+json"} | ({"Retry-After": retry} if retry else {})

    @app.post("/v1/memories")
    def refuse():
        assert request.get_json() == {"content": STAGING}
        return Response(json.dumps({"title": "Busy", "detail": "slow down"}), status, headers)

    with serve_app(app) as port:
        mine.know("acme", f"http://127.0.0.1:{port}", "t" * 43)
        refused = mine.client.post("/v1/memories", {"content": STAGING, "to": "acme"})
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == ("7" if retry == "7" else "1")
    assert refused.get_json()["detail"] == "team acme: slow down"


def test_agents_whose_writes_are_switched_off_write_to_no_team(joined, acme):
    (joined.settings.home / "config.toml").write_text("write_tools = false\n")
    container = open_web(type(joined.settings)(home=joined.settings.home, embedding_model="hash", write_tools=False))
    client = CheckedClient(create_app(container), container.token)
    body = {"content": STAGING, "to": "acme"}
    assert client.call("POST", "/v1/memories", json=body, headers={"X-Reverie-Caller": "mcp"}).status_code == 409
    container.close()
    assert acme.call("GET", "/v1/workspaces")["items"] == []


# ——— Which teams are known.


def test_a_team_that_is_added_or_removed_counts_at_once(mine, acme):
    acme.remember(PARCELS)
    mine.client.write("Something else")
    assert "team:acme" not in ask(mine)["channels"]
    mine.know("acme", acme.url, acme.token)
    assert "team:acme" in ask(mine)["channels"]
    (mine.settings.paths.servers / "acme").unlink()
    assert "team:acme" not in ask(mine)["channels"]


def test_a_file_that_is_no_team_is_said_and_nothing_stops(joined, acme):
    acme.remember(PARCELS)
    (joined.settings.paths.servers / "broken").write_text("url = [")
    joined.client.write("Something else")
    assert ask(joined)["results"]
    flush_notes(joined.container)
    assert any("servers/broken" in one["message"] for one in joined.client.get("/v1/errors").get_json()["items"])


@pytest.mark.parametrize(
    ("name", "url", "token", "field"),
    [
        ("local", "https://acme.example", "secret", "name"),
        ("../acme", "https://acme.example", "secret", "name"),
        ("", "https://acme.example", "secret", "name"),
        ("acme", "http://acme.example", "secret", "url"),
        ("acme", "ftp://acme.example", "secret", "url"),
        ("acme", "https://", "secret", "url"),
        ("acme", "https://ann:word@acme.example", "secret", "url"),
        ("acme", "https://acme.example?x=1", "secret", "url"),
        ("acme", "https://acme.example:port", "secret", "url"),
        ("acme", "https://[acme.example", "secret", "url"),
        ("acme", "https://acme.example", "", "token"),
        ("acme", "https://acme.example", "two words", "token"),
        ("acme", "https://acme.example", "line\nX-Header: 1", "token"),
        ("acme", "https://acme.example", "tökén", "token"),
    ],
)
def test_invalid_team_is_rejected_by_field_without_its_token(name, url, token, field):
    with pytest.raises(InvalidField) as refused:
        check_server(name, url, token)
    assert refused.value.errors[0].loc == field
    assert not token or token not in str(refused.value)


@pytest.fixture
def command(mine, monkeypatch):
    monkeypatch.setenv("REVERIE_HOME", str(mine.settings.home))

    def run(*words, **options):
        return CliRunner().invoke(cli, list(words), **options)

    return run


def test_a_team_is_kept_once_it_took_the_token(mine, acme, command, tmp_path):
    acme.remember(PARCELS, workspace="shop")
    secret = tmp_path / "token"
    secret.write_text(f"{acme.token}\n")
    done = command("team", "add", "acme", acme.url, "--token-file", str(secret))
    assert (done.exit_code, done.stdout) == (0, "connected to acme; workspaces you can use: shop\n")
    [kept] = mine.teams()
    assert kept == TeamServer("acme", acme.url, acme.token)
    file = mine.settings.paths.servers / "acme"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    listed = command("team", "list")
    assert acme.url in listed.stdout
    assert acme.token not in listed.output
    assert acme.token not in repr(kept)
    assert command("team", "remove", "acme").exit_code == 0
    assert mine.teams() == []
    gone = command("team", "remove", "acme")
    assert (gone.exit_code, gone.stderr) == (1, "Error: There is no team acme. `reverie team list` shows the teams.\n")


def test_team_token_is_read_from_standard_input_and_a_wrong_token_rejected(mine, acme, command):
    refused = command("team", "add", "acme", acme.url, input="wrong\n")
    assert refused.exit_code == 1
    assert "does not accept your token" in refused.stderr
    assert mine.teams() == []
    assert command("team", "add", "acme", acme.url, input=f"{acme.token}\n").exit_code == 0


def test_a_server_that_does_not_answer_is_not_kept(mine, command):
    away = command("team", "add", "acme", f"http://127.0.0.1:{closed_port()}", input="secret\n")
    assert away.exit_code == 1
    assert "Cannot connect to" in away.stderr
    assert mine.teams() == []


def test_doctor_reports_whether_teams_answer_and_accept_the_token(joined, acme, command):
    def check_teams():
        checks = json.loads(command("--json", "doctor").stdout)["checks"]
        return [(one["state"], one["says"]) for one in checks if one["check"] == "teams"]

    acme.remember(PARCELS)
    assert check_teams() == [("ok", f"acme answers at {acme.url} and accepts your token")]
    acme.settings.paths.renew_token()
    joined.know("gone", f"http://127.0.0.1:{closed_port()}", "t" * 43)
    [refused, away] = check_teams()
    assert refused[0] == away[0] == "warn"
    assert "acme does not accept your token" in refused[1]
    assert "Cannot connect to the server of team gone" in away[1]


# ——— As agents and people see it.


def call_tool(home, name, **arguments):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    headers = {"Accept": "application/json"}
    result = home.client.call("POST", "/mcp", json=message, headers=headers).get_json()["result"]
    return result["content"][0]["text"], result.get("isError", False)


def test_mcp_tools_show_read_and_store_team_memories(joined, acme):
    said, _ = call_tool(joined, "remember_batch", items=[{"content": PARCELS}], to="acme")
    joined.client.write("Parcels are weighed at the gate")
    found, _ = call_tool(joined, "recall", query="parcels")
    [theirs] = [line for line in found.splitlines() if PARCELS in line]
    # An agent of the team's own is no agent of this person's.
    assert theirs.endswith(f"· team acme] agent noted: “{PARCELS}”")
    assert "team acme" not in next(line for line in found.splitlines() if "gate" in line)
    short = said.partition("[")[2].partition("]")[0]
    assert f"[{short} ·" in theirs
    whole, failed = call_tool(joined, "get", id=short, **{"from": "acme"})
    assert not failed
    assert f"> “{PARCELS}”" in whole
    prepared, _ = call_tool(joined, "prepare", message=QUESTION)
    assert PARCELS in prepared
    _, failed = call_tool(joined, "get", id=short)
    assert failed
    refused, failed = call_tool(joined, "set_fact", subject="a", attribute="b", value=1, to="acne")
    assert failed
    assert refused.startswith("to: must be one of local, acme")


def test_the_command_line_says_whose_it_is_and_stores_for_a_team(joined, acme, command, monkeypatch):
    with command_line.serve_app(joined.container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        stored = command("--json", "remember", PARCELS, "--to", "acme")
        assert stored.exit_code == 0, stored.output
        theirs = json.loads(stored.stdout)["id"]
        assert joined.settings.paths.workspace_ids() == []
        found = command("recall", "parcels over thirty kilos")
        assert f"  team acme  {theirs}" in found.stdout
        assert "team:acme ok" in found.stderr
        assert PARCELS in command("get", theirs, "--from", "acme").stdout
        assert command("facts", "set", "staging", "port", "5433", "--to", "acme").exit_code == 0
        refused = command("remember", PARCELS, "--to", "acne")
    assert refused.exit_code == 1
    assert "`reverie team add`" in refused.stderr
    # In the workspace of the project in whose folder the command was called.
    [project] = [one["id"] for one in acme.call("GET", "/v1/workspaces")["items"]]
    assert acme.call("GET", "/v1/facts/staging/port", workspace=project)["value"] == 5433
