"""Entities and their graph over HTTP: counted only over what reaches the viewer."""

import pytest
from markupsafe import escape

from pipeline.features.entities import store as entities
from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store import memories
from tests.fakes.dashboard import sign_in

TEXTS = (
    "Lunch with Ada at Acme",
    "Walked with Ada near Lyon",
    "Talked with Ada since Monday",
    "Talked with Cleo at Acme",
    "They bought Thermos and talked with Cleo",
)


@pytest.fixture
def named_ids(client, digested):
    """Memories that name people and places; one of an agent's own."""
    ids = [client.write(text) for text in TEXTS]
    ids.append(client.write("Whispered with Zed at Acme", scope={"kind": "agent", "id": "spy"}))
    digested()
    return ids


def items(client, query=""):
    response = client.get(f"/v1/entities{query}")
    assert response.status_code == 200
    return response.get_json()["items"]


def mentions(client, query=""):
    return {entity["name"]: entity["mentions"] for entity in items(client, query)}


def entity_id(client, name, query=""):
    [found] = [entity["id"] for entity in items(client, query) if entity["name"] == name]
    return found


def test_entities_are_listed_by_how_often_they_are_mentioned(client, named_ids):
    found = items(client)
    assert [(entity["name"], entity["mentions"]) for entity in found[:3]] == [("ada", 3), ("cleo", 2), ("acme", 2)]
    assert found[0]["kind"] == "person"
    assert [entity["mentions"] for entity in found] == sorted((e["mentions"] for e in found), reverse=True)


def test_they_are_found_by_a_part_of_their_name_and_by_kind(client, named_ids):
    assert mentions(client, "?q=AD") == {"ada": 3}
    assert mentions(client, "?kind=place") == {"lyon": 1}
    assert mentions(client, "?q=c&kind=organisation") == {"acme": 2}
    assert mentions(client, "?q=%25") == {}


def test_pages_hold_every_entity_once(client, named_ids):
    whole = [entity["id"] for entity in items(client)]
    paged, query = [], "?limit=2"
    while True:
        page = client.get(f"/v1/entities{query}").get_json()
        paged += [entity["id"] for entity in page["items"]]
        if page["next_cursor"] is None:
            break
        query = f"?limit=2&cursor={page['next_cursor']}"
    assert paged == whole


def test_entity_mentioned_only_for_another_agent_is_hidden(client, named_ids):
    hidden = entity_id(client, "zed", "?agent=spy")
    assert "zed" not in mentions(client)
    assert mentions(client, "?agent=spy")["acme"] == 3
    assert client.get(f"/v1/entities/{hidden}").status_code == 404
    assert client.get(f"/v1/entities/{hidden}?agent=spy").status_code == 200
    assert client.get("/v1/graph?around=zed").status_code == 404
    assert client.get("/v1/graph?around=zed&agent=spy").status_code == 200
    acme = entity_id(client, "acme")
    for path in (f"/v1/entities/{acme}", f"/v1/graph?around={acme}&depth=2"):
        assert "zed" not in client.get(path).get_data(as_text=True).casefold()


def test_archived_memories_do_not_count_as_mentions(client, named_ids):
    client.delete(f"/v1/memories/{named_ids[0]}")
    assert mentions(client)["ada"] == 2
    ada = client.get(f"/v1/entities/{entity_id(client, 'ada')}").get_json()
    assert "acme" not in [entity["name"] for entity in ada["related"]]


def test_an_entity_shows_its_memories_newest_first_and_its_company(client, named_ids):
    cleo = client.get(f"/v1/entities/{entity_id(client, 'cleo')}").get_json()
    assert (cleo["kind"], cleo["name"], cleo["mentions"]) == ("person", "cleo", 2)
    assert [memory["id"] for memory in cleo["memories"]] == [named_ids[4], named_ids[3]]
    assert {(entity["name"], entity["memories"]) for entity in cleo["related"]} == {("acme", 1), ("thermos", 1)}
    first = client.get(f"/v1/entities/{cleo['id']}?limit=1").get_json()
    second = client.get(f"/v1/entities/{cleo['id']}?limit=1&cursor={first['next_cursor']}").get_json()
    assert [memory["id"] for page in (first, second) for memory in page["memories"]] == [named_ids[4], named_ids[3]]
    assert second["next_cursor"] is None


def graph(client, query):
    response = client.get(f"/v1/graph?{query}")
    assert response.status_code == 200
    answer = response.get_json()
    names = {node["id"]: node["name"] for node in answer["nodes"]}
    ties = {(*sorted((names[edge["from"]], names[edge["to"]])), edge["memories"]) for edge in answer["edges"]}
    return {node["name"]: node["mentions"] for node in answer["nodes"]}, ties


