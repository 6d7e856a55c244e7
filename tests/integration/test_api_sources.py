"""Sources over HTTP: items come, change and go, in one transaction each time."""

import pytest

from tests.fakes.client import CheckedClient

SOURCE = "project:shop-0d1a25a8"
ITEMS = f"/v1/sources/{SOURCE}/items"
FORGET = f"/v1/sources/{SOURCE}/forget"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def item(key: str, *contents: str, digest: str = "1", **fields) -> dict:
    return {"key": key, "digest": digest, "memories": [{"content": content, **fields} for content in contents]}


def put_items(client: CheckedClient, *items: dict, code: int = 200, **rest) -> dict:
    answer = client.put(ITEMS, {"items": list(items)}, **rest)
    assert answer.status_code == code, answer.get_data(as_text=True)
    return answer.get_json()


def list_known(client: CheckedClient) -> dict[str, str]:
    return {one["key"]: one["digest"] for one in client.get(ITEMS).get_json()["items"]}


def contents(client: CheckedClient, query: str = "") -> set[str]:
    return {memory["content"] for memory in client.get(f"/v1/memories?{query}").get_json()["items"]}


def test_items_come_change_and_go(client, container):
    first = put_items(client, item("a.py", "Opens the shop", "Closes the shop"), item("b.py", "Sells tea"))
    assert [one["outcome"] for one in first["items"]] == ["created", "created"]
    assert [receipt["outcome"] for receipt in first["items"][0]["receipts"]] == ["created", "created"]
    assert {stage for _, stage in container.notify.sent} == {"embed", "entities"}
    second = put_items(client, item("a.py", "Opens the shop", digest="2"), item("b.py", "Sells tea"))
    assert [one["outcome"] for one in second["items"]] == ["replaced", "unchanged"]
    assert (second["archived"], second["items"][1]["receipts"]) == (1, [])
    assert list_known(client) == {"a.py": "2", "b.py": "1"}
    assert client.post(FORGET, {"keys": ["a.py", "never.py"]}).get_json() == {"items": 1, "archived": 1}
    assert contents(client) == {"Sells tea"}
    worker = put_items(client, item("a.py", "Opens the shop", digest="2"))
    assert (worker["items"][0]["outcome"], worker["restored"]) == ("created", 1)
    assert contents(client) == {"Sells tea", "Opens the shop"}
    assert client.find_ids("opens shop")[0] == first["items"][0]["receipts"][0]["id"]


def test_memory_of_an_imported_item_is_evidence(client):
    written = put_items(client, item("a.py", "Opens the shop", kind="code", tags=["py"], metadata={"line": 3}))
    memory = client.get(f"/v1/memories/{written['items'][0]['receipts'][0]['id']}").get_json()
    assert (memory["source"], memory["trust"], memory["kind"]) == ("import", "evidence", "code")
    assert (memory["tags"], memory["metadata"]) == (["py"], {"line": 3})


@pytest.mark.parametrize(
    ("items", "loc"),
    [
        ([item("a", "x"), item("b", "y", "\u200b")], "items.1.memories.1.content"),
        ([item("a", "x", source="user")], "items.0.memories.0.source"),
        ([item("a", "x", kind="rumour")], "items.0.memories.0.kind"),
        ([item("a", "x", kind="code", details={"title": "t"})], "items.0.memories.0.details.title"),
        ([item("a", "x", edges=[{"kind": "supports", "to": "nothing"}])], "items.0.memories.0.edges.0.to"),
        ([item("a", "x"), item("a", "y")], "items.1.key"),
        ([item("", "x")], "items.0.key"),
        ([item("k" * 1025, "x")], "items.0.key"),
        ([item(f"docs/{SECRET}.md", "x")], "items.0.key"),
        ([item("a", "x", digest="")], "items.0.digest"),
        ([item("a", "x", digest="two words")], "items.0.digest"),
        ([item(f"{n}") for n in range(201)], "items"),
        ([item("a", *(f"Memory {n}" for n in range(600))), item("b", *(f"Note {n}" for n in range(401)))], "items"),
    ],
)
def test_one_invalid_item_stops_all_of_them(client, container, items, loc):
    answer = put_items(client, *items, code=422)
    assert answer["errors"][0]["loc"] == loc
    assert SECRET not in str(answer)
    # An edge is only looked up within the transaction, for which there must be a workspace.
    assert container.settings.paths.workspace_ids() == ([] if "edges" not in loc else ["default"])
    if container.settings.paths.workspace_ids():
        assert (contents(client), list_known(client)) == (set(), {})


