"""A purge follows a memory to where it was moved, shared or gathered, and what was purged does not return elsewhere."""

import pytest

from config.workspace_configs import ConfigFiles, save_workspace_setting
from pipeline.features.personal.usecases import gather_personal
from pipeline.kernel.store import purges
from pipeline.kernel.store.sqlite import SqliteFile
from tests.fakes.people import PersonClient, add_person
from tests.integration.test_purged_everywhere import SECRET, USER, list_traces, purge

FILLER = "The billing service listens on port 8123."


def move(client, memory_id, origin, target):
    answer = client.post(f"/v1/memories/{memory_id}/move", {"workspace": target}, workspace=origin)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()["id"]


def is_known(client, memory_id, workspace):
    return client.get(f"/v1/memories/{memory_id}", workspace=workspace).status_code == 200


@pytest.mark.files
@pytest.mark.parametrize("purged_in", ["alpha", "beta", "gamma"])
def test_a_purge_follows_every_move(client, home, digested, purged_in):
    memory_id = client.write(SECRET, workspace="alpha")
    client.patch(f"/v1/memories/{memory_id}", {"content": f"{SECRET} It is called Xylander."}, workspace="alpha")
    for origin, target in (("alpha", "beta"), ("beta", "gamma")):
        assert move(client, memory_id, origin, target) == memory_id
    purge(client, memory_id, purged_in)
    for workspace in ("alpha", "beta", "gamma"):
        # At once, before any worker.
        assert not is_known(client, memory_id, workspace)
        assert client.post(f"/v1/memories/{memory_id}/restore", workspace=workspace).status_code == 404
    for workspace in ("alpha", "beta", "gamma", "me"):
        digested(workspace)
    assert list_traces(home) == []


@pytest.mark.files
def test_purged_copy_is_durable_before_its_record_is_removed(client, digested, monkeypatch):
    order, remove, sync_log = [], purges.remove, SqliteFile.sync_log
    memory_id = client.write(SECRET, workspace="alpha")
    move(client, memory_id, "alpha", "beta")
    monkeypatch.setattr(SqliteFile, "sync_log", lambda self: (order.append(self.file.parent.name), sync_log(self)))
    monkeypatch.setattr(purges, "remove", lambda db, keys: (order.append("removed"), remove(db, keys)))
    purge(client, memory_id, "alpha")
    digested("alpha")
    # The store of the copy, and the person's store, which refuses the text from now on.
    assert {"beta", "me"} <= set(order[: order.index("removed")])


@pytest.mark.parametrize("purged_in", ["alpha", "beta"])
def test_a_purge_follows_a_move_into_a_memory_that_says_the_same(client, digested, purged_in):
    there = client.write(SECRET, workspace="beta")
    here = client.write(SECRET, workspace="alpha")
    assert move(client, here, "alpha", "beta") == there
    purge(client, {"alpha": here, "beta": there}[purged_in], purged_in)
    assert not is_known(client, here, "alpha")
    assert not is_known(client, there, "beta")
    digested("alpha")
    digested("beta")


def test_a_memory_that_was_moved_back_is_purged_in_both(client, digested):
    memory_id = client.write(SECRET, workspace="alpha")
    move(client, memory_id, "alpha", "beta")
    back = move(client, memory_id, "beta", "alpha")
    assert back != memory_id
    purge(client, back, "alpha")
    for one, workspace in ((memory_id, "alpha"), (back, "alpha"), (memory_id, "beta")):
        assert not is_known(client, one, workspace)
    digested("alpha")
    digested("beta")


@pytest.mark.files
def test_purge_of_a_gathered_personal_memory_erases_its_origin(client, home, container, digested):
    save_workspace_setting(ConfigFiles(home.paths), "alpha", "personal", False)
    memory_id = client.write(SECRET, scope=USER, workspace="alpha")
    save_workspace_setting(ConfigFiles(home.paths), "alpha", "personal", True)
    assert gather_personal(container.workspace("alpha")) == 1
    purge(client, memory_id, "me")
    digested("alpha")
    digested("me")
    assert list_traces(home) == []


