"""Likely questions are answered before they come, never from what was true a moment ago, and it is told how often."""

import queue
import shutil
import threading

import pytest
import tomlkit

from pipeline.errors import EncoderUnavailable
from pipeline.lru import LruCache
from pipeline.recall.answer_cache import AnswerCache
from pipeline.services.prefetch import AnswerPrefetcher, LookResult, Rhythm
from pipeline.services.workspaces import agree_to_claim
from pipeline.store import predictions
from pipeline.store.predictions import Prediction, Reason

QUESTION = "Which port does billing listen on?"
OTHER = "Who is on call this week?"
ABOUT = "Billing listens on port 8123"
AT = "2026-11-21T00:00:00.000Z"
FAST = Rhythm(idle_s=0.02, apart_s=0.02, look_s=0.05, patience_s=0.05)
LONG_S = 30


class Watched(AnswerPrefetcher):
    """Tell what becomes of each look."""

    def __init__(self, *args):
        super().__init__(*args)
        self.results = queue.Queue()

    def look(self, workspace_id):
        result = super().look(workspace_id)
        self.results.put(result)
        return result

    def until(self, wanted):
        while self.results.get(timeout=LONG_S) is not wanted:
            continue


@pytest.fixture
def computed_texts(monkeypatch):
    """The texts of the queries that were computed, as against found among the kept ones."""
    texts = []
    compute = AnswerCache._compute

    def noted(self, key, *rest):
        texts.append(key[1].text)
        return compute(self, key, *rest)

    monkeypatch.setattr(AnswerCache, "_compute", noted)
    return texts


@pytest.fixture
def prefetcher(container):
    prefetcher = Watched(container.workspace, container.contexts, container.operations, FAST)
    # What the web server is told of, this one is told of.
    container.prefetcher = prefetcher
    yield prefetcher
    prefetcher.close()
    assert container.operations.errors(workspace="default", limit=5) == []


def foresee(container, *texts):
    with container.databases.get("default").write() as db:
        predictions.replace(db, [Prediction(text, Reason.REPEATED) for text in texts], AT)


def prefetch_all(prefetcher):
    """Look until everything is there: what was embedded a moment ago is taken in beside the traffic."""
    for _ in range(1000):
        if prefetcher.look("default") is LookResult.PREFETCHED:
            break
        threading.Event().wait(0.01)
    else:
        pytest.fail("nothing was foreseen")
    while not prefetcher.results.empty():
        prefetcher.results.get()


@pytest.fixture
def likely(container, client, digested, prefetcher):
    """A workspace in which a question is likely and its answer is there."""
    client.write(ABOUT)
    client.write("Ada is on call this week")
    digested()
    foresee(container, QUESTION)
    prefetch_all(prefetcher)
    return client


def prepare(client, message=QUESTION, **fields):
    return client.post("/v1/prepare", {"message": message, **fields}).get_json()


def hook(client, prompt=QUESTION, session_id="s1"):
    event = {"hook_event_name": "UserPromptSubmit", "prompt": prompt, "session_id": session_id}
    return client.post("/hooks/claude-code", event, headers={"X-Reverie-Workspace": "default"}).get_data(as_text=True)


def score(container, client):
    container.feedback.write_usage(container.workspace("default"))
    return client.get("/v1/stats").get_json()["predictions"]


def test_every_front_door_finds_its_answer_ready(likely, computed_texts):
    assert likely.recall(QUESTION)["results"][0]["content"] == ABOUT
    assert prepare(likely)["relevant"]
    assert prepare(likely, session_id="s1")["relevant"]
    assert prepare(likely, viewer={"agent": "ada", "user": "grace"})["relevant"]
    assert ABOUT in hook(likely)
    assert computed_texts == []
    likely.recall(OTHER)
    assert computed_texts == [OTHER]


def test_what_is_written_meanwhile_is_answered_and_then_foreseen_anew(likely, prefetcher, computed_texts, digested):
    newer = likely.write("Billing listens on port 9000 from now on")
    assert newer in likely.find_ids(QUESTION)
    assert computed_texts == [QUESTION]
    digested()
    prefetch_all(prefetcher)
    computed_texts.clear()
    assert newer in likely.find_ids(QUESTION)
    likely.delete(f"/v1/memories/{newer}")
    assert computed_texts == []
    assert newer not in likely.find_ids(QUESTION)
    assert computed_texts == [QUESTION]


def test_a_fact_that_is_set_meanwhile_is_told_at_once(likely):
    for value in (9000, 9001):
        likely.put("/v1/facts/billing/listen-port", {"value": value})
        told = {hit["content"] for hit in likely.recall(QUESTION)["results"]}
        assert {text for text in told if text.startswith("billing")} == {f"billing listen port: {value}"}


def test_who_has_memories_of_its_own_gets_an_answer_of_its_own(likely, prefetcher, digested, computed_texts):
    own = likely.write("Billing listens on port 7 in this session", scope={"kind": "session", "id": "s1"})
    digested()
    prefetch_all(prefetcher)
    computed_texts.clear()
    assert own in likely.find_ids(QUESTION, viewer={"session": "s1"})
    assert computed_texts == [QUESTION]
    assert own not in likely.find_ids(QUESTION, viewer={"session": "s2"})
    assert own not in likely.find_ids(QUESTION)
    assert computed_texts == [QUESTION]


