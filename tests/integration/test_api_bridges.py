"""Names for one thing over HTTP and on the command line: listed, removed for good, audited, taken back."""

import pytest

from pipeline.store import bridges as store
from pipeline.store.bridges import BridgeSource, MinedBridge
from tests.fakes.client import CheckedClient
from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.in_process import open_web
from web.app import create_app

AT = "2026-11-26T00:00:00.000Z"


@pytest.fixture
def bridge(client, container):
    """A bridge of a stored memory: its id and the memory's."""
    memory_id = client.write("We deploy to Kubernetes with Helm")
    return connect(container, memory_id), memory_id


def connect(container, memory_id):
    with container.databases.get("default").write() as db:
        (seq,) = db.execute("SELECT seq FROM memory WHERE id = ?", (memory_id,)).fetchone()
        mined = MinedBridge("k8s", "Kubernetes", BridgeSource.SHORT_FORM, seq)
        store.replace(db, [mined], AT)
    return mined.id


def list_ids(client, **query):
    return [item["id"] for item in client.get("/v1/bridges", query_string=query).json["items"]]


def test_a_bridge_is_listed_with_its_memory_and_used(client, bridge):
    bridge_id, memory_id = bridge
    [item] = client.get("/v1/bridges").json["items"]
    assert (item["id"], item["first"], item["second"], item["memory_id"]) == (bridge_id, "k8s", "Kubernetes", memory_id)
    [hit] = client.recall("k8s", explain=True)["results"]
    assert hit["signals"]["bridges"] == [
        {"id": bridge_id, "term": "k8s", "other": "Kubernetes", "source": "short_form", "memory_id": memory_id}
    ]


def test_a_removal_is_audited_and_can_be_undone(client, bridge):
    bridge_id, memory_id = bridge
    removed = client.delete(f"/v1/bridges/{bridge_id}").json
    assert removed["removed_by"] == "owner"
    assert list_ids(client) == []
    assert list_ids(client, removed="true") == [bridge_id]
    assert client.find_ids("k8s") == []
    [entry] = client.get("/v1/audit").json["items"]
    assert (entry["action"], entry["memory_id"]) == ("unbridge", memory_id)
    assert client.post(f"/v1/audit/{entry['id']}/undo").json["id"] == memory_id
    assert list_ids(client) == [bridge_id]
    assert client.find_ids("k8s") == [memory_id]
    assert client.post(f"/v1/audit/{entry['id']}/undo").status_code == 409


def test_a_restored_bridge_closes_its_audit_entry(client, bridge):
    bridge_id, _ = bridge
    client.delete(f"/v1/bridges/{bridge_id}")
    assert client.post(f"/v1/bridges/{bridge_id}/restore").json["removed_at"] is None
    [entry] = client.get("/v1/audit").json["items"]
    assert entry["undone_at"] is not None


def test_what_cannot_be_done_is_refused(client, bridge):
    bridge_id, _ = bridge
    assert client.delete("/v1/bridges/b0").status_code == 404
    assert client.post(f"/v1/bridges/{bridge_id}/restore").status_code == 409
    client.delete(f"/v1/bridges/{bridge_id}")
    assert client.delete(f"/v1/bridges/{bridge_id}").status_code == 409


def test_the_command_line_lists_removes_and_restores(home, monkeypatch):
    container = open_web(home)
    client = CheckedClient(create_app(container), container.token)
    bridge_id = connect(container, client.write("We deploy to Kubernetes with Helm"))
    monkeypatch.setenv("REVERIE_WORKSPACE", "default")
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        assert "k8s = Kubernetes" in run("bridges").stdout
        assert f"bridge {bridge_id}: k8s = Kubernetes" in run("recall", "k8s", "--explain").stdout
        assert "removed" in run("bridges", "remove", bridge_id).stdout
        assert run_json("bridges", "list")["items"] == []
        assert [item["id"] for item in run_json("bridges", "list", "--removed")["items"]] == [bridge_id]
        assert "restored" in run("bridges", "restore", bridge_id).stdout
        assert "in use" in run("bridges", "restore", bridge_id, code=1).stderr
    container.close()
