"""More workspaces than are kept open, visited by several clients at once: few files are open, and nothing is lost."""

import random
import shutil
import threading
from collections import Counter
from pathlib import Path

import pytest

from pipeline.kernel.store.pool import MOST_IDLE
from pipeline.recall.contexts import MOST_CONTEXTS
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import digest_all, fast_settings, flush_notes, open_web, open_worker
from web.http.app import create_app

WORKSPACES = [f"project-{number}" for number in range(3 * MOST_CONTEXTS)]
CLIENTS = 6
VISITS = 3 * len(WORKSPACES)
# Three files for each idle connection, and as much for each request that is being answered.
MOST_FILES = 3 * (MOST_IDLE + 3 * CLIENTS)


def open_files(container):
    """List the open files of the home."""
    targets = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            targets.append(str(entry.readlink()))
        except FileNotFoundError:
            continue
    return [target for target in targets if target.startswith(str(container.settings.paths.workspaces))]


def word(workspace, number):
    return f"{workspace.replace('-', '')}x{number}"


class Visitor:
    """A client that writes to workspaces in an order of its own, and asks for what anybody wrote there."""

    def __init__(self, client, number, written):
        self._client = client
        self._number = number
        self._written = written
        self.failures = []

    def run(self):
        choice = random.Random(self._number)
        for turn in range(VISITS // CLIENTS):
            workspace = choice.choice(WORKSPACES)
            try:
                self._visit(workspace, self._number * VISITS + turn)
            except Exception as error:  # noqa: BLE001 - shown by the test
                self.failures.append(repr(error))

    def _visit(self, workspace, number):
        headers = {"X-Reverie-Workspace": workspace}
        text = f"The word of the day is {word(workspace, number)}"
        answer = self._client.post("/v1/memories", {"content": text}, headers=headers)
        assert answer.status_code == 201, answer.get_json()
        self._written[workspace, number] = answer.get_json()["id"]
        asked = random.Random(number).choice([key for key in list(self._written) if key[0] == workspace])
        assert ask(self._client, *asked)[0] == self._written[asked], asked


def ask(client, workspace, number):
    body = {"query": word(workspace, number), "k": 3}
    answer = client.post("/v1/recall", body, headers={"X-Reverie-Workspace": workspace})
    assert answer.status_code == 200, answer.get_json()
    assert answer.get_json()["channels"]["lexical"]["state"] == "ok"
    return [hit["id"] for hit in answer.get_json()["results"]]


@pytest.fixture(scope="module")
def container(module_container):
    return module_container


@pytest.fixture(scope="module")
def visited(container):
    """What was written by clients that visited the workspaces at the same time: ids by workspace and number."""
    written = {}
    app = create_app(container)
    visitors = [Visitor(CheckedClient(app, container.token), number, written) for number in range(CLIENTS)]
    threads = [threading.Thread(target=visitor.run) for visitor in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [failure for visitor in visitors for failure in visitor.failures] == []
    return written


@pytest.fixture
def worker(container):
    worker = open_worker(container.settings)
    yield worker
    worker.close()


def test_nothing_is_lost_where_more_is_visited_than_is_kept_open(container, client, worker, visited):
    assert len(visited) == VISITS
    assert len(open_files(container)) <= MOST_FILES
    # Workers, too, turn from one to the next.
    for workspace in sorted({workspace for workspace, _ in visited}):
        digest_all(worker, workspace)
    for (workspace, number), memory in visited.items():
        assert ask(client, workspace, number)[0] == memory
    assert len(open_files(container)) <= 2 * MOST_FILES
    written = Counter(workspace for workspace, _ in visited)
    for workspace, count in written.items():
        answer = client.get("/v1/stats", headers={"X-Reverie-Workspace": workspace})
        assert answer.get_json()["memories"]["active"] == count


def test_usage_of_many_workspaces_is_written_and_dropped_from_memory(container, visited):
    flush_notes(container)
    for workspace in {workspace for workspace, _ in visited}:
        container.feedback.write_usage(container.workspace(workspace))
        with container.databases.get(workspace).read() as db:
            assert db.execute("SELECT sum(recall_count) FROM memory").fetchone()[0] > 0
    assert container.feedback._usage == {}


def test_a_failure_of_the_first_load_is_logged_and_the_rest_is_loaded(container):
    loaded = []

    def fail():
        raise ImportError("no module of hooks")

    container.encoders.load = loaded.append
    container._load(fail, lambda: loaded.append("afterwards"))
    assert loaded[-1] == "afterwards"
    assert not container.contexts.is_warming
    with container.operations.tables.write() as db:
        assert ("warm-up", "ImportError: no module of hooks") in db.execute(
            "SELECT component, message FROM error"
        ).fetchall()


@pytest.mark.usefixtures("visited")
def test_a_new_web_server_opens_no_workspace_before_it_is_asked(container, tmp_path):
    home = shutil.copytree(container.settings.home, tmp_path / "home")
    restarted = open_web(fast_settings(home))
    restarted.encoders.load = lambda _model: None
    try:
        create_app(restarted)
        restarted._load(lambda: None, lambda: None)
        assert {target for target in open_files(restarted) if "/default/" not in target} == set()
    finally:
        restarted.close()
