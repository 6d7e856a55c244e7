"""The tasks over a real home, with a queue that only takes notes."""

import time
from dataclasses import replace
from functools import cache

import pytest
from huey.serializer import Serializer
from huey.storage import MemoryStorage

from pipeline.features.maintenance import usecases as maintenance
from pipeline.kernel.errors import IndexUnavailable
from pipeline.kernel.job_runs import Report
from pipeline.kernel.records import Stage
from pipeline.kernel.store import meta, work
from pipeline.kernel.workspace import WorkspaceSettings
from pipeline.sessions import import_usecases as session_import
from pipeline.sessions.import_usecases import AgentSummary, ImportSummary
from tests.fakes.homes import Home
from tests.fakes.in_process import open_worker
from tests.fakes.job_runs import replace_job
from workers import tasks
from workers.notifier import WakeUp


@pytest.fixture
def worker(home):
    """A worker whose commits wake others, as that of the tasks does."""
    worker = open_worker(home, tasks._woken.collect)
    yield worker
    worker.close()


@pytest.fixture
def sent(monkeypatch, worker):
    """What the tasks have sent, the most urgent first, and what they put off."""
    monkeypatch.setattr(tasks.huey, "storage", MemoryStorage())
    monkeypatch.setattr(tasks.huey, "serializer", Serializer())
    monkeypatch.setattr(tasks, "worker", lambda: worker)
    monkeypatch.setattr(tasks._woken, "_waiting", set())

    def read():
        # What is put off goes through the queue as well, with the moment on it.
        return [
            (task.name, *task.args, *((*task.kwargs.values(), "later") if task.eta else ()))
            for task in tasks.huey.pending()
        ]

    return read


digest, sweep, run_job = (task.call_local for task in (tasks.digest, tasks.sweep, tasks.run_job))
sync_home = tasks.sync_home.call_local


def errors(client, component):
    return [e["message"] for e in client.get("/v1/errors").get_json()["items"] if e["component"] == component]


def test_a_digest_works_off_its_stage_and_reports_the_worker(client, sent, worker):
    client.write("The port is 8123")
    digest("default", "embed")
    queue = client.get("/v1/queue").get_json()
    assert {stage: count for stage, count in queue["pending"].items() if count} == {"entities": 1, "dedup": 1}
    assert [worker["owner"] for worker in queue["workers"]] == [worker.owner]
    # What is embedded can be compared.
    assert sent() == [("digest", "default", "dedup")]


def test_embedded_memories_are_screened_before_others_are_embedded(sent):
    for stage in (Stage.EMBED, Stage.SCREEN):
        tasks.wake_workers(WakeUp("default", stage))
    assert sent() == [("digest", "default", "screen"), ("digest", "default", "embed")]


def test_unfinished_digestion_is_requested_again(client, sent, monkeypatch):
    monkeypatch.setattr(maintenance, "DIGEST_TURN_S", -1.0)
    for number in range(65):
        client.write(f"Memory {number}")
    digest("default", "embed")
    assert sent() == [("digest", "default", "embed"), ("digest", "default", "dedup")]


def test_a_memory_that_fails_is_tried_later_and_logged(client, sent, worker, monkeypatch):
    client.write("The port is 8123")
    monkeypatch.setattr(worker.encoder("default"), "encode_documents", lambda _texts: {}["no vector"])
    monkeypatch.setattr("pipeline.kernel.stage_loop.work.claim", once(work.claim))
    digest("default", "embed")
    # Later, or at once where the short wait of this home is over already.
    assert [message[:3] for message in sent()] == [("digest", "default", "embed")]
    assert errors(client, "digest.embed") == ["memory 1, embed: KeyError: 'no vector' (try 1 of 5)"]


def once(claim):
    """Let the first claim through and answer the others with nothing."""
    calls = []

    def first_only(*args, **named):
        calls.append(1)
        return claim(*args, **named) if len(calls) == 1 else []

    return first_only


