"""No means no: what a person rejected, archived or purged does not come back by being offered again."""

import pytest

from config.workspace_configs import ConfigFiles, save_workspace_setting

TEXT = "We decided to keep the monolith because nobody can run five services"


def offer(client, text=TEXT, source="agent", **fields):
    return client.post("/v1/memories", {"content": text, "source": source, "kind": "decision", **fields}).get_json()


def refused(client):
    return client.get("/v1/refused").get_json()["items"]


@pytest.fixture(params=["archived", "purged", "rejected"])
def gone(request, client, home):
    """A memory that a person said no to: its id, and how."""
    if request.param == "rejected":
        save_workspace_setting(ConfigFiles(home.paths), "default", "review", True)
        text = "Deploys of the shop wait for the tests"
        memory_id = offer(client, text, source="ambient", kind="fact")["id"]
        client.post(f"/v1/candidates/{memory_id}", {"action": "reject"})
    else:
        text, memory_id = TEXT, client.write(TEXT)
        client.delete(f"/v1/memories/{memory_id}" + ("?hard=true" if request.param == "purged" else ""))
    return memory_id, request.param, text


def test_refused_memory_stays_rejected_and_is_counted(client, gone):
    memory_id, how, text = gone
    for source in ("agent", "ambient", "import", "agent", "agent"):
        answer = offer(client, text, source)
        assert (answer["outcome"], answer["reason"]) == ("rejected", "rejected by a person before")
    (one,) = refused(client)
    assert (one["id"], one["how"], one["offers"]) == (memory_id, how, 5)
    assert (one["memory"] is None) is (how == "purged")


def test_a_person_may_write_it_again_and_has_changed_their_mind(client, gone):
    _, _, text = gone
    offer(client, text)
    assert offer(client, text, "user")["outcome"] == "created"
    assert refused(client) == []
    assert offer(client, text)["outcome"] == "merged"


def test_a_person_may_change_their_mind_in_the_inbox(client, gone):
    memory_id, how, text = gone
    offer(client, text)
    answer = client.post(f"/v1/refused/{memory_id}/accept")
    assert answer.status_code == 200
    if how == "purged":
        assert answer.get_json()["memory"] is None
        assert offer(client, text)["outcome"] != "merged"
    else:
        assert answer.get_json()["memory"]["archived_at"] is None
        assert offer(client, text)["outcome"] == "merged"
    assert client.post(f"/v1/refused/{memory_id}/accept").status_code == 404


def test_restoring_takes_the_refusal_back(client):
    memory_id = client.write(TEXT)
    client.delete(f"/v1/memories/{memory_id}")
    client.post(f"/v1/memories/{memory_id}/restore")
    assert offer(client)["outcome"] == "merged"


def test_of_a_purged_text_nothing_is_left_that_could_be_looked_up(client, container):
    memory_id = client.write(TEXT)
    client.delete(f"/v1/memories/{memory_id}?hard=true")
    with container.databases.get("default").read() as db:
        (mark,) = db.execute("SELECT mark FROM refusal").fetchone()
        (known,) = db.execute("SELECT count(*) FROM memory WHERE content_hash = ?", (mark,)).fetchone()
    assert len(mark) == 32
    assert known == 0


def test_memory_archived_by_a_job_can_be_written_again(client, container):
    memory_id = client.write(TEXT)
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET archived_at = created_at WHERE id = ?", (memory_id,))
    assert offer(client)["outcome"] == "created"
