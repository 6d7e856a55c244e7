"""The HTTP API as a whole: who may enter, how errors look, what the server says of itself."""

import sqlite3
from functools import partial

import pytest
from openapi_spec_validator import validate

from pipeline.bootstrap import web as bootstrap
from pipeline.kernel.store.database import WriterProfile
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import open_web
from web.http.app import create_app
from web.http.lazy_app import MAX_BODY_BYTES

ULID_OF_NOTHING = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
EXAMPLE_VALUES = {"memory_id": ULID_OF_NOTHING}


# What makes a workspace when the home's owner asks for it, and what is about none.
MAKES = {
    ("POST", "/v1/memories"),
    ("POST", "/v1/memories/batch"),
    ("POST", "/v1/goals"),
    ("POST", "/v1/turns"),
    ("POST", "/v1/incognito"),
    ("POST", "/v1/sources/{source}/forget"),
    ("PUT", "/v1/facts/{subject}/{attribute}"),
    ("PUT", "/v1/sources/{source}/items"),
    # A reader may wait for the first memory.
    ("GET", "/v1/events"),
    ("POST", "/hooks/claude-code"),
    ("POST", "/hooks/codex"),
    ("POST", "/hooks/gemini"),
    ("POST", "/hooks/qwen-code"),
    ("POST", "/hooks/copilot"),
    ("POST", "/hooks/cursor"),
    ("POST", "/hooks/antigravity"),
    ("POST", "/hooks/opencode"),
    ("POST", "/hooks/kilo"),
    ("POST", "/hooks/pi"),
    ("POST", "/hooks/cline"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    # The switches of a workspace apply before anything is written there.
    ("GET", "/v1/switches"),
    ("POST", "/v1/hook-runs"),
    ("POST", "/v1/changes"),
    ("PUT", "/v1/people/{person_id}/grants/{workspace}"),
}


def documented_operations(client):
    return [(m.upper(), path) for path, methods in client.document["paths"].items() for m in methods]


def fill_path(path):
    return path.replace("{memory_id}", ULID_OF_NOTHING).replace("{", "").replace("}", "")


def test_healthz_requires_no_token(client):
    answer = client.get("/healthz", auth=False)
    assert answer.status_code == 200
    assert answer.get_json()["encoder"] == "ready"


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic dXNlcjpwYXNz", "Bearer \udcff\udcfe"])
def test_every_other_route_refuses_a_missing_or_wrong_token(shared, header):
    headers = {"Authorization": header.encode("utf-8", "surrogateescape").decode("latin-1")} if header else {}
    for method, path in documented_operations(shared):
        if path == "/healthz":
            continue
        answer = shared.call(method, fill_path(path), auth=False, headers=headers)
        assert answer.status_code == 401, path
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:7077", "127.0.0.1@evil.example", "[::1", ""])
def test_a_foreign_host_is_refused_before_the_token_is_looked_at(shared, host):
    assert shared.get("/healthz", headers={"Host": host}).status_code == 403
    assert shared.get("/v1/memories", auth=False, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:7077", "localhost:9999", "LOCALHOST", "[::1]:7077"])
def test_loopback_names_are_ours_at_any_port(shared, host):
    assert shared.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://127.0.0.1:8080", "file://", "http://[", ""])
def test_a_foreign_origin_is_refused(shared, origin):
    assert shared.get("/healthz", headers={"Origin": origin}).status_code == 403


def test_our_own_pages_are_welcome(shared):
    assert shared.get("/healthz", headers={"Origin": "http://127.0.0.1:7077"}).status_code == 200


@pytest.mark.parametrize("workspace", ["", "Upper", "-dash", "a/b", "../up", "a" * 65, "späße", "a b", "."])
def test_a_workspace_header_that_cannot_be_an_id_is_malformed(shared, workspace):
    name = workspace.encode().decode("latin-1")
    assert shared.get("/v1/memories", workspace=name).status_code == 400
    assert shared.post("/v1/memories", {"content": "text"}, workspace=name).status_code == 400


@pytest.mark.parametrize("workspace", ["a", "0", "a" * 64, "my.project_1-x"])
def test_a_workspace_is_made_by_its_first_write(client, container, workspace):
    assert client.get("/v1/memories", workspace=workspace).status_code == 404
    client.write("The first memory", workspace=workspace)
    assert len(client.get("/v1/memories", workspace=workspace).get_json()["items"]) == 1
    assert container.settings.paths.workspace_ids() == [workspace]


@pytest.mark.parametrize("content", ["\u200b\u2060", "\x00\x07"])
def test_a_refused_write_makes_no_workspace(client, container, content):
    assert client.post("/v1/memories", {"content": content}).status_code == 422
    assert client.post("/v1/memories/batch", {"items": [{"content": content}]}).status_code == 422
    assert container.settings.paths.workspace_ids() == []


# The least that each call takes.
BODIES = {
    "/v1/sources/{source}/forget": {"keys": ["unknown"]},
    "/v1/recall": {"query": "anything"},
    "/v1/recall/why": {"query": "anything", "id": "unknown"},
    "/v1/prepare": {"message": "anything"},
    "/v1/memories/{memory_id}/edges": {"kind": "supports", "to": "unknown"},
    "/v1/memories/{memory_id}/move": {"workspace": "elsewhere"},
    "/v1/entities/{entity_id}/merge": {"into": "unknown"},
    "/v1/entities/{entity_id}/split": {"alias": "unknown"},
    "/v1/lessons/surfaces/{surface_id}": {"followed": True},
    "/v1/conflicts/{kept_id}/{other_id}": {"action": "keep"},
    "/v1/workspaces/move": {"workspace": "elsewhere"},
    "/v1/duplicates/{pair_id}": {"action": "keep"},
    "/v1/candidates/{memory_id}": {"action": "accept"},
    "/v1/sessions/{session_id}": {"name": "any"},
}
QUERIES = {
    ("DELETE", "/v1/memories/{memory_id}/edges"): "?kind=supports&to=unknown",
    ("GET", "/v1/graph"): "?around=unknown",
    ("GET", "/v1/history"): "?ask=friction",
    ("GET", "/v1/sessions/search"): "?query=port",
}


def test_a_workspace_that_does_not_exist_is_not_found_anywhere(client):
    for method, path in documented_operations(client):
        answers = client.document["paths"][path][method.lower()]["responses"]
        if "404" not in answers or (method, path) in MAKES:
            continue
        body = {"json": BODIES.get(path, {})} if method in ("POST", "PATCH") else {}
        asked = fill_path(path) + QUERIES.get((method, path), "")
        assert client.call(method, asked, workspace="nowhere", **body).status_code == 404, (method, path)


def test_workspaces_do_not_see_each_other(client):
    client.write("Port 8123 belongs to billing", workspace="one")
    client.write("Nothing of interest", workspace="two")
    assert client.find_ids("billing port", workspace="two") == []


def test_an_unknown_path_and_a_wrong_method_are_problems(shared):
    assert shared.get("/v1/nothing").status_code == 404
    answer = shared.delete("/v1/recall")
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"content": "x"', b"\x00", b'{"content": "\\ud800"}'])
def test_a_body_that_is_not_json_is_malformed(shared, body):
    for path in ("/v1/memories", "/v1/memories/batch", "/v1/recall"):
        assert shared.post(path, data=body).status_code == 400


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"null", b"7"])
def test_json_that_is_no_object_is_an_invalid_body(shared, body):
    for path in ("/v1/memories", "/v1/memories/batch", "/v1/recall"):
        answer = shared.post(path, data=body)
        assert answer.status_code == 422
        assert answer.get_json()["errors"][0]["loc"] == "body"


def test_a_body_over_the_limit_is_too_large(shared):
    answer = shared.post("/v1/memories", data=b'{"content": "' + b"x" * MAX_BODY_BYTES + b'"}')
    assert answer.status_code == 413


def test_store_locked_by_another_process_answers_503(home, monkeypatch):
    monkeypatch.setattr(bootstrap, "WriterProfile", partial(WriterProfile, busy_timeout_ms=10))
    container = open_web(home)
    client = CheckedClient(create_app(container), container.token)
    written = client.write("A memory from before")
    other = sqlite3.connect(home.paths.workspace("default").events, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        for method, path, body in (
            ("POST", "/v1/memories", {"content": "Another one"}),
            ("POST", "/v1/memories/batch", {"items": [{"content": "Another one"}]}),
            ("PATCH", f"/v1/memories/{written}", {"pinned": True}),
            ("POST", "/v1/queue/retry", {}),
        ):
            answer = client.call(method, path, json=body)
            assert answer.status_code == 503, path
            assert answer.headers["Retry-After"] == "1"
        assert client.delete(f"/v1/memories/{written}").status_code == 503
        # Who only reads waits for nobody.
        assert client.find_ids("memory before") == [written]
    finally:
        other.close()
        container.close()


def test_the_server_describes_itself_in_valid_openapi(shared):
    validate(shared.document)
    assert shared.document["openapi"].startswith("3.1")


def test_the_document_names_every_route_and_no_other(app, client):
    served = {
        (method, str(rule.rule).replace("<", "{").replace(">", "}"))
        for rule in app.url_map.iter_rules()
        # Pages are for people.
        if not rule.endpoint.startswith("dashboard.")
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert served - set(documented_operations(client)) == {("GET", "/openapi.json")}
    assert set(documented_operations(client)) <= served


def test_no_operation_id_is_used_twice(shared):
    ids = [o["operationId"] for methods in shared.document["paths"].values() for o in methods.values()]
    assert len(ids) == len(set(ids))
