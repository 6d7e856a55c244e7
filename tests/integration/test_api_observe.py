"""Queue, statistics, errors, workspaces and metrics over HTTP."""

import platform

import pytest
from prometheus_client.parser import text_string_to_metric_families

from config.process import process_owner
from pipeline.kernel.records import Stage
from tests.fakes.in_process import digest_stage
from web.version import VERSION


class FailingStage:
    def load(self):
        pass

    def run(self, *_claimed):
        raise ValueError("this memory cannot be digested")


def test_the_queue_counts_down_to_nothing(client, digested):
    client.write("The port is 8123")
    queue = client.get("/v1/queue").get_json()
    assert {stage: count for stage, count in queue["pending"].items() if count} == {"embed": 1, "entities": 1}
    assert queue["oldest_pending_s"] >= 0
    digested()
    queue = client.get("/v1/queue").get_json()
    assert set(queue["pending"].values()) == {0}
    assert queue["oldest_pending_s"] is None


def test_only_living_workers_are_named(client, container):
    client.write("The port is 8123")
    container.operations.report_worker(process_owner())
    container.operations.report_worker(process_owner().rsplit(":", 1)[0] + ":1.00")
    assert [w["owner"] for w in client.get("/v1/queue").get_json()["workers"]] == [process_owner()]


def test_dead_letters_are_counted_and_get_a_fresh_start(client, container, worker, digested):
    client.write("The port is 8123")
    client.write("The port is 9000")
    errors = []
    digest_stage(worker, Stage.EMBED, FailingStage(), errors.append)
    assert sum("dead letter" in message for message in errors) == 2
    assert client.get("/v1/queue").get_json()["dead"]["embed"] == 2
    assert client.post("/v1/queue/retry", {"stage": "entities"}).get_json() == {"retried": 0}
    container.notify.sent.clear()
    assert client.post("/v1/queue/retry").get_json() == {"retried": 2}
    assert container.notify.sent == [("default", None)]
    digested()
    queue = client.get("/v1/queue").get_json()
    assert set(queue["pending"].values()) == set(queue["dead"].values()) == {0}


@pytest.mark.parametrize("body", [{"stage": "sleepwalk"}, {"stage": 1}, {"all": True}])
def test_invalid_queue_retry_is_rejected(shared, body):
    assert shared.post("/v1/queue/retry", body).status_code == 422


def test_statistics_count_memories_and_index_rows(client, digested, worker):
    for number in range(3):
        client.write(f"Memory {number} is near Zurich with Ada Byron", kind="lesson", session_id=f"s{number % 2}")
    client.write("From elsewhere", source="import")
    gone = client.write("Soon gone")
    client.delete(f"/v1/memories/{gone}")
    digested()
    stats = client.get("/v1/stats").get_json()
    assert stats["memories"] == {
        "active": 4,
        "archived": 1,
        "sessions": 2,
        "by_kind": {"fact": 1, "lesson": 3},
        "by_source": {"import": 1, "user": 3},
    }
    assert stats["graph"] == {"entities": 2, "mentions": 6}
    assert (stats["index"]["segment"], stats["index"]["tail_rows"], stats["index"]["passages"]) == (None, 4, 5)
    assert stats["bytes"]["events"] > 0
    assert stats["bytes"]["vectors"] > 0
    worker.context("default").rebuild_segment()
    index = client.get("/v1/stats").get_json()["index"]
    assert (index["segment"] is not None, index["tail_rows"]) == (True, 0)


def test_errors_page_newest_first_and_stay_in_their_workspace(client, container):
    for number in range(5):
        container.operations.record_error("digest.embed", f"failure {number}", workspace="default")
    container.operations.record_error("digest.embed", "elsewhere", workspace="other")
    container.operations.record_error("notifier", "everywhere")
    page = client.get("/v1/errors?limit=4").get_json()
    assert [e["message"] for e in page["items"]] == ["everywhere", "failure 4", "failure 3", "failure 2"]
    rest = client.get(f"/v1/errors?limit=4&cursor={page['next_cursor']}").get_json()
    assert [e["message"] for e in rest["items"]] == ["failure 1", "failure 0"]
    assert rest["next_cursor"] is None


def test_workspaces_are_listed_with_their_size(client):
    client.write("One", workspace="beta")
    client.write("One", workspace="alpha")
    client.write("Two", workspace="alpha")
    found = client.get("/v1/workspaces").get_json()
    assert [(item["id"], item["memories"], item["model"]) for item in found["items"]] == [
        ("alpha", 2, "hash"),
        ("beta", 1, "hash"),
    ]
    assert found["next_cursor"] is None


def test_metrics_are_prometheus_text(client):
    client.write("The port is 8123", workspace="alpha")
    client.get("/v1/unknown-path")
    response = client.get("/metrics")
    assert response.content_type.startswith("text/plain")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.get_data(as_text=True))
        for sample in family.samples
    }
    assert samples["reverie_work_pending", ("stage", "embed"), ("workspace", "alpha")] == 1
    requests = "reverie_http_requests_total"
    assert samples[requests, ("endpoint", "/v1/memories"), ("method", "POST"), ("status", "201")] == 1
    assert samples[requests, ("endpoint", "unknown"), ("method", "GET"), ("status", "404")] == 1
    assert not any("unknown-path" in str(key) for key in samples)
    assert samples["reverie_workspace_up", ("workspace", "alpha")] == 1
    assert samples["reverie_work_oldest_age_seconds", ("workspace", "alpha")] >= 0
    assert samples["process_resident_memory_bytes",] > 2**20
    assert ("reverie_snapshot_age_seconds", ("workspace", "alpha")) not in samples


def read_samples(client):
    text = client.get("/metrics").get_data(as_text=True)
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_count_recalls_and_hook_events_by_outcome(client, container):
    client.write("Billing listens on port 8123")
    client.post("/v1/recall", json={"query": "which port does billing listen on"})
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Which port does billing listen on?"}
    client.post("/hooks/claude-code", json=event, headers={"X-Reverie-Workspace": "default"})
    client.post("/hooks/claude-code", json={"hook_event_name": "x" * 50})
    samples = read_samples(client)
    assert samples["reverie_recalls_total", "whole"] == 2
    assert samples["reverie_recalls_total", "degraded"] == 0
    told = {key[1:]: value for key, value in samples.items() if key[0] == "reverie_hook_events_total"}
    assert told[tuple(sorted(("claude-code", "UserPromptSubmit", "told")))] == 1
    assert told[tuple(sorted(("claude-code", "other", "quiet")))] == 1
    assert len(told) == 2


def test_unreadable_workspace_is_reported_as_down(client, container):
    client.write("One", workspace="alpha")
    file = container.settings.paths.workspace("beta").events
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database" * 500)
    samples = read_samples(client)
    file.unlink()
    assert samples["reverie_workspace_up", "alpha"] == 1
    assert samples["reverie_workspace_up", "beta"] == 0
    assert samples["reverie_build_info", *sorted((VERSION, platform.python_version()))] == 1
