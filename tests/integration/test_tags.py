"""Tags are folded at every entry point, and derived for memories that are stored without any."""

import json

import pytest

from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.dashboard import sign_in

MCP_ACCEPT = {"Accept": "application/json, text/event-stream"}
# A tag as people and agents write it, and as it is stored.
TAGS = {
    "Auth": "auth",
    "billing service": "billing-service",
    "rate_limit": "rate-limit",
    "Größe": "grosse",
    "été": "ete",
}


def read_tags(client, memory_id):
    return client.get(f"/v1/memories/{memory_id}").get_json()["tags"]


@pytest.mark.parametrize(("tag", "stored"), TAGS.items())
def test_one_tag_fails_no_request_over_http(client, tag, stored):
    receipt = client.post("/v1/memories", {"content": "We use pnpm", "tags": [tag, stored]}).get_json()
    assert receipt["renamed_tags"] == {tag: stored}
    assert read_tags(client, receipt["id"]) == [stored]
    items = [{"content": "Jobs run on Celery", "tags": [tag]}, {"content": "Tea is at four", "tags": ["tea"]}]
    first, second = client.post("/v1/memories/batch", {"items": items}).get_json()["results"]
    assert (first["renamed_tags"], "renamed_tags" in second) == ({tag: stored}, False)
    assert client.patch(f"/v1/memories/{second['id']}", {"tags": [tag]}).get_json()["tags"] == [stored]
    listed = client.get("/v1/memories", query_string={"tag": tag}).get_json()["items"]
    assert {memory["id"] for memory in listed} == {receipt["id"], first["id"], second["id"]}


def test_an_agent_sees_the_stored_tags_of_a_batch(client):
    items = [{"content": "We use pnpm", "kind": "decision", "tags": ["Auth"]}, {"content": "Jobs run on Celery"}]
    call = {"name": "remember_batch", "arguments": {"items": items}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    result = client.post("/mcp", body, headers=MCP_ACCEPT).get_json()["result"]
    assert not result.get("isError")
    first, second = result["content"][0]["text"].splitlines()
    assert "tags stored: Auth as auth" in first
    assert "tags" not in second


def test_the_command_line_shows_renamed_tags(container, client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        assert (
            "; tags stored: Billing Service as billing-service"
            in run("remember", "Tea", "--tag", "Billing Service").stdout
        )
        memory_id = run_json("remember", "Cake", "--tag", "cake")["id"]
        assert "changed" in run("edit", memory_id, "--tag", "Rate_Limit").stdout
        assert "; tags stored: Rate_Limit as rate-limit" in run("edit", memory_id, "--tag", "Rate_Limit").stdout
        assert read_tags(client, memory_id) == ["rate-limit"]
        file = tmp_path / "memories.jsonl"
        file.write_text(json.dumps({"content": "Imported tea", "tags": ["Green Tea"]}) + "\n")
        run("import", "jsonl", str(file))
    [imported] = [item for item in client.get("/v1/memories").get_json()["items"] if item["content"] == "Imported tea"]
    assert "green-tea" in imported["tags"]


def test_a_tag_in_the_dashboard_is_folded(client):
    memory_id = client.write("Two lines", tags=["ops"])
    sign_in(client).submit(
        f"/w/default/memories/{memory_id}", "Save", content="Two lines", tags="OPS, Rate_Limit", importance="0.5"
    )
    assert read_tags(client, memory_id) == ["ops", "rate-limit"]


def test_tags_of_an_untagged_memory_are_derived_from_names_and_kind(client, digested):
    derived = client.write("We use PostgreSQL 16 and Redis for the queue", kind="decision")
    plain = client.write("Tea is served at four")
    tagged = client.write("We use PostgreSQL 17 for billing", kind="decision", tags=["db"])
    edited = client.write("We left PostgreSQL 12", kind="decision", tags=["db"])
    client.patch(f"/v1/memories/{edited}", {"tags": []})
    state = client.get(f"/v1/memories/{derived}").headers["ETag"]
    digested()
    tags = read_tags(client, derived)
    assert "decision" in tags
    assert any(tag.startswith("postgres") for tag in tags)
    assert len(tags) <= 3
    assert [read_tags(client, memory_id) for memory_id in (plain, tagged, edited)] == [[], ["db"], []]
    found = client.post("/v1/recall", {"query": "queue", "tags": ["decision"]}).get_json()["results"]
    assert [hit["id"] for hit in found] == [derived]
    assert client.patch(f"/v1/memories/{derived}", {"importance": 0.9}, headers={"If-Match": state}).status_code == 200
