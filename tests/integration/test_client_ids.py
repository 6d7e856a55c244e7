"""A write with an id of its client: sent again, it returns the first receipt and changes nothing."""

import time

import pytest
from ulid import ULID

TEXT = "Billing listens on port 8123"


def new_id() -> str:
    return str(ULID())


def post(client, **body):
    return client.post("/v1/memories", {"content": TEXT, **body})


def list_contents(client) -> list[str]:
    return [memory["content"] for memory in client.get("/v1/memories").get_json()["items"]]


def test_a_repeated_write_returns_the_first_receipt(client):
    memory_id = new_id()
    first, second = post(client, id=memory_id), post(client, id=memory_id)
    assert (first.get_json()["id"], first.get_json()["outcome"]) == (memory_id, "created")
    assert second.get_json() == first.get_json()
    # A merge would have an entry in the history.
    assert client.get(f"/v1/memories/{memory_id}").get_json()["history"] == []
    assert list_contents(client) == [TEXT]


def test_a_repeated_write_of_a_duplicate_counts_once(client):
    stored = client.write(TEXT)
    memory_id = new_id()
    receipts = [post(client, id=memory_id).get_json() for _ in range(3)]
    assert [(one["outcome"], one["duplicate_of"]) for one in receipts] == [("merged", stored)] * 3
    history = client.get(f"/v1/memories/{stored}").get_json()["history"]
    assert [entry["event"] for entry in history] == ["merged"]


def test_a_repeated_write_of_a_fact_counts_once(client):
    fact = {"kind": "keyed_fact", "details": {"subject": "billing", "attribute": "port", "value": 8123}}
    memory_id = new_id()
    receipts = [post(client, id=memory_id, **fact).get_json() for _ in range(2)]
    assert receipts[0] == receipts[1]
    assert client.get(f"/v1/memories/{memory_id}").get_json()["history"] == []


def test_a_repeated_batch_stores_nothing_twice(client):
    items = [{"content": f"Port {number} belongs to service {number}", "id": new_id()} for number in range(4)]
    first = client.post("/v1/memories/batch", {"items": items[:2]}).get_json()["results"]
    again = client.post("/v1/memories/batch", {"items": [*items, items[3]]}).get_json()["results"]
    assert again[:2] == first
    assert [receipt["id"] for receipt in again] == [item["id"] for item in [*items, items[3]]]
    assert sorted(list_contents(client)) == sorted(item["content"] for item in items)


def test_a_purged_memory_does_not_come_back(client):
    memory_id = new_id()
    post(client, id=memory_id)
    client.delete(f"/v1/memories/{memory_id}?hard=true")
    assert post(client, id=memory_id).get_json()["outcome"] == "rejected"
    assert list_contents(client) == []


@pytest.mark.parametrize(
    "memory_id",
    [
        *("", "x", "01ARZ3NDEKTSV4RRFFQ69G5FA", "01ARZ3NDEKTSV4RRFFQ69G5FAVV", "81ARZ3NDEKTSV4RRFFQ69G5FAV", 7),
        pytest.param(str(ULID.from_timestamp(time.time() + 3600)), id="an hour ahead"),
    ],
)
def test_an_invalid_id_is_refused_by_name(client, memory_id):
    answer = post(client, id=memory_id)
    assert answer.status_code == 422
    assert [error["loc"] for error in answer.get_json()["errors"]] == ["id"]
    batch = client.post("/v1/memories/batch", {"items": [{"content": TEXT, "id": memory_id}]})
    assert [error["loc"] for error in batch.get_json()["errors"]] == ["items.0.id"]


def test_the_id_of_another_persons_memory_is_refused(container):
    from pipeline.kernel.errors import InvalidField
    from pipeline.kernel.records import Draft
    from pipeline.kernel.records.access import WritePolicy
    from pipeline.write.accept import accept

    database, memory_id = container.workspace("default").create(), new_id()
    accept(database, Draft(TEXT, id=memory_id), WritePolicy(author="ada"))
    with pytest.raises(InvalidField, match="id: is in use"):
        accept(database, Draft("Something else", id=memory_id), WritePolicy(author="bob"))
