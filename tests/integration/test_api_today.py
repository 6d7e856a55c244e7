"""A day by workspace: what was learned, changed and forgotten, each with its sentence and a way back."""

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.features.today.usecases import LISTED_IMPORTS
from pipeline.kernel.store import audit, memories
from pipeline.kernel.store.audit import AuditAction
from pipeline.kernel.times import utc_now, utc_text
from pipeline.write.revise import archive_memory
from tests.fakes.in_process import run_job


def read(client, **query):
    joined = "&".join(f"{name}={value}" for name, value in query.items())
    return client.get(f"/v1/today?{joined}").get_json()["items"]


def sentences(rows):
    return [(row["what"], row["before"], row["memory"] and row["memory"]["content"]) for row in rows]


def undo(client, row):
    assert row["undo"]["method"] == "audit"
    return client.post(f"/v1/audit/{row['undo']['id']}/undo")


def test_a_day_lists_every_workspace_in_which_something_happened(client):
    client.write("Invoices are rounded to cents", workspace="shop")
    client.write("Posts are written in Markdown", workspace="blog")
    assert [(day["workspace"], len(day["learned"])) for day in read(client)] == [("blog", 1), ("shop", 1)]
    assert [day["workspace"] for day in read(client, workspace="shop")] == ["shop"]
    assert read(client, workspace="nowhere") == []


def test_a_memory_of_another_day_is_not_listed(client):
    client.write("Invoices are rounded to cents")
    now = datetime.now(UTC)
    assert read(client, until=utc_text(now - timedelta(hours=1)), since=utc_text(now - timedelta(days=1))) == []
    assert read(client, since=utc_text(now + timedelta(minutes=5)), until=utc_text(now + timedelta(days=1))) == []
    assert len(read(client, since=utc_text(now - timedelta(days=1)))) == 1


def test_a_change_that_a_clock_ahead_of_ours_stamped_is_listed(client, container):
    client.write("Invoices are rounded to cents")
    ahead = datetime.now(UTC) + timedelta(minutes=1)
    with container.databases.get("default").write() as db:
        db.execute("UPDATE change SET hlc = printf('%014d', ?) || substr(hlc, 15)", (int(ahead.timestamp() * 1000),))
    (day,) = read(client)
    assert [row["what"] for row in day["learned"]] == ["learned"]


def test_an_edit_shows_the_sentence_of_the_morning(client):
    kept = client.write("The importer reads CSV")
    begin = utc_now()
    client.patch(f"/v1/memories/{kept}", {"content": "The importer reads CSV and TSV"})
    client.patch(f"/v1/memories/{kept}", {"content": "The importer reads CSV, TSV and XLSX"})
    client.patch(f"/v1/memories/{kept}", {"pinned": True})
    (day,) = read(client, since=begin)
    assert sentences(day["changed"]) == [("edited", "The importer reads CSV", "The importer reads CSV, TSV and XLSX")]
    assert day["changed"][0]["undo"]["method"] == "text"
    assert day["learned"] == []


def test_a_change_of_tags_is_no_change_of_a_sentence(client):
    kept = client.write("The importer reads CSV")
    begin = utc_now()
    client.patch(f"/v1/memories/{kept}", {"pinned": True, "tags": ["import"]})
    assert read(client, since=begin) == []


def test_a_memory_that_was_written_and_edited_today_is_learned_once(client):
    kept = client.write("The importer reads CSV")
    client.patch(f"/v1/memories/{kept}", {"content": "The importer reads TSV"})
    (day,) = read(client)
    assert sentences(day["learned"]) == [("learned", None, "The importer reads TSV")]
    assert day["changed"] == []


def test_a_new_value_is_listed_once_with_the_value_before(client):
    client.put("/v1/facts/sms-gateway/rate", {"value": "10 per second"})
    client.put("/v1/facts/sms-gateway/rate", {"value": "25 per second"})
    (day,) = read(client)
    assert sentences(day["changed"]) == [
        ("replaced", "sms gateway rate: 10 per second", "sms gateway rate: 25 per second")
    ]
    assert day["changed"][0]["undo"] == {"method": "value", "id": "sms_gateway/rate"}
    assert day["learned"] == []


def test_a_fact_that_ended_is_forgotten(client):
    client.put("/v1/facts/sms-gateway/rate", {"value": "10 per second"})
    assert client.delete("/v1/facts/sms-gateway/rate").status_code == 200
    (day,) = read(client)
    assert sentences(day["forgotten"]) == [("ended", None, "sms gateway rate: 10 per second")]