def test_the_graph_reaches_one_step_or_two(client, named_ids):
    near, ties = graph(client, "around=Cleo")
    assert near == {"cleo": 2, "acme": 2, "thermos": 1}
    assert ties == {("acme", "cleo", 1), ("cleo", "thermos", 1)}
    far, ties = graph(client, f"around={entity_id(client, 'cleo')}&depth=2")
    assert far == {**near, "ada": 3}
    assert ties == {("acme", "cleo", 1), ("cleo", "thermos", 1), ("acme", "ada", 1)}


def test_a_machine_in_plain_text_is_in_the_graph(client, digested):
    client.write("ledger-db runs on pine-04, billing-service reads it")
    client.write("pine-04 is rebooted on Sundays")
    digested()
    nodes, _ = graph(client, "around=pine-04")
    assert nodes["pine-04"] == 2
    assert nodes.keys() == {"pine-04", "ledger-db", "billing-service"}


def test_entities_are_merged_and_split_again(client, digested, named_ids):
    ada = entity_id(client, "ada")
    merged = client.post(f"/v1/entities/{entity_id(client, 'cleo')}/merge", json={"into": "Ada"})
    assert (merged.status_code, merged.get_json()["mentions"]) == (200, 5)
    assert client.get(f"/v1/entities/{ada}").get_json()["aliases"] == ["cleo"]
    assert graph(client, "around=Cleo")[0]["ada"] == 5
    split = client.post(f"/v1/entities/{ada}/split", json={"alias": "Cleo"})
    assert (split.status_code, split.get_json()["mentions"]) == (200, 3)
    digested()
    assert mentions(client)["cleo"] == 2
    assert client.get(f"/v1/entities/{ada}").get_json()["aliases"] == []


def test_a_merge_needs_two_entities_and_a_split_another_name(client, named_ids):
    ada = entity_id(client, "ada")
    assert client.post(f"/v1/entities/{ada}/merge", json={"into": "nobody"}).status_code == 404
    assert client.post(f"/v1/entities/{ada}/merge", json={"into": ada}).status_code == 409
    assert client.post(f"/v1/entities/{ada}/split", json={"alias": "cleo"}).status_code == 404
    zed = entity_id(client, "zed", "?agent=spy")
    assert client.post(f"/v1/entities/{zed}/merge", json={"into": ada}).status_code == 404


def test_the_graph_is_bounded(client, named_ids):
    nodes, ties = graph(client, "around=ada&depth=2&limit=1")
    assert (nodes, ties) == ({"ada": 3}, set())
    assert len(graph(client, "around=ada&depth=2&limit=3")[0]) == 3


@pytest.mark.parametrize(
    "path",
    [
        "/v1/entities?kind=thing",
        "/v1/entities?limit=0",
        "/v1/graph",
        "/v1/graph?around=a&depth=3",
        "/v1/graph?around=a&limit=101",
        "/v1/graph?around=a&cursor=1",
        "/v1/entities/x?q=a",
    ],
)
def test_invalid_entity_queries_are_rejected(client, named_ids, path):
    assert client.get(path).status_code == 422


def test_unknown_entities_and_workspaces_are_not_found(client, named_ids):
    assert client.get("/v1/entities/01J00000000000000000000000").status_code == 404
    assert client.get("/v1/graph?around=nobody").status_code == 404
    assert client.get("/v1/entities", workspace="nowhere").status_code == 404


HOSTILE_NAMES = (
    "A\u0308\u0301\u0302" * 40,
    "\u202egnirts\u202c",
    "Zoë\u200dZwj\U0001f469\u200d\U0001f4bb",
    "\U000e0041\U000e0042Tagged",
    "İstanbulİ" * 30,
    "﷽" * 20,
    "<script>alert(1)</script>",
    "'; DROP TABLE entity; --",
    "%00%0d%0aSet-Cookie:x",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_is_data_on_every_page_and_route(client, container, digested, name):
    database = container.workspace("default").create()
    memory_id = client.write("Lunch at the harbour")
    digested()
    with database.write() as db:
        seq = memories.get(db, memory_id).seq
        mention = EntityMention(EntityKind.PERSON, name, name, 0, 5)
        entities.link(db, seq, [mention])
    [found] = items(client)
    assert found["name"] == name
    assert client.get(f"/v1/entities/{found['id']}").get_json()["name"] == name
    assert client.get("/v1/entities", query_string={"q": name}).status_code == 200
    browser = sign_in(client)
    for page in ("entities", f"entities/{found['id']}", "map", f"memories/{memory_id}"):
        shown = browser.page(f"/w/default/{page}")
        assert "<script>alert" not in shown
        assert escape(name[:20]) in shown or page == "map"
