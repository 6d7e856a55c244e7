"""Map and entities on the dashboard: drawn nightly, shown as a map and as a list, while memories mention them."""

import json
import re
from urllib.parse import urlencode

import pytest

from pipeline.features.entities import store as entities
from pipeline.features.map import store as maps
from pipeline.kernel.records import OWNER, EntityKind, Viewer
from pipeline.write.revise import archive, purge
from tests.fakes.atlas import chart, note
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import list_requests, run_job

WORD = "w" * 9000
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def browser(client):
    return sign_in(client)


@pytest.fixture
def database(container):
    return container.databases.get("default", create=True)


@pytest.fixture
def named_entities(database):
    """Two groups of names, an entity without company, and one whose name is hostile."""
    for number in range(6):
        note(database, number, [["ada", "bob", "cleo"][at] for at in range(3) if at != number % 4], EntityKind.PERSON)
        note(database, number, [["x.py", "y.py", "z.py"][at] for at in range(3) if at != number % 4], EntityKind.FILE)
    note(database, 10, ["alone"])
    return note(database, 11, [HOSTILE, WORD, "ada"], EntityKind.PERSON)


@pytest.fixture
def drawn_map(named_entities, worker):
    run_job(worker, "default", "layout")
    return named_entities


def data(browser):
    answer = browser.get("/w/default/map/data")
    assert answer.status_code == 200
    return answer.get_json()


def entity(client, name):
    [found] = [one for one in client.get("/v1/entities?limit=100").get_json()["items"] if one["name"] == name]
    return found["id"]


def test_a_map_is_asked_for_and_drawn(client, browser, named_entities, container, worker):
    assert "No map yet" in browser.page("/w/default/map")
    page = browser.submit("/w/default/map", "Draw the map now")
    assert "is being redrawn" in page
    assert "Drawing the map" in page
    assert container.notify.sent[-1] == ("default", None)
    assert list_requests(worker) == ["layout"]
    assert data(browser)["waiting"]
    run_job(worker, "default", "layout")
    assert not data(browser)["waiting"]
    assert ">List</h2>" in browser.page("/w/default/map")
    [job] = [job for job in client.get("/v1/jobs").get_json()["items"] if job["name"] == "layout"]
    assert (job["last_run"]["ok"], job["last_run"]["counts"]["redrawn"]) == (True, 1)


def test_the_data_hold_the_map_in_columns(browser, drawn_map):
    known = data(browser)
    count = len(known["ids"])
    assert {len(known[name]) for name in ("seqs", "names", "kind", "x", "y", "radius", "community", "mentions")} == {
        count
    }
    assert {"ada", "bob", "cleo", "x.py", "y.py", "z.py", "alone"} < set(known["names"])
    assert known["kinds"][known["kind"][known["names"].index("ada")]] == "person"
    names = dict(zip(known["seqs"], known["names"], strict=True))
    tied = [{names[one] for one in pair} for pair in zip(*[iter(known["ties"])] * 2, strict=True)]
    assert {"ada", "bob"} in tied
    assert {"x.py", "z.py"} in tied
    assert not any("alone" in pair for pair in tied)
    home = dict(zip(known["names"], known["community"], strict=True))
    assert home["ada"] == home["bob"] != home["x.py"] == home["y.py"]
    assert home["alone"] == maps.NO_COMMUNITY
    assert dict(map(tuple, known["communities"]))[maps.NO_COMMUNITY] == "Unconnected"
    assert max(map(len, known["names"])) <= 61


def test_the_data_are_sent_again_only_when_they_changed(browser, database, drawn_map):
    first = browser.get("/w/default/map/data")
    again = browser._browser.get(
        "/w/default/map/data", headers={"Host": "127.0.0.1:7077", "If-None-Match": first.headers["ETag"]}
    )
    assert (again.status_code, again.data) == (304, b"")
    purge(database, drawn_map)
    after = browser._browser.get(
        "/w/default/map/data", headers={"Host": "127.0.0.1:7077", "If-None-Match": first.headers["ETag"]}
    )
    assert after.status_code == 200
    assert HOSTILE not in after.get_json()["names"]


