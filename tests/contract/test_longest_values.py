"""Values as long as they may be, of letters that take most bytes and repeat least: no engine's index refuses them."""

import random

import pytest

# Letters of four bytes each, in an order in which nothing can be compressed.
_ASTRAL = [chr(0x20000 + number) for number in range(0xA000)]


@pytest.fixture(params=["files", "server"])
def served_at(request):
    """Where the store is served; nowhere for files."""
    return "" if request.param == "files" else request.getfixturevalue("store_url")


def longest(count, seed):
    return "".join(random.Random(seed).choices(_ASTRAL, k=count))


def test_an_item_of_a_source_by_the_longest_key(client):
    source = "s" * 128
    keys = [longest(1024, seed) for seed in range(2)]
    for digest in ("one", "two"):
        items = [{"key": key, "digest": digest, "memories": [{"content": f"note {key[:5]}"}]} for key in keys]
        answer = client.put(f"/v1/sources/{source}/items", json={"items": items})
        assert answer.status_code == 200, answer.json
    listed = client.get(f"/v1/sources/{source}/items").json["items"]
    assert sorted((one["key"], one["digest"]) for one in listed) == sorted((key, "two") for key in keys)


def test_a_fact_by_the_longest_names(client):
    subject, attribute = longest(200, 1), longest(200, 2)
    for value in (longest(2000, 3), longest(2000, 4)):
        answer = client.put(f"/v1/facts/{subject}/{attribute}", json={"value": value})
        assert answer.status_code == 200, answer.json
    assert client.get(f"/v1/facts/{subject}/{attribute}").json["value"] == value
    assert len(client.get(f"/v1/facts/{subject}/{attribute}/history").json["items"]) == 2


def test_a_memory_with_the_longest_of_everything(client):
    body = {
        "content": longest(10_000, 5),
        "scope": {"kind": "session", "id": longest(256, 6)},
        "session_id": longest(256, 6),
        "branch": longest(256, 8),
    }
    answer = client.post("/v1/memories", json=body)
    assert answer.status_code == 201, answer.json
    assert client.get(f"/v1/memories/{answer.json['id']}").json["content"] == body["content"]
