"""The tools give equal answers in the server and over the HTTP API: only the way to the endpoints differs."""

import re
from dataclasses import replace

import pytest
from flask import Flask
from werkzeug.datastructures import Headers

from pipeline.kernel.records.people import HOME_OWNER
from tests.support.served import serve_app
from web.http.app import APIS
from web.http.client import Client
from web.mcp.full_tools import PROFILES
from web.mcp.in_process import InProcessServer, Sender, route_operations
from web.mcp.rendering import ShownIds
from web.mcp.tool import ToolCall, ToolFailed, call_tool, find_tool

DECISION = {"content": "Staging listens on port 5433, says @anna in infra/ports.tf", "kind": "decision"}
CALLS = [
    ("recall", {"query": "staging port"}),
    ("recall", {"query": ""}),
    ("prepare", {"message": "Which port does staging use?"}),
    ("get", {"id": "MEMORY"}),
    ("set_fact", {"subject": "staging", "attribute": "port", "value": 5433}),
    ("set_fact", {"subject": "staging", "attribute": "port", "value": 5434, "valid_from": "2020-01-01"}),
    ("fact_as_of", {"subject": "staging", "attribute": "port"}),
    ("fact_as_of", {"subject": "staging", "history": True}),
    ("goals", {}),
    ("overview", {}),
    ("edit", {"id": "MEMORY", "tags": ["ports"]}),
    ("list", {"kind": "decision", "limit": 5}),
    ("why", {"query": "staging port", "id": "MEMORY"}),
    ("duplicates", {}),
    ("candidates", {"limit": 3}),
    ("audit", {}),
    ("incognito", {"session_id": "s1", "on": False}),
    ("incognito", {}),
    ("jobs", {}),
    ("entities", {"q": "anna"}),
    ("arcs", {"status": "active"}),
    ("sessions", {}),
    ("history", {"ask": "friction"}),
    ("history", {"ask": "fix", "about": "bash: nothing: command not found"}),
    ("restore", {"id": "MEMORY"}),
]
REFUSED = [
    ("get", {"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
    ("get", {"id": "MEMORY", "from": "acme"}),
    ("recall", {"query": "x", "since": "yesterdayish"}),
    ("recall", {"query": "x" * 9000}),
    ("remember_batch", {"items": [{"content": ""}, {"content": "x", "importance": 7}]}),
    ("edit", {"id": "MEMORY", "importance": 7}),
    ("set_fact", {"subject": "a" * 3000, "attribute": "port", "value": 1}),
    ("goals", {"id": "MEMORY", "title": "A memory that is no goal"}),
    ("jobs", {"run": "fly"}),
    ("sessions", {"id": "nobody"}),
    ("history", {"ask": "how"}),
    ("entities", {"id": "nothing"}),
    ("graph", {"around": "nothing"}),
    ("list", {"cursor": "nonsense"}),
]


@pytest.fixture
def servers(app, container):
    sender = Sender(HOME_OWNER, Headers(), "a-request")
    with (
        serve_app(app) as port,
        Client(f"http://127.0.0.1:{port}", container.token, caller="mcp") as over_http,
    ):
        yield InProcessServer(app, route_operations(APIS), sender), over_http


@pytest.fixture
def memory_id(servers):
    return servers[0].call("POST", "/v1/memories", DECISION)["id"]


def answer(server, name, arguments, memory_id):
    arguments = {key: memory_id if value == "MEMORY" else value for key, value in arguments.items()}
    tool = find_tool(PROFILES["full"], name)
    try:
        result = call_tool(tool, ToolCall(server, ShownIds(), "probe", "", arguments, "s2"))
    except ToolFailed as refusal:
        return str(refusal)
    # The times of the next runs of jobs move on between two calls.
    return replace(result, text=re.sub(r"next [0-9TZ:.-]+", "next run", result.text))


def test_every_tool_answers_alike_in_the_server_and_over_http(servers, memory_id):
    inside, over_http = servers
    # The first call of a tool that sets a value differs from the second, wherever it is run.
    for name, arguments in CALLS:
        answer(inside, name, arguments, memory_id)
    for name, arguments in CALLS:
        first = answer(inside, name, arguments, memory_id)
        assert not isinstance(first, str), f"{name} failed: {first}"
        assert first == answer(over_http, name, arguments, memory_id), name


def test_every_refusal_reads_alike_in_the_server_and_over_http(servers, memory_id):
    inside, over_http = servers
    for name, arguments in REFUSED:
        first = answer(inside, name, arguments, memory_id)
        assert first == answer(over_http, name, arguments, memory_id), name
        assert isinstance(first, str) or name in ("get", "goals", "list", "graph", "entities", "sessions"), name


def test_a_failure_of_the_server_reads_alike_and_is_recorded(servers, container, monkeypatch):
    monkeypatch.setattr("web.features.recall.http.recall_beside_teams", lambda *_: 1 / 0)
    texts = {answer(server, "recall", {"query": "x"}, "") for server in servers}
    assert len(texts) == 1
    recorded = [
        item for item in container.operations.errors(workspace=None, limit=10) if "ZeroDivisionError" in item.message
    ]
    assert len(recorded) == 2


def test_a_tool_of_the_server_sends_no_second_request(servers, memory_id, monkeypatch):
    monkeypatch.setattr(Flask, "wsgi_app", lambda *_: pytest.fail("an endpoint was asked over WSGI"))
    assert DECISION["content"] in answer(servers[0], "get", {"id": "MEMORY"}, memory_id).text