def test_after_enough_writes_a_segment_is_asked_for(client, sent, worker):
    settings = replace(worker.settings, segment_tail_rows=2)
    worker.workspace_settings = WorkspaceSettings(settings, worker.stores)
    for number in range(2):
        client.write(f"Memory {number}")
    digest("default", "embed")
    # Words are not kept waiting by meaning.
    assert sent()[0] == ("run_job", "segment", "default")
    assert ("digest", "default", "dedup") in sent()
    run_job("segment", "default")
    assert client.get("/v1/stats").get_json()["index"]["tail_rows"] == 0


def make_counter(runs):
    return lambda _run, _context: runs.append(1) or Report()


def test_a_job_that_many_ticks_asked_for_runs_once(client, sent, worker, monkeypatch):
    client.write("The port is 8123")
    ran = []
    replace_job(monkeypatch, "arcs", make_counter(ran))
    for _tick in range(5):
        run_job("arcs", "default")
    assert len(ran) == 1
    client.post("/v1/jobs/arcs")
    for _sweep in range(5):
        run_job("arcs", "default")
    assert len(ran) == 2


def test_a_segment_that_is_wanted_is_built_though_it_was_built_just_now(client, sent, worker, monkeypatch):
    client.write("The port is 8123")
    run_job("segment", "default")
    ran = []
    replace_job(monkeypatch, "segment", make_counter(ran))
    run_job("segment", "default")
    assert ran == []
    with worker.databases.get("default").write() as db:
        meta.put(db, meta.SEGMENT_WANTED, "0")
    sweep("default")
    assert ("run_job", "segment", "default") in sent()
    run_job("segment", "default")
    assert ran == [1]


def test_continued_job_runs_without_a_new_change(client, sent, worker, monkeypatch):
    client.write("The port is 8123")
    ran = []
    replace_job(monkeypatch, "arcs", make_counter(ran))
    run_job("arcs", "default")
    run_job("arcs", "default", again=True)
    assert len(ran) == 2


def test_sweep_sends_pending_stages(client, sent):
    client.write("The port is 8123")
    sweep("default")
    assert set(sent()) == {("digest", "default", "embed"), ("digest", "default", "entities")}


def test_a_sweep_takes_the_work_of_a_worker_that_is_gone(client, sent, worker):
    client.write("The port is 8123")
    host = worker.owner.rsplit(":", 2)[0]
    for stage in Stage:
        with worker.databases.get("default").write() as db:
            work.claim(db, stage, f"{host}:1:0.00", limit=9, lease_s=1e9, now=0.0)
    sweep("default")
    assert ("digest", "default", "embed") in sent()


def test_sync_job_imports_changes_wakes_digestion_and_reports_failures(client, container, sent, worker, tmp_path):
    other = Home(tmp_path / "other")
    for sync in (container.sync, other.sync):
        sync.join(other.sync.invite())
        sync.add("disk", f"dir:{tmp_path}/shared")
    other.say("The port is 8123")
    other.sync.now()
    other.close()
    sync_home()
    assert client.find_ids("port")
    assert {("digest", "default", "embed"), ("digest", "default", "entities")} <= set(sent())
    (tmp_path / "shared").rename(tmp_path / "away")
    sync_home()
    [error] = errors(client, "sync.disk")
    assert "cannot be used" in error
    (tmp_path / "away").rename(tmp_path / "shared")
    sync_home()
    assert client.get("/v1/errors?open=true").get_json()["items"] == []
    for stage in ("embed", "entities", "dedup"):
        digest("default", stage)


def test_skipped_session_file_is_logged(client, sent, monkeypatch):
    problem = "/home/ann/chat.md is not read until it changes: it takes longer than 60 s to read."
    summary = ImportSummary({"aider": AgentSummary(set_aside=[problem]), "cline": AgentSummary()})
    monkeypatch.setattr(session_import, "import_sessions", lambda *_: summary)
    tasks.import_sessions.call_local(["aider", "cline"])
    assert errors(client, "sessions") == [problem]


def test_a_workspace_that_is_gone_is_no_error(client, sent):
    digest("gone", "embed")
    run_job("segment", "gone")
    sweep("gone")
    assert client.get("/v1/errors").get_json()["items"] == []
    assert sent() == []


