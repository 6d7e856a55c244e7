"""Likely questions are answered before they come, never from what was true a moment ago, and it is told how often."""

from datetime import UTC, datetime

import pytest
import tomlkit

from pipeline.features.maintenance import usecases as maintenance
from pipeline.features.predictions import store as predictions
from pipeline.features.predictions.job import answer_questions, list_unanswered
from pipeline.features.predictions.store import Prediction, Reason
from pipeline.kernel.job_runs import JobRun
from pipeline.recall import search as module
from tests.fakes.in_process import HeldEncoder, open_web, open_worker, run_job
from web.http.app import create_app

QUESTION = "Which port does billing listen on?"
OTHER = "Who is on call this week?"
ABOUT = "Billing listens on port 8123"
AT = "2026-11-21T00:00:00.000Z"


@pytest.fixture
def computed_texts(monkeypatch):
    """The texts of the queries that were searched, as against answered from what is kept."""
    texts = []
    compute = module._answer

    def noted(context, query, *rest):
        texts.append(query.text)
        return compute(context, query, *rest)

    monkeypatch.setattr(module, "_answer", noted)
    return texts


def foresee(container, *texts):
    with container.databases.get("default").write() as db:
        predictions.replace(db, [Prediction(text, Reason.REPEATED) for text in texts], AT)


def answer_all(worker):
    """Answer what is foreseen, as the job does."""
    context = worker.context("default")
    assert not answer_questions(JobRun(context.database, datetime.now(UTC)), context.open_search)
    assert list_unanswered(context.database) == []


@pytest.fixture
def likely(container, client, digested, worker):
    """A workspace in which a question is likely and its answer is there."""
    client.write(ABOUT)
    client.write("Ada is on call this week")
    digested()
    foresee(container, QUESTION)
    answer_all(worker)
    return client


def prepare(client, message=QUESTION, **fields):
    return client.post("/v1/prepare", {"message": message, **fields}).get_json()


def hook(client, prompt=QUESTION, session_id="s1"):
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "session_id": session_id}
    return client.post("/hooks/claude-code", event, headers={"X-Reverie-Workspace": "default"}).get_data(as_text=True)


def score(container, client):
    container.feedback.write_usage(container.workspace("default"))
    return client.get("/v1/stats").get_json()["predictions"]


def test_every_entry_point_uses_the_stored_answer(likely, computed_texts):
    assert likely.recall(QUESTION)["results"][0]["content"] == ABOUT
    assert prepare(likely)["relevant"]
    assert prepare(likely, session_id="s1")["relevant"]
    assert prepare(likely, viewer={"agent": "ada", "user": "grace"})["relevant"]
    assert ABOUT in hook(likely)
    assert QUESTION not in computed_texts
    likely.recall(OTHER)
    assert OTHER in computed_texts


def test_the_answer_is_there_after_a_restart_and_before_the_encoder(likely, container, computed_texts):
    restarted = open_web(container.settings)
    restarted.encoders = HeldEncoder(None)
    response = (
        create_app(restarted)
        .test_client()
        .post("/v1/recall", json={"query": QUESTION}, headers={"Authorization": f"Bearer {restarted.token}"})
    )
    restarted.close()
    assert response.get_json()["results"][0]["content"] == ABOUT
    assert not response.get_json()["degraded"]
    assert computed_texts == []


def test_predicted_question_finds_new_memories_and_is_answered_again(likely, worker, computed_texts, digested):
    newer = likely.write("Billing listens on port 9000 from now on")
    assert newer in likely.find_ids(QUESTION)
    assert computed_texts == [QUESTION]
    digested()
    answer_all(worker)
    computed_texts.clear()
    assert newer in likely.find_ids(QUESTION)
    assert computed_texts == []
    likely.delete(f"/v1/memories/{newer}")
    assert newer not in likely.find_ids(QUESTION)
    assert computed_texts == [QUESTION]


def test_predicted_question_returns_a_newly_set_fact_immediately(likely):
    for value in (9000, 9001):
        likely.put("/v1/facts/billing/listen-port", {"value": value})
        told = {hit["content"] for hit in likely.recall(QUESTION)["results"]}
        assert {text for text in told if text.startswith("billing")} == {f"billing listen port: {value}"}


