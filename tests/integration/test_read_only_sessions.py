"""A read-only session changes nothing that is stored, through whichever entry it comes."""

import json
from contextlib import suppress

import pytest
from flask import Flask
from hypothesis import HealthCheck, example, given, settings, strategies as st
from werkzeug.datastructures import Headers

from config.paths import READ_ONLY_HEADER
from pipeline.kernel.records.people import HOME_OWNER
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, fit_intents, flush_notes, open_web
from tests.integration.test_api import BODIES
from tests.support.served import serve_app
from web.http.app import APIS, create_app
from web.http.client import Client
from web.mcp.full_tools import PROFILES
from web.mcp.in_process import InProcessServer, Sender, route_operations
from web.mcp.offered_tools import Switches, offer_tools
from web.mcp.rendering import ShownIds
from web.mcp.tool import ToolCall, ToolFailed, call_tool, find_tool

READ_ONLY = {READ_ONLY_HEADER: "true"}
FACT = "The billing service listens on port 8123"
LESSON = {
    "content": "Never run terraform destroy in production",
    "kind": "lesson",
    "details": {"severity": "critical", "rule": "Never run terraform destroy", "applies_when": "terraform destroy"},
}
# The words of a person that store, change, delete or silence, and questions.
PROMPTS = (
    "Which port does billing use?",
    "Remember that: we deploy on Fridays",
    "Forget that the billing service listens on port 8123",
    "Don't remember this session",
    "Don't remember this",
    "You may remember this again",
    "From now on always use pnpm",
    "Block this from now on",
    "We decided to use Postgres because SQLite locks",
    "terraform destroy",
    "",
)
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd")
SOME = {
    "/v1/memories": {"content": "A new memory"},
    "/v1/memories/batch": {"items": [{"content": "A new memory of a batch"}]},
    "/v1/goals": {"title": "A goal"},
    "/v1/incognito": {"session_id": "s1", "on": True},
    "/v1/sessions/{session_id}/messages": {"messages": [{"role": "user", "content": "We use pnpm"}]},
    "/v1/recall": {"query": "billing port", "session_id": "s1"},
    "/v1/prepare": {"message": "terraform destroy", "session_id": "s1"},
    "/v1/memories/{memory_id}": {"content": "Changed", "pinned": True},
    "/v1/facts/{subject}/{attribute}": {"value": "1"},
    "/v1/sources/{source}/items": {"items": [{"key": "a", "digest": "1", "memories": [{"content": "Of a source"}]}]},
    "/v1/hook-runs": {"event": "mcp:recall", "host": "probe", "took_ms": 1, "outcome": "told", "text": FACT},
}
# Sync between devices is no part of a session: it writes its log when a device first asks for it. The client of these
# tests reads no streams.
LEFT_OUT = {"/mcp", "/v1/changes", "/v1/events"}
ROUTES = sorted((e.method, e.path) for api in APIS for e in api.endpoints if e.path not in LEFT_OUT)
ARGUMENTS = {
    "query": "billing port",
    "message": "terraform destroy",
    "items": [{"content": "A memory by a tool"}],
    "subject": "billing",
    "attribute": "port",
    "value": "9",
    "title": "A goal by a tool",
    "ask": "friction",
    "kind": "supports",
    "around": "billing",
    "followed": True,
    "content": "Changed by a tool",
    "session_id": "s1",
    "action": "accept",
    "run": "decay",
    "hard": True,
    "pinned": True,
}

requests = st.tuples(st.just("http"), st.sampled_from(ROUTES))
hooks = st.tuples(
    st.sampled_from(["header", "plan"]),
    st.sampled_from(EVENTS),
    st.sampled_from(PROMPTS),
    st.sampled_from(["s1", "s2"]),
)
tools = st.tuples(
    st.sampled_from(["/mcp", "stdio"]),
    st.sampled_from([tool.name for tool in PROFILES["full"] if tool.name != "index"]),
    st.sets(st.sampled_from(sorted(ARGUMENTS))),
)


