import threading
from concurrent.futures import Future
from dataclasses import replace

import pytest

from pipeline.kernel.records import Draft
from pipeline.kernel.store import runs
from pipeline.kernel.times import utc_now
from pipeline.write.accept import accept
from tests.fakes.command_line import serve_app
from web.http.client import Client
from web.http.metrics import LOOKS
from web.http.streams import Streams
from web.stack.supervisor import next_look_s, watch_idleness

DEADLINE_S = 20
AGAIN_S = 0.05


@pytest.fixture
def served(container):
    with serve_app(container) as port, Client(f"http://127.0.0.1:{port}", container.token) as client:
        yield client


def let_rest(container, minutes=10):
    """Set the clock of the last request back."""
    container.requested -= minutes * 60


def test_a_request_for_the_memory_is_use_and_a_look_at_the_stack_is_not(client, container, app):
    # Every stream is told what is new and ends.
    app.extensions["dashboard_streams"] = Streams(0, container.stopping)
    client.write("The port is 8123.")
    for path in sorted(LOOKS):
        let_rest(container)
        assert client.get(path.replace("<workspace>", "default")).status_code == 200
        assert client.get("/healthz").get_json()["idle_s"] >= 600
    let_rest(container)
    assert client.get("/v1/stats", headers={"Authorization": "Bearer nobody"}).status_code == 401
    assert client.get("/healthz").get_json()["idle_s"] >= 600
    client.post("/hooks/claude-code", {"hook_event_name": "Stop", "session_id": "s", "cwd": ""})
    assert client.get("/healthz").get_json()["idle_s"] < 60
    let_rest(container)
    client.recall("port")
    assert client.get("/healthz").get_json()["idle_s"] < 60
    let_rest(container)
    client.post("/v1/queue/retry", {})
    assert client.get("/healthz").get_json()["idle_s"] < 60


def test_recently_used_stack_waits_for_the_remaining_idle_time(served, container):
    container.requested -= 45
    left = next_look_s(served, 60, AGAIN_S)
    assert 0 < left <= 15


def test_empty_data_directory_allows_the_stack_to_stop(served, container):
    let_rest(container)
    assert next_look_s(served, 60, AGAIN_S) is None


def test_pending_work_in_any_workspace_keeps_the_stack_running(served, container, worker, digested):
    accept(container.databases.get("other", create=True), Draft("The port is 8123."))
    accept(container.databases.get("default", create=True), Draft("The port is 8123."))
    digested("default")
    let_rest(container)
    assert next_look_s(served, 60, AGAIN_S) == AGAIN_S
    digested("other")
    assert next_look_s(served, 60, AGAIN_S) is None


def test_a_job_that_runs_keeps_the_stack_up(served, container):
    database = container.databases.get("default", create=True)
    with database.write() as db:
        run_id = runs.begin(db, "decay", utc_now(), 0)
    let_rest(container)
    assert next_look_s(served, 60, AGAIN_S) == AGAIN_S
    with database.write() as db:
        runs.end(db, run_id, utc_now(), {}, None)
    assert next_look_s(served, 60, AGAIN_S) is None


def test_a_server_that_does_not_answer_is_not_known_to_be_idle():
    assert next_look_s(Client("http://127.0.0.1:9"), 60, AGAIN_S) == AGAIN_S


def test_idle_watch_stops_once_and_only_if_enabled(container, home):
    stopped: Future[str] = Future()
    with serve_app(container) as port:
        settings = replace(home, port=port, idle_exit_min=0.001)
        end = watch_idleness(settings, stopped.set_result, AGAIN_S)
        assert stopped.result(DEADLINE_S) == "0.001 min without a request"
        end()
        threads = threading.active_count()
        watch_idleness(replace(home, port=port), lambda _why: pytest.fail("it was never asked to stop"))()
        assert threading.active_count() <= threads