def test_a_superseded_statement_shows_both_sentences(client):
    old = client.write("Two approvals are needed for a pull request")
    new = client.write("One approval is enough for a pull request", edges=[{"kind": "supersedes", "to": old}])
    (day,) = read(client)
    (row,) = day["changed"]
    assert (row["before"], row["memory"]["id"]) == ("Two approvals are needed for a pull request", new)
    assert row["undo"] == {"method": "archive", "id": new}
    assert day["learned"] == []
    client.delete(f"/v1/memories/{new}")
    (day,) = read(client)
    assert [row["memory"]["id"] for row in day["learned"]] == [old]


def test_goals_are_set_and_reached(client):
    set_today = client.post("/v1/goals", {"title": "Ship the importer"}).get_json()["id"]
    (day,) = read(client)
    assert sentences(day["learned"]) == [("goal set", None, "Ship the importer")]
    begin = utc_now()
    client.patch(f"/v1/goals/{set_today}", {"status": "done"})
    (day,) = read(client, since=begin)
    assert sentences(day["changed"]) == [("goal reached", None, "Ship the importer")]


def test_an_archived_memory_can_be_restored(client):
    gone = client.write("A note that nobody needs")
    client.delete(f"/v1/memories/{gone}")
    (day,) = read(client)
    assert sentences(day["forgotten"]) == [("archived", None, "A note that nobody needs")]
    assert day["forgotten"][0]["undo"] == {"method": "restore", "id": gone}
    assert day["learned"] == []
    client.post(f"/v1/memories/{gone}/restore")
    (day,) = read(client)
    assert day["forgotten"] == []


def test_of_a_purged_memory_no_word_is_left(client):
    secret = client.write("The flumadiddle is behind the door")
    client.delete(f"/v1/memories/{secret}?hard=true")
    answer = client.get("/v1/today")
    assert "flumadiddle" not in answer.get_data(as_text=True)
    (day,) = answer.get_json()["items"]
    assert sentences(day["forgotten"]) == [("purged", None, None)]
    assert day["learned"] == []


def test_an_expired_memory_is_forgotten_and_comes_back_by_the_audit(client, worker, container):
    expires = utc_text(datetime.now(UTC) + timedelta(hours=1))
    gone = client.write("The staging server is down for an hour", expires_at=expires)
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET expires_at = ?", (utc_now(),))
    run_job(worker, "default", "archive")
    (day,) = read(client)
    assert sentences(day["forgotten"]) == [("expired", None, "The staging server is down for an hour")]
    assert undo(client, day["forgotten"][0]).get_json()["id"] == gone


@pytest.mark.parametrize(
    ("detail", "what"), [({"unused_days": 200}, "unused for a long time"), ({"branch": "x"}, "its branch was deleted")]
)
def test_an_automatic_archival_says_why(client, container, detail, what):
    gone = client.write("A memory that is archived by a job")
    with container.databases.get("default").write() as db:
        archive_memory(db, memories.get(db, gone), utc_now())
        audit.add(db, utc_now(), "archive", AuditAction.ARCHIVE, gone, detail=detail)
    (day,) = read(client)
    assert [row["what"] for row in day["forgotten"]] == [what]
    assert undo(client, day["forgotten"][0]).status_code == 200
    (day,) = read(client)
    assert day["forgotten"] == []


def test_many_imported_memories_are_only_counted(client):
    for number in range(LISTED_IMPORTS + 1):
        client.write(f"Note number {number} of the old tool", source="import")
    client.write("Invoices are rounded to cents")
    (day,) = read(client)
    assert day["imported"] == {"learned": LISTED_IMPORTS + 1}
    assert [row["memory"]["content"] for row in day["learned"]] == ["Invoices are rounded to cents"]


def test_a_few_imported_memories_are_listed(client):
    client.write("A note of the old tool", source="import")
    (day,) = read(client)
    assert day["imported"] == {}
    assert [row["memory"]["source"] for row in day["learned"]] == ["import"]


def test_a_candidate_is_not_learned_yet(client, container):
    client.write("It may be that the port is 8123")
    with container.databases.get("default").write() as db:
        db.execute("UPDATE memory SET candidate = 1")
    assert read(client) == []


@pytest.mark.parametrize("query", ["since=yesterday", "until=x", "workspace=../x", "day=1"])
def test_a_wrong_query_is_refused(client, query):
    assert client.get(f"/v1/today?{query}").status_code == 422