class House:
    """A server with some memories, its routes, its hooks and its tools."""

    def __init__(self, container, app: Flask, port: int) -> None:
        self.container = container
        self.client = CheckedClient(app, container.token)
        self.fact = self.client.write(FACT)
        self.lesson = self.client.write(**LESSON)
        self.client.put("/v1/facts/billing/port", {"value": "8123"})
        self.run_hook("UserPromptSubmit", PROMPTS[0], "s1")
        self.run_hook("PostToolUse", "", "s1")
        self.run_hook("Stop", "", "s1")
        sender = Sender(HOME_OWNER, Headers(READ_ONLY), "a-request")
        self.servers = {
            "/mcp": InProcessServer(app, route_operations(APIS), sender),
            "stdio": Client(f"http://127.0.0.1:{port}", container.token, caller="mcp", read_only=True),
        }

    def run_hook(self, name, prompt, session, headers=None, **fields):
        tool = {"tool_name": "Bash", "tool_input": {"command": f"make {prompt}"}, "tool_response": {}}
        body = {"hook_event_name": name, "session_id": session, "cwd": "", "prompt": prompt, "source": "startup"}
        said = [{"role": "user", "content": prompt}, {"role": "assistant", "content": "Done"}]
        body |= tool | {"said": said} | fields
        return self.client.post("/hooks/claude-code", body, headers=headers or {}).get_data(as_text=True)

    def do(self, action):
        match action:
            case "http", (method, path):
                asked = path.format_map(Filling(memory_id=self.fact, goal_id=self.fact, session_id="s1"))
                body = {"json": SOME.get(path, BODIES.get(path, {}))} if method in ("POST", "PATCH", "PUT") else {}
                return self.client.call(method, asked, headers=READ_ONLY, **body)
            case "header", name, prompt, session:
                return self.run_hook(name, prompt, session, READ_ONLY)
            case "plan", name, prompt, session:
                return self.run_hook(name, prompt, session, permission_mode="plan")
            case way, name, names:
                return self.call_tool(way, name, {one: ARGUMENTS[one] for one in names})
        raise AssertionError(action)

    def call_tool(self, way, name, arguments):
        tool = find_tool(PROFILES["full"], name)
        arguments = {one: value for one, value in arguments.items() if one in tool.takes}
        if "id" in tool.takes:
            arguments["id"] = self.fact
        with suppress(ToolFailed):
            return call_tool(tool, ToolCall(self.servers[way], ShownIds(), "probe", "", arguments, "s1"))

    def stored(self):
        """Return every row of every workspace, and the runs of hooks."""
        self.container.feedback.flush_usage(self.container.workspace("default"))
        flush_notes(self.container)
        rows = {}
        for workspace_id in self.container.settings.paths.workspace_ids():
            with self.container.databases.get(workspace_id).read() as db:
                rows |= {(workspace_id, name): dump(db, name) for name in list_tables(db)}
        with self.container.stores.operations.tables.write() as db:
            rows["", "hook_run"] = dump(db, "hook_run")
        return rows


def list_changed(before, after):
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


class Filling(dict):
    def __missing__(self, name):
        return "unknown"


def list_tables(db):
    found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return [row[0] for row in found.fetchall()]


def dump(db, table):
    return sorted(map(repr, map(tuple, db.execute(f"SELECT * FROM {table}").fetchall())))


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    container = open_web(fast_settings(tmp_path_factory.mktemp("read-only") / "home"))
    app = create_app(container)
    with serve_app(app) as port:
        home = House(container, app, port)
        fit_intents(container)
        yield home
        home.servers["stdio"].close()
    container.close()