def test_a_task_that_fails_is_logged_and_does_not_end_the_worker(client, sent, worker, monkeypatch):
    client.write("The port is 8123")

    def broken(*_args):
        raise IndexUnavailable("the disk is odd")

    monkeypatch.setattr(worker, "vectors", broken)
    digest("default", "embed")
    run_job("vectors", "default")
    assert errors(client, "digest.embed") == ["IndexUnavailable: the disk is odd"]
    assert errors(client, "job.vectors") == ["IndexUnavailable: the disk is odd"]
    assert client.get("/v1/queue").get_json()["pending"]["embed"] == 1


def test_a_job_that_was_asked_for_is_sent_by_a_sweep(client, sent):
    client.write("The port is 8123")
    client.post("/v1/jobs/segment")
    sweep("default")
    assert ("run_job", "segment", "default") in sent()


def test_a_job_with_more_to_do_comes_again(client, sent, worker, monkeypatch):
    client.write("The port is 8123")
    replace_job(monkeypatch, "arcs", lambda _run, _context: Report(more=True))
    run_job("arcs", "default")
    assert sent() == [("run_job", "arcs", "default", 1, True, "later")]


def test_a_job_that_fails_is_tried_again_a_few_times(client, sent, worker, monkeypatch):
    client.write("The port is 8123")
    replace_job(monkeypatch, "arcs", lambda _run, _context: {}["nothing"])
    for tries in range(1, maintenance.MOST_TRIES + 1):
        run_job("arcs", "default", tries=tries, again=tries > 1)
    assert sent() == [
        ("run_job", "arcs", "default", tries + 1, True, "later") for tries in range(1, maintenance.MOST_TRIES)
    ]
    assert len(errors(client, "job.arcs")) == maintenance.MOST_TRIES


def test_a_job_steps_back_for_written_memories(client, sent, worker, monkeypatch):
    client.write("The port is 8123")
    paused = []
    for name in ("arcs", "segment"):
        replace_job(monkeypatch, name, lambda run, _context: paused.append(run.pausing()) or Report())
    run_job("arcs", "default")
    run_job("segment", "default")
    assert paused == [True, False]


@pytest.mark.parametrize("stage", [Stage.EMBED, Stage.DEDUP])
def test_a_job_starts_after_the_backlog_that_a_worker_digests(client, sent, worker, monkeypatch, stage):
    database = worker.databases.get("default", create=True)
    for number in range(2):
        client.write(f"Memory {number}")
    digest("default", "embed")
    ran = []
    for name in ("arcs", "segment"):
        replace_job(monkeypatch, name, lambda _run, _context, name=name: ran.append(name) or Report())
    with database.write() as db:
        seqs = [row[0] for row in db.execute("SELECT seq FROM memory")]
        work.add(db, seqs, [stage], 0)
        items = work.claim(db, stage, worker.owner, limit=1, lease_s=60, now=time.time())
    run_job("arcs", "default")
    run_job("segment", "default")
    assert ran == ["segment"]
    # A message that waited does not run the job if another one has done so.
    assert [message for message in sent() if message[0] == "run_job"] == [
        ("run_job", "arcs", "default", 1, False, "later")
    ]
    with database.write() as db:
        work.release(db, items, worker.owner)
    # If nothing is digested, a repair must not wait for it.
    run_job("arcs", "default")
    assert ran == ["segment", "arcs"]


def test_a_purge_needs_no_encoder(client, sent, worker, monkeypatch):
    memory_id = client.write("The port is 8123")
    digest("default", "embed")
    client.delete(f"/v1/memories/{memory_id}?hard=true")

    def compile_for_minutes(_model):
        pytest.fail("a purge asked for the encoder")

    monkeypatch.setattr(worker.encoders, "get", compile_for_minutes)
    tasks.purge.call_local("default")
    assert client.get("/v1/queue").get_json()["pending"]["purge"] == 0
    assert errors(client, "digest.purge") == []
    assert ("run_job", "vectors", "default") not in sent()


def test_exiting_worker_closes_its_stores_and_opens_none(monkeypatch):
    closed, made = [], []

    class Container:
        def close(self):
            closed.append(self)

    @cache
    def make():
        made.append(Container())
        return made[-1]

    monkeypatch.setattr(tasks, "_make_worker", make)
    tasks.close_stores()
    assert made == []
    container = tasks.worker()
    tasks.close_stores()
    assert closed == [container]