@pytest.mark.parametrize("source", ["Shop", "-shop", "s" * 129, "sh op", "shöp"])
def test_a_source_has_a_plain_name(client, source):
    for answer in (
        client.put(f"/v1/sources/{source}/items", {"items": []}),
        client.post(f"/v1/sources/{source}/forget", {"keys": []}),
    ):
        assert answer.status_code in (404, 422)


def test_a_thousand_memories_of_two_hundred_items_are_taken_at_once(client):
    taken = put_items(client, *(item(f"{n}.py", *(f"Rule {n} and {m}" for m in range(5))) for n in range(200)))
    assert sum(len(one["receipts"]) for one in taken["items"]) == 1000
    assert client.get("/v1/sources").get_json()["items"][0]["memories"] == 1000


def test_sources_and_items_are_listed_in_pages(client):
    for number in range(5):
        client.put(f"/v1/sources/s{number}/items", {"items": [item(f"{n}", f"Rule {n}") for n in range(number + 1)]})

    def pages(path: str, limit: int) -> list[dict]:
        found, cursor = [], ""
        while cursor is not None:
            page = client.get(f"{path}?limit={limit}{cursor and f'&cursor={cursor}'}").get_json()
            found += page["items"]
            cursor = page["next_cursor"]
        return found

    assert [one["source"] for one in pages("/v1/sources", 2)] == ["s4", "s3", "s2", "s1", "s0"]
    assert pages("/v1/sources", 2) == client.get("/v1/sources").get_json()["items"]
    assert [one["key"] for one in pages("/v1/sources/s4/items", 2)] == ["0", "1", "2", "3", "4"]
    assert pages("/v1/sources/nothing/items", 10) == []
    assert client.get("/v1/sources/s4/items?limit=1001").status_code == 422


def test_reading_a_workspace_that_is_not_there_is_not_found(client, container):
    for answer in (client.get("/v1/sources"), client.get(ITEMS), client.post(FORGET, {"keys": ["a"]})):
        assert answer.status_code == 404
    assert container.settings.paths.workspace_ids() == []


def test_workspaces_keep_their_sources_apart(client):
    put_items(client, item("a.py", "Opens the shop"))
    put_items(client, item("a.py", "Opens the gate"), workspace="canal")
    client.post(FORGET, {"keys": ["a.py"]}, workspace="canal")
    assert contents(client) == {"Opens the shop"}
    assert client.get("/v1/sources", workspace="canal").get_json()["items"] == []


def test_nothing_is_kept_of_an_incognito_session(client):
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    taken = put_items(client, item("chat", "We open at nine", session_id="s1"))
    assert taken["items"][0]["outcome"] == "rejected"
    assert taken["items"][0]["receipts"][0]["reason"] == "incognito"
    assert (list_known(client), contents(client)) == ({}, set())


def test_a_purge_leaves_no_trace_and_nothing_brings_it_back(client, container, digested, worker):
    kept = put_items(client, item("kept.md", "The gateway runs near Zurich"))
    gone = put_items(client, item("gone.md", "The codeword is xylophonic with Ada Byron", metadata={"w": "xylophonic"}))
    digested()
    worker.context("default").rebuild_segment()
    purged = gone["items"][0]["receipts"][0]["id"]
    content_hash = client.get(f"/v1/memories/{purged}").get_json()["content_hash"]
    assert client.delete(f"/v1/memories/{purged}?hard=true").get_json()["purged"] is True
    digested()
    folder = container.settings.paths.workspace("default").root
    stored = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).lower()
    for trace in (b"xylophon", b"ada byron", content_hash.encode()):
        assert trace not in stored
    again = item("gone.md", "The codeword is xylophonic with Ada Byron", metadata={"w": "xylophonic"})
    assert put_items(client, again)["items"][0]["outcome"] == "unchanged"
    changed = put_items(client, again | {"digest": "2"}, item("copy.md", "The codeword is xylophonic with Ada Byron"))
    assert [one["receipts"][0]["reason"] for one in changed["items"]] == ["was purged", "was purged"]
    assert client.find_ids("gateway") == [kept["items"][0]["receipts"][0]["id"]]
    assert contents(client) == {"The gateway runs near Zurich"}
