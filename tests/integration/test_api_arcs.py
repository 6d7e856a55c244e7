"""Threads over HTTP: told to whom they reach, and only as far as they do."""

from datetime import UTC, datetime

import pytest

from pipeline.features.arcs.job import arcs
from pipeline.kernel.job_runs import JobRun

NOW = datetime(2026, 6, 15, tzinfo=UTC)


def write_thread(client, subject, days=range(1, 6), **fields):
    return [
        client.write(
            f"{verb} {subject} on staging",
            session_id=f"s{day}",
            occurred_at=f"2026-06-{day:02}T08:00:00Z",
            **fields,
        )
        for day, verb in zip(days, ["Measured", "Changed", "Broke", "Mended", "Praised"], strict=True)
    ]


@pytest.fixture
def threads(client, worker):
    """Two threads, one of them an agent's own, as the arcs job finds them."""
    told = {
        "everyone": write_thread(client, "PgBouncer pooling"),
        "reviewer": write_thread(
            client, "invoice rounding", days=range(2, 7), scope={"kind": "agent", "id": "reviewer"}
        ),
    }
    for aside in ("Lunch was dumplings", "Rain all afternoon", "A train stood still"):
        client.write(aside)
    arcs(JobRun(worker.databases.get("default"), NOW))
    return told


def list_arcs(client, query=""):
    response = client.get(f"/v1/arcs{query}")
    assert response.status_code == 200
    return response.get_json()["items"]


def ids(arc):
    return [member["id"] for member in arc["members"]]


def test_a_thread_is_shown_with_its_members_in_order(client, threads):
    [arc] = list_arcs(client)
    assert ids(arc) == threads["everyone"]
    assert "PgBouncer" in arc["title"]
    assert (arc["size"], arc["status"], arc["trust"]) == (5, "active", "trusted")
    assert arc["scope"] == {"kind": "workspace", "id": None}
    assert (arc["first_at"], arc["last_at"]) == ("2026-06-01T08:00:00.000Z", "2026-06-05T08:00:00.000Z")
    assert arc["members"][0]["preview"] == "Measured PgBouncer pooling on staging"


def test_an_owned_thread_is_shown_to_its_owner_only(client, threads):
    assert "invoice" not in client.get("/v1/arcs?agent=other&user=reviewer").get_data(as_text=True)
    assert [ids(arc) for arc in list_arcs(client, "?agent=reviewer")] == [threads["reviewer"], threads["everyone"]]


def test_pages_and_statuses(client, threads):
    first = client.get("/v1/arcs?agent=reviewer&limit=1").get_json()
    second = client.get(f"/v1/arcs?agent=reviewer&limit=1&cursor={first['next_cursor']}").get_json()
    assert [ids(arc) for arc in (*first["items"], *second["items"])] == [threads["reviewer"], threads["everyone"]]
    assert second["next_cursor"] is None
    assert list_arcs(client, "?status=dormant") == []
    assert len(list_arcs(client, "?status=active")) == 1


def test_archived_memories_are_not_shown_in_arcs(client, threads):
    for memory_id in threads["everyone"][:3]:
        client.delete(f"/v1/memories/{memory_id}")
    [arc] = list_arcs(client)
    assert ids(arc) == threads["everyone"][3:]
    assert not {"Measured", "Changed", "Broke"} & set((arc["title"] + " " + arc["summary"]).split())


def test_a_purge_leaves_no_word_in_any_thread(client, worker, threads):
    assert client.delete(f"/v1/memories/{threads['everyone'][0]}?hard=true").status_code == 200
    assert list_arcs(client) == []
    with worker.databases.get("default").read() as db:
        assert db.execute("SELECT count(*) FROM arc WHERE title || summary LIKE '%Measured Pg%'").fetchone() == (0,)
    arcs(JobRun(worker.databases.get("default"), NOW))
    assert [ids(arc) for arc in list_arcs(client)] == [threads["everyone"][1:]]


@pytest.mark.parametrize("query", ["?status=open", "?limit=0", "?cursor=x", "?viewer=me"])
def test_invalid_arc_queries_are_rejected(client, threads, query):
    assert client.get(f"/v1/arcs{query}").status_code == 422


def test_an_unknown_workspace_has_no_threads(client):
    assert client.get("/v1/arcs", workspace="nowhere").status_code == 404
