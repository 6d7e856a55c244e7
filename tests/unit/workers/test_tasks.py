"""The tasks over a real home, with a queue that only takes notes."""

import pytest

from pipeline.errors import IndexUnavailable
from pipeline.jobs.night import Report
from pipeline.records import Stage
from pipeline.store import meta, work
from workers import tasks


class NotedTask:
    def __init__(self, noted, name):
        self._noted = noted
        self._name = name

    def __call__(self, *names, **_options):
        self._noted.append((self._name, *names))

    def schedule(self, names, options=None, *, delay):
        self._noted.append((self._name, *names, *(options or {}).values(), "later"))
        assert delay >= 0


class NotedQueue:
    def __init__(self):
        self.noted = []
        for name in ("digest", "run_job", "sweep"):
            setattr(self, name, NotedTask(self.noted, name))


@pytest.fixture
def noted(monkeypatch, back):
    queue = NotedQueue()
    monkeypatch.setattr(tasks, "queue", lambda: queue)
    monkeypatch.setattr(tasks, "back", lambda: back)
    monkeypatch.setattr(back, "ring", queue.digest)
    return queue.noted


def errors(client, component):
    return [e["message"] for e in client.get("/v1/errors").get_json()["items"] if e["component"] == component]


def test_a_digest_works_off_its_stage_and_reports_the_worker(client, noted, back):
    client.write("The port is 8123")
    tasks.digest("default", "embed")
    queue = client.get("/v1/queue").get_json()
    assert queue["pending"] == {"embed": 0, "entities": 1, "dedup": 1, "purge": 0}
    assert [worker["owner"] for worker in queue["workers"]] == [back.owner]
    # What is embedded can be compared.
    assert noted == [("digest", "default", "dedup")]


def test_what_a_turn_leaves_is_rung_for_again(client, noted, monkeypatch):
    monkeypatch.setattr(tasks, "TURN_S", -1.0)
    for number in range(65):
        client.write(f"Memory {number}")
    tasks.digest("default", "embed")
    assert noted == [("digest", "default", "embed"), ("digest", "default", "dedup")]


def test_a_memory_that_fails_is_tried_later_and_logged(client, noted, back, monkeypatch):
    client.write("The port is 8123")
    monkeypatch.setattr(back.encoder, "encode_documents", lambda _texts: {}["no vector"])
    monkeypatch.setattr("pipeline.digest.digest.work.claim", once(work.claim))
    tasks.digest("default", "embed")
    # Later, or at once where the short wait of this home is over already.
    assert [message[:3] for message in noted] == [("digest", "default", "embed")]
    assert errors(client, "digest.embed") == ["memory 1, embed: KeyError: 'no vector' (try 1 of 5)"]


def once(claim):
    """Let the first claim through and answer the others with nothing."""
    calls = []

    def first_only(*args, **named):
        calls.append(1)
        return claim(*args, **named) if len(calls) == 1 else []

    return first_only


def test_after_enough_writes_a_segment_is_asked_for(client, noted, back):
    back.settings = back.settings.model_copy(update={"segment_tail_rows": 2})
    for number in range(2):
        client.write(f"Memory {number}")
    tasks.digest("default", "embed")
    assert noted == [("digest", "default", "dedup"), ("run_job", "segment", "default")]
    tasks.run_job("segment", "default")
    assert client.get("/v1/stats").get_json()["index"]["tail_rows"] == 0


def counting(runs):
    return lambda _night: runs.append(1) or Report()


def test_a_job_that_many_ticks_asked_for_runs_once(client, noted, back, monkeypatch):
    client.write("The port is 8123")
    ran = []
    monkeypatch.setattr(back, "jobs", lambda _workspace: {"arcs": counting(ran)})
    for _tick in range(5):
        tasks.run_job("arcs", "default")
    assert len(ran) == 1
    client.post("/v1/jobs/arcs")
    for _sweep in range(5):
        tasks.run_job("arcs", "default")
    assert len(ran) == 2