@pytest.mark.files
@settings(suppress_health_check=list(HealthCheck), max_examples=40)
@given(st.lists(requests | hooks | tools, min_size=1, max_size=12))
@example([("http", route) for route in ROUTES])
@example([(way, name, prompt, "s1") for way in ("header", "plan") for name in EVENTS for prompt in PROMPTS])
@example([(way, tool.name, set(ARGUMENTS)) for way in ("/mcp", "stdio") for tool in PROFILES["full"][:20]])
def test_nothing_is_stored_by_a_read_only_session(house, actions):
    before = house.stored()
    for action in actions:
        house.do(action)
        assert list_changed(before, house.stored()) == [], action


def test_the_same_calls_do_store_in_another_session(home, container, app):
    """The property above would also hold for calls that never do anything."""
    with serve_app(app) as port:
        stored = House(container, app, port)
        before = stored.stored()
        stored.run_hook("UserPromptSubmit", PROMPTS[1], "s3")
        stored.run_hook("PostToolUse", "", "s3")
        stored.servers["stdio"].close()
    changed = {name for _, name in list_changed(before, stored.stored())}
    assert {"memory", "action", "agent_session", "hook_run"} <= changed


@pytest.mark.parametrize("way", ["header", "plan"])
def test_a_read_only_session_is_shown_memories(house, way):
    assert FACT in house.do((way, "UserPromptSubmit", PROMPTS[0], "s9"))


def test_read_only_request_recalls_and_its_write_is_rejected(house):
    found = house.client.post("/v1/recall", {"query": "billing port"}, headers=READ_ONLY).get_json()
    assert house.fact in [hit["id"] for hit in found["results"]]
    refused = house.client.post("/v1/memories", {"content": "x"}, headers=READ_ONLY)
    assert refused.status_code == 409
    assert "read-only" in refused.get_json()["detail"]


def test_a_command_not_to_remember_says_that_it_must_be_repeated(house):
    assert "must repeat" in house.do(("plan", "UserPromptSubmit", "Don't remember this session", "s1"))


@pytest.mark.parametrize("value", ["", "maybe"])
def test_an_unknown_word_in_the_header_is_named(client, value):
    answer = client.get("/v1/switches", headers={READ_ONLY_HEADER: value})
    assert answer.status_code == 400
    assert READ_ONLY_HEADER in answer.get_json()["detail"]


def test_messages_of_plan_mode_are_not_stored_when_it_ends(client, container, tmp_path):
    """Accepting a plan changes the mode in the middle of a turn."""
    transcript = tmp_path / "projects" / "slug" / "s1.jsonl"
    transcript.parent.mkdir(parents=True)
    lines = []
    for number, (text, mode) in enumerate((("Ports are odd", "plan"), ("Builds run at night", "default"))):
        for role, content in (("user", text), ("assistant", f"Noted: {text}")):
            more = {"permissionMode": mode} if role == "user" else {}
            message = {"role": role, "content": content}
            record = {"type": role, "uuid": f"{role}{number}", "sessionId": "s1", "message": message, **more}
            lines.append(json.dumps(record))
    transcript.write_text("\n".join(lines) + "\n")
    body = {"session_id": "s1", "cwd": "", "transcript_path": str(transcript), "permission_mode": "acceptEdits"}
    client.post("/hooks/claude-code", body | {"hook_event_name": "Stop"})
    flush_notes(container)
    with container.workspace("default").database.read() as db:
        said = [row[0] for row in db.execute("SELECT content FROM turn ORDER BY seq")]
    assert said == ["Builds run at night", "Noted: Builds run at night"]


def test_tools_that_only_write_are_not_listed():
    offered = offer_tools(PROFILES["full"], Switches(may_write=False))
    names = {tool.name for tool in offered}
    assert {"prepare", "recall", "get", "goals", "overview", "candidates"} <= names
    assert names.isdisjoint(
        {"remember_batch", "set_fact", "forget", "lesson_outcome", "edit", "restore", "link", "index"}
    )
    assert {tool.effect for tool in offered} == {"reads"}
    [goals] = [tool for tool in offered if tool.name == "goals"]
    assert set(goals.takes) == {"status", "session_id"}
