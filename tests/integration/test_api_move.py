"""A memory goes to another workspace as it is: there first, then to the archive here."""

import pytest

from pipeline.features.memories import usecases as memories
from pipeline.kernel.errors import StoreFull
from pipeline.write import move

TEXT = "We chose SQLite over Redis for the job queue"


def moved(client, memory_id, target):
    answer = client.post(f"/v1/memories/{memory_id}/move", json={"workspace": target})
    assert answer.status_code == 200, answer.get_json()
    return answer.get_json()


def read(client, memory_id, workspace="default"):
    return client.get(f"/v1/memories/{memory_id}", headers={"X-Reverie-Workspace": workspace}).get_json()


def test_it_arrives_with_all_that_is_its_own(client):
    given = {"kind": "decision", "tags": ["queue"], "importance": 0.9, "metadata": {"by": "ann"}, "source": "import"}
    memory_id = client.write(TEXT, **given)
    client.patch(f"/v1/memories/{memory_id}", json={"content": f"{TEXT} in spring", "pinned": True})
    before = read(client, memory_id)
    assert moved(client, memory_id, "work") == {"id": memory_id, "outcome": "created"}
    after = read(client, memory_id, "work")
    same = (
        "content",
        "kind",
        "tags",
        "importance",
        "metadata",
        "source",
        "trust",
        "pinned",
        "occurred_at",
        "created_at",
    )
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert [entry["event"] for entry in after["history"]] == ["edited", "moved"]
    assert after["history"][-1]["detail"] == {"from": "default"}
    left = read(client, memory_id)
    assert left["archived_at"] is not None
    assert left["history"][-1]["detail"] == {"to": "work", "as": memory_id}
    found = client.post("/v1/recall", json={"query": "job queue"}, headers={"X-Reverie-Workspace": "work"}).get_json()
    assert [hit["id"] for hit in found["results"]] == [memory_id]
    assert client.post("/v1/recall", json={"query": "job queue"}).get_json()["results"] == []


def test_memory_moved_to_a_workspace_with_the_same_text_is_merged(client):
    memory_id = client.write(TEXT)
    there = client.post("/v1/memories", json={"content": TEXT}, headers={"X-Reverie-Workspace": "work"}).get_json()
    assert moved(client, memory_id, "work") == {"id": there["id"], "outcome": "merged", "duplicate_of": there["id"]}
    assert read(client, memory_id)["archived_at"] is not None


def test_a_memory_may_come_back(client):
    memory_id = client.write(TEXT)
    moved(client, memory_id, "work")
    back = client.post(
        f"/v1/memories/{memory_id}/move", json={"workspace": "default"}, headers={"X-Reverie-Workspace": "work"}
    ).get_json()
    assert back["id"] != memory_id, "the id is that of the archived one"
    assert read(client, back["id"])["content"] == TEXT


def test_a_fact_takes_its_place_among_the_values_there(client):
    client.put("/v1/facts/staging/port", json={"value": 5433, "valid_from": "2026-01-01T00:00:00Z"})
    work = {"X-Reverie-Workspace": "work"}
    client.put("/v1/facts/staging/port", json={"value": 6543, "valid_from": "2026-06-01T00:00:00Z"}, headers=work)
    memory_id = client.get("/v1/facts/staging/port").get_json()["id"]
    moved(client, memory_id, "work")
    assert client.get("/v1/facts/staging/port", headers=work).get_json()["value"] == 6543
    then = client.get("/v1/facts/staging/port?as_of=2026-02-01T00:00:00Z", headers=work).get_json()
    assert then["value"] == 5433


def test_invalid_move_is_rejected_with_a_reason(client):
    memory_id = client.write(TEXT)
    path = f"/v1/memories/{memory_id}/move"
    assert client.post(path, json={"workspace": "default"}).status_code == 409
    assert client.post(path, json={"workspace": "../x"}).get_json()["errors"][0]["loc"] == "workspace"
    assert client.post("/v1/memories/nobody/move", json={"workspace": "work"}).status_code == 404
    client.delete(f"/v1/memories/{memory_id}")
    archived = client.post(path, json={"workspace": "work"})
    assert archived.status_code == 409
    assert "Restore it first" in archived.get_json()["detail"]
    assert [one["id"] for one in client.get("/v1/workspaces").get_json()["items"]] == ["default"]


def test_interrupted_move_leaves_both_copies_and_can_be_repeated(container, client, monkeypatch):
    memory_id = client.write(TEXT)

    def fail(*_given):
        raise StoreFull("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(move, "archive_memory", fail)
        with pytest.raises(StoreFull):
            memories.move(container.workspace("default"), container.workspace("work"), memory_id)
    assert read(client, memory_id)["archived_at"] is None
    assert read(client, memory_id, "work")["archived_at"] is None
    assert moved(client, memory_id, "work")["outcome"] == "merged"
    assert read(client, memory_id)["archived_at"] is not None