def test_copy_in_a_read_only_workspace_stays_and_is_reported(client, home, container, digested):
    memory_id = client.write(SECRET, workspace="alpha")
    move(client, memory_id, "alpha", "beta")
    save_workspace_setting(ConfigFiles(home.paths), "alpha", "read_only", True)
    purge(client, memory_id, "beta")
    digested("beta")
    assert not is_known(client, memory_id, "beta")
    assert is_known(client, memory_id, "alpha")
    [problem] = {error.message for error in container.operations.errors(workspace="alpha", limit=10)}
    assert problem.startswith("1 copies of a purged memory remain: the workspace is read only")


@pytest.mark.parametrize("place", ["beta", "me", "new"])
@pytest.mark.parametrize("personal", [False, True])
def test_a_purged_memory_does_not_return_by_an_import_elsewhere(client, digested, place, personal):
    scope = {"scope": USER} if personal else {}
    client.write(FILLER, workspace="alpha")
    client.write(FILLER, workspace="beta")
    purge(client, client.write(SECRET, workspace="alpha", **scope), "alpha")
    for workspace in ("alpha", "me"):
        digested(workspace)
    for source in ("import", "agent"):
        offered = client.post("/v1/memories", {"content": SECRET, "source": source}, workspace=place)
        assert offered.get_json()["outcome"] == "rejected"
    item = {"key": "notes.md", "digest": "1", "memories": [{"content": SECRET}]}
    taken = client.put("/v1/sources/notes/items", {"items": [item]}, workspace=place)
    assert [one["outcome"] for one in taken.get_json()["items"][0]["receipts"]] == ["rejected"]
    # Their own words change their mind, and repeat a memory then.
    own = client.post("/v1/memories", {"content": SECRET, "source": "user"}, workspace=place).get_json()
    assert own["outcome"] == "created"
    again = client.post("/v1/memories", {"content": SECRET, "source": "agent"}, workspace=place).get_json()
    assert (again["outcome"], again["id"]) == ("merged", own["id"])


def test_an_earlier_text_and_a_merged_text_do_not_return(client, digested):
    memory_id = client.write(SECRET, workspace="alpha")
    client.patch(f"/v1/memories/{memory_id}", {"content": FILLER}, workspace="alpha")
    purge(client, memory_id, "alpha")
    for content in (SECRET, FILLER):
        offered = client.post("/v1/memories", {"content": content, "source": "import"}, workspace="alpha")
        assert offered.get_json()["outcome"] == "rejected"
    assert [one["id"] for one in client.get("/v1/refused", workspace="alpha").get_json()["items"]] == [memory_id]
    assert client.post(f"/v1/refused/{memory_id}/accept", workspace="alpha").status_code == 200
    for workspace in ("alpha", "beta"):
        offered = client.post("/v1/memories", {"content": SECRET, "source": "import"}, workspace=workspace)
        assert offered.get_json()["outcome"] != "rejected"
    digested("alpha")


def test_a_purge_follows_only_to_where_its_person_may_write(client, app, container, digested):
    memory_id = client.write(SECRET, workspace="alpha")
    move(client, memory_id, "alpha", "beta")
    reader = add_person(container, "Ada", alpha="reader", beta="owner")
    writer = add_person(container, "Bob", alpha="writer", beta="owner")
    purge(PersonClient(app, container, reader, "beta"), memory_id, "beta")
    digested("beta")
    assert is_known(client, memory_id, "alpha")
    # Who may do more purges it again, and the purge goes further.
    again = client.write(f"{SECRET} Twice.", workspace="alpha")
    move(client, again, "alpha", "beta")
    purge(PersonClient(app, container, writer, "beta"), again, "beta")
    assert not is_known(client, again, "alpha")
    for workspace in ("alpha", "beta"):
        digested(workspace)
