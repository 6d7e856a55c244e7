"""The change log over HTTP: what one home gives another takes, and what anybody else sends is put aside."""

import pytest

from pipeline.features.sync.circle import Circle
from tests.fakes.homes import Home


@pytest.fixture
def other(tmp_path):
    made = Home(tmp_path / "other")
    yield made
    made.close()


def test_changes_from_a_paired_device_are_applied_once(client, container, other):
    written = client.write("The build uses port 8123", tags=["build"])
    client.patch(f"/v1/memories/{written}", {"pinned": True})
    other.sync.join(container.sync.invite())
    page = client.get("/v1/changes").get_json()
    assert [item["memory_id"] for item in page["items"]] == [written]
    merged = other.sync.take_in("default", page["items"])
    assert (merged.applied, merged.known, merged.put_aside) == (1, 0, [])
    assert other.get(written).pinned
    other.say("Deploys run on Fridays")
    body = {"items": other.sync.list_changes("default", 0, 100)}
    answer = client.post("/v1/changes", body).get_json()
    assert (answer["applied"], answer["known"], answer["put_aside"]) == (1, 1, [])
    assert client.post("/v1/changes", body).get_json()["applied"] == 0
    assert client.find_ids("deploys fridays")


def test_pages_follow_each_other_by_cursor(client):
    written = [client.write(f"memory {number}") for number in range(5)]
    seen, cursor = [], "0"
    while cursor is not None:
        page = client.get(f"/v1/changes?after={cursor}&limit=2").get_json()
        seen += [item["memory_id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert seen == written


def test_changes_from_an_unpaired_device_are_rejected_with_a_reason(client, other):
    other.say("The flumadiddle")
    items = other.sync.list_changes("default", 0, 100)
    answer = client.post("/v1/changes", {"items": [*items, None]}).get_json()
    assert answer["applied"] == 0
    assert [one["index"] for one in answer["put_aside"]] == [0, 1]
    assert "not paired" in answer["put_aside"][0]["reason"]
    assert client.get("/v1/workspaces").get_json()["items"] == []


def test_the_circles_token_opens_the_change_log_and_nothing_else(client, container):
    client.write("The build uses port 8123")
    container.sync.invite()
    shown = {"Authorization": f"Bearer {Circle(container.sync.peers).tokens[0]}"}
    assert client.call("GET", "/v1/changes", auth=False, headers=shown).status_code == 200
    assert client.call("GET", "/v1/memories", auth=False, headers=shown).status_code == 401
    assert client.call("GET", "/v1/changes", auth=False).status_code == 401
    wrong = {"Authorization": "Bearer sync-00"}
    assert client.call("GET", "/v1/changes", auth=False, headers=wrong).status_code == 401


def test_client_cannot_claim_the_sync_source(client):
    body = {"content": "forged", "source": "sync"}
    answer = client.post("/v1/memories", body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["loc"] == "source"
    assert client.put("/v1/facts/shop/port", {"value": 1, "source": "sync"}).status_code == 422