def after_pause():
    return datetime.now(UTC) + maintenance.PREDICT_PAUSE


def test_the_hit_rates_are_shown(likely, container):
    nothing = {"asked": 0, "foreseen": 0, "answered": 0, "hit_rate": None}
    assert likely.get("/v1/stats").get_json()["predictions"] == nothing
    likely.recall(QUESTION)
    likely.recall(OTHER)
    likely.recall("")
    prepare(likely)
    hook(likely)
    assert score(container, likely) == {"asked": 4, "foreseen": 3, "answered": 3, "hit_rate": 0.75}
    likely.write("The mill is closed")
    likely.recall(QUESTION)
    assert score(container, likely) == {"asked": 5, "foreseen": 4, "answered": 3, "hit_rate": 0.8}


def test_the_job_is_needed_as_soon_as_an_answer_is_outdated(likely, container, worker, digested):
    context = worker.context("default")
    assert not context.is_needed("predict")
    likely.write("Billing listens on port 9000 from now on")
    # Digestion comes first.
    assert context.is_needed("predict")
    assert maintenance.list_outdated_answers(context) == []
    digested()
    assert maintenance.list_outdated_answers(context, after_pause) == ["predict"]


def test_the_job_pauses_between_bursts_of_writes(client, container, worker, digested):
    client.write("Open the archive before winter", kind="goal")
    digested()
    context = worker.context("default")
    run_job(worker, "default", "predict")
    client.write("The archive has a second door")
    digested()
    assert context.is_needed("predict")
    assert maintenance.list_outdated_answers(context) == []
    assert maintenance.list_outdated_answers(context, after_pause) == ["predict"]


def test_the_job_collects_the_questions_and_answers_them(client, container, worker, digested, computed_texts):
    client.write("Open the archive before winter", kind="goal")
    digested()
    assert run_job(worker, "default", "predict").report.counts["goal"] == 1
    computed_texts.clear()
    assert client.recall("Open the archive before winter")["results"]
    assert computed_texts == []
    assert list_unanswered(container.databases.get("default")) == []


def test_without_an_encoder_nothing_is_answered_in_advance(likely, container):
    likely.write("The mill is closed")
    starting = open_worker(container.settings)
    starting.encoders = HeldEncoder(None)
    context = starting.context("default")
    assert not answer_questions(JobRun(context.database, datetime.now(UTC)), context.open_search)
    assert list_unanswered(context.database) == [QUESTION]
    starting.close()


def count_queries(container):
    with container.databases.get("default").read() as db:
        return db.execute("SELECT count(*) FROM query").fetchone()[0]


def test_incognito_nothing_is_counted_or_noted(likely, container):
    likely.post("/v1/incognito", {"session_id": "quiet"})
    likely.recall(QUESTION, session_id="quiet")
    likely.recall(QUESTION, viewer={"session": "quiet"})
    prepare(likely, session_id="quiet")
    hook(likely, session_id="quiet")
    assert score(container, likely)["asked"] == 0
    container.settings.paths.workspace("default").config.write_text(tomlkit.dumps({"incognito": True}))
    likely.recall(QUESTION)
    assert score(container, likely)["asked"] == 0
    assert count_queries(container) == 0


@pytest.mark.parametrize("text", ["long " * 41, "Is AKIAIOSFODNN7EXAMPLE the key of billing?"])
def test_a_long_question_and_one_with_a_secret_are_counted_only(likely, container, text):
    likely.recall(text)
    assert score(container, likely) == {"asked": 1, "foreseen": 0, "answered": 0, "hit_rate": 0.0}
    assert count_queries(container) == 0


def test_a_purge_takes_every_question_along(likely, container):
    likely.recall(QUESTION)
    assert score(container, likely)["asked"] == 1
    [memory_id] = likely.find_ids(QUESTION, k=1)
    likely.delete(f"/v1/memories/{memory_id}?hard=true")
    assert count_queries(container) == 0
    with container.databases.get("default").read() as db:
        assert predictions.list_predictions(db) == []
