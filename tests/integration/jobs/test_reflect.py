"""Reflect: what a decision came from and came to, and what advanced a goal; drawn once, and not what was erased."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from config.workspace_configs import ConfigFiles, save_workspace_setting
from pipeline.features.maintenance.context import JobContext
from pipeline.features.maintenance.usecases import run_job
from pipeline.features.model.extractor import Failure, JobModel
from pipeline.kernel.times import utc_text
from tests.fakes.model_replies import ModelReplies, reply_with

CAUSE = "The importer crashed with a MemoryError in load_rows"
DECISION = "We decided to stream rows in load_rows instead of reading the file at once"
OUTCOME = "Fixed: load_rows streams and the importer passes now"


@pytest.fixture
def chain(client, digested, worker):
    """A failure, a decision about it and what it came to, in one session of some hours ago."""
    began = datetime.now(UTC) - timedelta(days=1)
    written = [
        client.write(text, kind=kind, session_id="s1", occurred_at=utc_text(began + timedelta(minutes=minute)))
        for minute, (text, kind) in enumerate(((CAUSE, "activity"), (DECISION, "decision"), (OUTCOME, "activity")))
    ]
    client.write("We decided to paint the door", kind="decision", session_id="s2", occurred_at=utc_text(began))
    with worker.databases.get("default").write() as db:
        db.execute("UPDATE memory SET created_at = ?", (utc_text(began),))
    digested()
    return written


def run(worker):
    return run_job(worker.context("default"), "reflect", worker.owner, lambda: False)


def links(client, memory_id):
    return [one["id"] for one in client.get(f"/v1/memories/{memory_id}").get_json()["chain"]]


def test_decision_links_to_its_causes_and_results(client, chain, worker):
    assert run(worker).report.counts["edges"] == 2
    for memory_id in chain:
        assert links(client, memory_id) == chain
    why = client.post("/v1/recall/why", {"query": "why do we stream", "id": chain[1]}).get_json()
    assert [one["id"] for one in why["chain"]] == chain
    assert "edges" not in run(worker).report.counts


def test_deleted_edge_is_not_created_again(client, chain, worker):
    run(worker)
    client.delete(f"/v1/memories/{chain[0]}/edges?kind=cause&to={chain[1]}")
    run(worker)
    assert links(client, chain[1]) == chain[1:]


def test_goal_lists_related_activities(client, worker, digested):
    goal = client.post("/v1/goals", {"title": "Make load_rows stream"}).get_json()["id"]
    done = client.write(OUTCOME, kind="activity")
    client.write("Watered the plants", kind="activity")
    digested()
    run(worker)
    (event,) = client.get(f"/v1/goals/{goal}").get_json()["events"]
    assert event["memory_id"] == done


def test_where_nothing_is_written_nothing_is_drawn(client, chain, worker, home):
    save_workspace_setting(ConfigFiles(home.paths), "default", "read_only", True)
    assert run(worker).report.counts == {}


def test_expired_memory_is_archived_by_the_job_and_audited(client, worker, digested):
    memory_id = client.write("The offer holds this week")
    client.patch(f"/v1/memories/{memory_id}", {"expires_at": "2020-01-01T00:00:00Z"})
    digested()
    run_job(worker.context("default"), "archive", worker.owner, lambda: False)
    assert client.get(f"/v1/memories/{memory_id}").get_json()["archived_at"] is not None
    (act,) = client.get("/v1/audit").get_json()["items"]
    assert (act["action"], act["memory_id"]) == ("archive", memory_id)


@pytest.fixture
def model(monkeypatch):
    """The replies of a model that jobs may ask."""
    replies = ModelReplies()
    monkeypatch.setattr("pipeline.features.model.extractor.post", replies.post)
    monkeypatch.setattr(JobContext, "model", lambda context: JobModel(context.database, replies.endpoint))
    return replies


def reply_with_links(*pairs):
    return reply_with(json.dumps({"links": [{"cause": cause, "effect": effect} for cause, effect in pairs]}))


def test_the_model_sees_a_session_once_and_links_more_of_it(client, worker, digested, model):
    began = datetime.now(UTC) - timedelta(days=1)
    texts = (("The night was long", "fact"), ("We decided to paint the door", "decision"), ("It is green", "fact"))
    first, decision, last = (
        client.write(text, kind=kind, session_id="s1", occurred_at=utc_text(began + timedelta(minutes=minute)))
        for minute, (text, kind) in enumerate(texts)
    )
    with worker.databases.get("default").write() as db:
        db.execute("UPDATE memory SET created_at = ?", (utc_text(began),))
    digested()
    # The last two are no pair of a cause and its later effect with a decision.
    model.reply = reply_with_links((first, decision), (decision, first), (first, last))
    assert run(worker).report.counts["by_model"] == 1
    assert links(client, decision) == [first, decision]
    model.reply = reply_with_links((decision, last))
    run(worker)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("reply", "times"),
    [
        (reply_with("no JSON"), 1),
        (reply_with_links(("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAW")), 1),
        (Failure.TIMEOUT, 2),
    ],
)
def test_without_a_useful_reply_the_rules_decide(client, chain, worker, model, reply, times):
    model.reply = reply
    assert run(worker).report.counts["edges"] == 2
    asked = len(model.requests)
    run(worker)
    assert len(model.requests) == times * asked