def test_the_list_says_the_same_as_the_map(client, browser, drawn_map):
    page = browser.page("/w/default/map")
    for name in ("ada", "bob", "cleo", "x.py", "y.py", "z.py", "alone"):
        assert f'/w/default/entities/{entity(client, name)}">{name}</a>' in page
    [number] = {
        community
        for name, community in zip(*map(data(browser).get, ("names", "community")), strict=True)
        if name == "x.py"
    }
    assert f'href="/w/default/map/communities/{number}"' in page
    members = browser.page(f"/w/default/map/communities/{number}")
    assert all(name in members for name in ("x.py", "y.py", "z.py"))
    assert ">ada<" not in members
    assert browser.get("/w/default/map/communities/77").status_code == 404
    assert browser.get("/w/default/map/communities/x").status_code == 404


def test_hostile_names_are_data(browser, drawn_map):
    for path in ("/w/default/map", "/w/default/entities", "/w/default/map/communities/-1"):
        page = browser.page(path)
        assert HOSTILE not in page
        assert WORD not in page
    assert HOSTILE not in browser.page("/w/default/map").replace("&lt;script&gt;", "")


def test_around_an_entity(client, browser, drawn_map):
    known = browser.get(f"/w/default/map/around/{entity(client, 'ada')}").get_json()
    assert (known["name"], known["kind"]) == ("ada", "person")
    assert {"bob", "cleo"} <= {one["name"] for one in known["neighbours"]}
    assert known["page"] == f"/w/default/entities/{entity(client, 'ada')}"
    assert len(known["memories"]) == 4
    assert all(re.fullmatch(r"/w/default/memories/\w+", memory["page"]) for memory in known["memories"])
    assert browser.get("/w/default/map/around/nobody").status_code == 404
    assert f'data-chosen="{entity(client, "ada")}"' in browser.page(f"/w/default/map?around={entity(client, 'ada')}")


def test_entity_missing_from_the_map_is_reported(client, browser, database, drawn_map):
    note(database, 20, ["latecomer"])
    page = browser.page(f"/w/default/map?around={entity(client, 'latecomer')}")
    assert "is not on the map" in page
    assert 'data-chosen=""' in page
    assert "Show on the map" not in browser.page(f"/w/default/entities/{entity(client, 'latecomer')}")
    assert "Show on the map" in browser.page(f"/w/default/entities/{entity(client, 'ada')}")


def test_archived_memories_are_removed_from_map_and_entities(client, browser, database, drawn_map):
    gone = entity(client, WORD)
    archive(database, drawn_map)
    assert HOSTILE not in json.dumps(data(browser))
    assert browser.get(f"/w/default/entities/{gone}").status_code == 404


def test_a_large_map_stays_a_small_page(browser, database):
    chart(database, 4000, 40_000)
    page = browser.page("/w/default/map")
    assert len(page) < 100_000
    assert "4\u202f000 entities in 30 communities" in page
    known = data(browser)
    assert (len(known["ids"]), len(known["ties"])) == (4000, 80_000)
    members = browser.page("/w/default/map/communities/3")
    listed = re.findall(r'/entities/(\w+)"', members)
    following = re.findall(r'/entities/(\w+)"', browser.follow(members, "Less central"))
    assert len(listed) == len(following) == 50
    assert not set(listed) & set(following)


def test_entities_are_listed_filtered_and_paged(client, browser, database):
    for number in range(60):
        note(database, number, [f"thing-{number:02}.py", *["often.py"][number % 2 :]], EntityKind.FILE)
    note(database, 70, ["Ada Thingley"], EntityKind.PERSON)
    first = browser.page("/w/default/entities")
    names = re.findall(r'/entities/\w+">([^<]+)</a>', first)
    assert names[0] == "often.py"
    assert len(names) == 50
    rest = re.findall(r'/entities/\w+">([^<]+)</a>', browser.follow(first, "Next"))
    assert len(names + rest) == len(set(names + rest)) == 62
    assert re.findall(r'/entities/\w+">([^<]+)</a>', browser.page("/w/default/entities?kind=person")) == [
        "Ada Thingley"
    ]
    assert "Ada Thingley" in browser.page("/w/default/entities?q=THINGL")
    assert "No results" in browser.page("/w/default/entities?q=zebra")