def test_a_request_comes_first_and_the_rest_is_computed_later(
    likely, container, prefetcher, monkeypatch, computed_texts
):
    foresee(container, OTHER, QUESTION)
    noted = AnswerCache._compute

    def stirred(self, *args):
        prefetcher.notify_activity("default")
        return noted(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(AnswerCache, "_compute", stirred)
        assert prefetcher.look("default") is LookResult.INTERRUPTED
    assert computed_texts == [OTHER]
    assert prefetcher.look("default") is LookResult.PREFETCHED
    assert computed_texts == [OTHER] * 3
    assert prefetcher.look("default") is LookResult.AT_REST


def test_nothing_is_kept_while_a_channel_is_missing(likely, container, prefetcher, monkeypatch, computed_texts):
    def absent(_model):
        raise EncoderUnavailable("no encoder yet")

    monkeypatch.setattr(container.encoders, "get", absent)
    monkeypatch.setattr(container.contexts, "_kept", LruCache(1))
    foresee(container, OTHER, QUESTION)
    assert prefetcher.look("default") is LookResult.UNSETTLED
    # One is enough to know.
    assert computed_texts == [OTHER]


def test_an_idle_front_looks_ahead_by_itself(likely, container, prefetcher, computed_texts, digested):
    newer = likely.write("Billing listens on port 9000 from now on")
    digested()
    prefetcher.start()
    prefetcher.notify_activity("default")
    prefetcher.until(LookResult.PREFETCHED)
    computed_texts.clear()
    prefetcher.until(LookResult.AT_REST)
    assert newer in likely.find_ids(QUESTION)
    prepare(likely)
    assert computed_texts == []


def test_what_the_job_foresees_is_noticed_without_a_request(likely, container, prefetcher, computed_texts):
    prefetcher.start()
    prefetcher.notify_activity("default")
    prefetcher.until(LookResult.AT_REST)
    foresee(container, OTHER)
    prefetcher.until(LookResult.PREFETCHED)
    computed_texts.clear()
    likely.recall(OTHER)
    assert computed_texts == []


def test_a_workspace_that_is_gone_is_forgotten(likely, container, prefetcher):
    shutil.rmtree(container.settings.paths.workspace("default").events.parent)
    prefetcher.start()
    prefetcher.notify_activity("default")
    prefetcher.until(LookResult.GONE)
    assert prefetcher.results.empty()


def test_a_failing_workspace_is_told_of_and_the_others_are_looked_after(container, client, digested):
    client.write(ABOUT)
    digested()
    foresee(container, QUESTION)

    def workspace_of(workspace_id):
        if workspace_id == "broken":
            raise ValueError("broken")
        return container.workspace(workspace_id)

    prefetcher = Watched(workspace_of, container.contexts, container.operations, FAST)
    prefetcher.start()
    prefetcher.notify_activity("broken")
    prefetcher.notify_activity("default")
    prefetcher.until(LookResult.PREFETCHED)
    assert {one.message for one in container.operations.errors(workspace="broken", limit=5)} == {"ValueError: broken"}
    prefetcher.close()


def test_only_the_workspaces_that_were_asked_last_are_looked_after(container):
    prefetcher = AnswerPrefetcher(container.workspace, container.contexts, container.operations)
    for number in range(20):
        prefetcher.notify_activity(f"w{number}")
    assert list(prefetcher._due) == [f"w{number}" for number in range(12, 20)]


def test_the_hit_rate_is_shown(likely, container):
    assert likely.get("/v1/stats").get_json()["predictions"] == {"asked": 0, "foreseen": 0, "hit_rate": None}
    likely.recall(QUESTION)
    likely.recall(OTHER)
    likely.recall("")
    prepare(likely)
    hook(likely)
    assert score(container, likely) == {"asked": 4, "foreseen": 3, "hit_rate": 0.75}


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
    assert score(container, likely) == {"asked": 1, "foreseen": 0, "hit_rate": 0.0}
    assert count_queries(container) == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/hooks/claude-code",
            {"hook_event_name": "UserPromptSubmit", "prompt": "which port is it?", "session_id": "s"},
        ),
        ("/v1/prepare", {"message": "which port is it?"}),
    ],
)
def test_who_asks_from_a_folder_keeps_no_other_workspace_busy(client, container, prefetcher, tmp_path, path, body):
    (tmp_path / ".reverie.toml").write_text('workspace = "chosen"')
    agree_to_claim(container.settings, tmp_path / ".reverie.toml", "chosen")
    client.write("Staging listens on port 6543", workspace="chosen")
    prefetcher._due.clear()
    assert client.post(path, {**body, "cwd": str(tmp_path)}).status_code == 200
    assert list(prefetcher._due) == ["chosen"]


def test_a_purge_takes_every_question_along(likely, container, prefetcher):
    likely.recall(QUESTION)
    assert score(container, likely)["asked"] == 1
    [memory_id] = likely.find_ids(QUESTION, k=1)
    likely.delete(f"/v1/memories/{memory_id}?hard=true")
    assert count_queries(container) == 0
    with container.databases.get("default").read() as db:
        assert predictions.list_predictions(db) == []