def test_a_segment_that_is_wanted_is_built_though_it_was_built_just_now(client, noted, back, monkeypatch):
    client.write("The port is 8123")
    tasks.run_job("segment", "default")
    ran = []
    monkeypatch.setattr(back, "jobs", lambda _workspace: {"segment": counting(ran)})
    tasks.run_job("segment", "default")
    assert ran == []
    with back.databases.get("default").write() as db:
        meta.put(db, meta.SEGMENT_WANTED, "0")
    tasks.sweep("default")
    assert ("run_job", "segment", "default") in noted
    tasks.run_job("segment", "default")
    assert ran == [1]


def test_what_goes_on_or_is_tried_again_needs_no_new_reason(client, noted, back, monkeypatch):
    client.write("The port is 8123")
    ran = []
    monkeypatch.setattr(back, "jobs", lambda _workspace: {"arcs": counting(ran)})
    tasks.run_job("arcs", "default")
    tasks.run_job("arcs", "default", again=True)
    assert len(ran) == 2


def test_a_sweep_rings_for_what_waits(client, noted):
    client.write("The port is 8123")
    tasks.sweep("default")
    assert set(noted) == {("digest", "default", "embed"), ("digest", "default", "entities")}


def test_a_sweep_takes_the_work_of_a_worker_that_is_gone(client, noted, back):
    client.write("The port is 8123")
    host = back.owner.rsplit(":", 2)[0]
    for stage in Stage:
        with back.databases.get("default").write() as db:
            work.claim(db, stage, f"{host}:1:0.00", limit=9, lease_s=1e9, now=0.0)
    tasks.sweep("default")
    assert ("digest", "default", "embed") in noted


def test_a_workspace_that_is_gone_is_no_error(client, noted):
    tasks.digest("gone", "embed")
    tasks.run_job("segment", "gone")
    tasks.sweep("gone")
    assert client.get("/v1/errors").get_json()["items"] == []
    assert noted == []


def test_a_task_that_fails_is_logged_and_does_not_end_the_worker(client, noted, back, monkeypatch):
    client.write("The port is 8123")

    def broken(*_args):
        raise IndexUnavailable("the disk is odd")

    monkeypatch.setattr(back, "vectors", broken)
    tasks.digest("default", "embed")
    tasks.run_job("vectors", "default")
    assert errors(client, "digest.embed") == ["IndexUnavailable: the disk is odd"]
    assert errors(client, "job.vectors") == ["IndexUnavailable: the disk is odd"]
    assert client.get("/v1/queue").get_json()["pending"]["embed"] == 1


def test_a_job_that_was_asked_for_is_sent_by_a_sweep(client, noted):
    client.write("The port is 8123")
    client.post("/v1/jobs/segment")
    tasks.sweep("default")
    assert ("run_job", "segment", "default") in noted


def test_a_job_with_more_to_do_comes_again(client, noted, back, monkeypatch):
    client.write("The port is 8123")
    monkeypatch.setattr(back, "jobs", lambda _workspace: {"arcs": lambda _night: Report(more=True)})
    tasks.run_job("arcs", "default")
    assert noted == [("run_job", "arcs", "default", True, "later")]


def test_a_job_that_fails_is_tried_again_a_few_times(client, noted, back, monkeypatch):
    client.write("The port is 8123")
    monkeypatch.setattr(back, "jobs", lambda _workspace: {"arcs": lambda _night: {}["nothing"]})
    for tries in range(1, tasks.JOB_TRIES + 1):
        tasks.run_job("arcs", "default", tries=tries, again=tries > 1)
    assert noted == [("run_job", "arcs", "default", tries + 1, True, "later") for tries in range(1, tasks.JOB_TRIES)]
    assert len(errors(client, "job.arcs")) == tasks.JOB_TRIES


def test_a_job_steps_back_for_written_memories(client, noted, back, monkeypatch):
    client.write("The port is 8123")
    paused = []
    monkeypatch.setattr(
        back,
        "jobs",
        lambda _workspace: {
            name: lambda night: paused.append(night.pausing()) or Report() for name in ("arcs", "segment")
        },
    )
    tasks.run_job("arcs", "default")
    tasks.run_job("segment", "default")
    assert paused == [True, False]