def test_entity_page_lists_mentions_and_related_entities(client, browser, database, named_entities):
    page = browser.page(f"/w/default/entities/{entity(client, 'ada')}")
    assert "<h1>ada</h1>" in page
    assert f'/w/default/entities/{entity(client, "bob")}">bob</a>' in page
    assert "2024-06-04" in page
    assert page.count('class="memory"') == client.get(f"/v1/entities/{entity(client, 'ada')}").get_json()["mentions"]
    assert browser.get("/w/default/entities/nobody").status_code == 404
    assert HOSTILE not in browser.page(f"/w/default/entities/{entity(client, HOSTILE)}")
    # The bytes of a long name stand in its page once, not in every link.
    assert len(browser.page(f"/w/default/entities/{entity(client, WORD)}")) < 60_000


def test_memories_of_an_entity_are_paged(client, browser, database):
    for number in range(70):
        note(database, number, ["often.py"], EntityKind.FILE)
    first = browser.page(f"/w/default/entities/{entity(client, 'often.py')}")
    older = browser.follow(first, "Older")
    assert (first.count('class="memory"'), older.count('class="memory"')) == (50, 20)


def test_before_there_is_anything_both_pages_say_so(client, browser):
    client.write("Nothing here has a name")
    assert "No entities yet" in browser.page("/w/default/entities")
    assert "No map yet" in browser.page("/w/default/map")


@pytest.mark.parametrize("viewer", [OWNER, Viewer(), Viewer(agent="spy"), Viewer(user="ada", session="s")])
def test_entity_counts_exclude_exactly_the_invisible_memories(client, database, digested, viewer):
    for scope in (None, {"kind": "agent", "id": "spy"}, {"kind": "session", "id": "s"}, {"kind": "user", "id": "ada"}):
        for number in range(2):
            client.write(f"Lunch number {number} of {scope} with Ada at Acme", **({"scope": scope} if scope else {}))
    client.write("ok with Ada", source="ambient")
    gone = client.write("Another lunch with Ada")
    client.put("/v1/facts/office/place", {"value": "near Lyon with Ada", "valid_from": "2026-01-01T00:00:00Z"})
    client.put("/v1/facts/office/place", {"value": "near Paris with Ada", "valid_from": "2026-02-01T00:00:00Z"})
    digested()
    archive(database, gone)
    with database.read() as db:
        listed = entities.page(db, viewer, "", None, 100, None)
        assert listed
        for one in listed:
            assert entities.get(db, viewer, one.id) == one
        everything = [row[0] for row in db.execute("SELECT id FROM entity")]
        assert {one.id for one in listed} == {one for one in everything if entities.get(db, viewer, one)}


def test_entities_are_found_ignoring_case(browser, database):
    note(database, 1, ["docs/Übersicht.md", "docs/100%.md"], EntityKind.FILE)
    note(database, 2, ["strasse", "ada"], EntityKind.PERSON)

    def find_names(text, **query):
        page = browser.page(f"/w/default/entities?{urlencode({'q': text, **query})}")
        return sorted(re.findall(r'/entities/\w+">([^<]+)</a>', page))

    for text in ("Übersicht", "übersicht", "ÜBERSICHT.MD"):
        assert find_names(text) == ["docs/Übersicht.md"]
    assert find_names("Straße") == find_names("STRASSE") == ["strasse"]
    assert find_names("Übersicht", kind="person") == []
    assert find_names("%") == ["docs/100%.md"]
    assert find_names("_") == []
    assert find_names("*Ü*") == []
