import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from config.settings import load_settings
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.records import Draft
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import PROFILE, accept_batch
from web.http.client import Client

pytestmark = pytest.mark.timeout(120)

REVERIE = str(Path(sys.executable).parent / "reverie")
WORKER = "workers.tasks.huey"
DEADLINE_S = 40


def eventually(condition, what):
    """Wait until a condition holds and return its value."""
    end = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {DEADLINE_S} s: {what}"
        pause.wait(0.05)
    return value


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LocalStack:
    """A home of its own, and what runs on it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.folder = root / "somewhere"
        # Folders by the names of our packages, where the command is called, must not be mistaken for them.
        for name in ("web", "workers", "config"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "__init__.py").write_text("raise SystemExit('taken for ours')")
        self.port = free_port()
        self.environment = os.environ | {
            "REVERIE_HOME": str(self.home),
            "REVERIE_PORT": str(self.port),
            "REVERIE_WORKER_PROCESSES": "1",
            # One that cannot be compiled: nothing here waits for a model.
            "REVERIE_EMBEDDING_MODEL": "no-such-model",
            "HF_HUB_OFFLINE": "1",
        }
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *command):
        process = subprocess.Popen(
            command,
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.started.append(process)
        return process

    def up(self):
        process = self.start(REVERIE, "up")
        eventually(self.answers, "the server answers")
        return process

    def run(self, *arguments):
        return subprocess.run(
            [REVERIE, *arguments],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    def status(self):
        return json.loads(self.run("status", "--json").stdout)

    def client(self):
        settings = {k: v for k, v in self.environment.items() if k.startswith("REVERIE_")}
        return Client.from_settings(load_settings(settings), timeout_s=10)

    def answers(self):
        with self.client() as client:
            try:
                return client.health()["status"] == "ok"
            except ReverieError:
                return False

    def processes(self, module=None):
        """Everything alive that was started for this home, or of it the processes of one module."""
        found = []
        for process in psutil.process_iter():
            try:
                ours = process.environ().get("REVERIE_HOME") == str(self.home)
                if not ours or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if module is None or module in process.cmdline():
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def family(self, module):
        """The process of a module and its forks, the parent first."""
        found = self.processes(module)
        pids = {process.pid for process in found}
        return sorted(found, key=lambda process: process.ppid() in pids)

    def is_empty(self):
        return not self.processes()

    def clear(self):
        for process in self.processes():
            process.kill()
        for process in self.started:
            process.kill()
            process.communicate()


@pytest.fixture
def stack(tmp_path):
    stack = LocalStack(tmp_path)
    yield stack
    stack.clear()


def wait_for_end(process, seconds=DEADLINE_S):
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output.decode()


def test_it_answers_and_recalls_before_there_is_an_encoder(stack):
    stack.up()
    with stack.client() as client:
        assert client.health()["encoder"] == "loading"
        receipt = client.remember({"content": "The cache is written behind the queue."})
        answer = client.recall({"query": "cache queue", "budget_ms": 10_000})
    assert [hit["id"] for hit in answer["results"]] == [receipt["id"]]
    assert answer["channels"]["lexical"]["state"] == "ok"
    assert answer["channels"]["dense"]["state"] != "ok"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything(stack, number):
    supervisor = stack.up()
    # It may be asked before all of its processes have come so far as to handle a signal.
    supervisor.send_signal(number)
    code, output = wait_for_end(supervisor)
    assert code == 0, output
    assert f"{number.name}: stopping" in output
    eventually(stack.is_empty, "no process is left")


def test_killing_the_supervisor_leaves_no_orphan(stack):
    supervisor = stack.up()
    eventually(lambda: len(stack.family(WORKER)) == 3, "the worker has its processes")
    supervisor.kill()
    eventually(stack.is_empty, "every process notices")


def test_next_command_restarts_a_killed_stack_but_not_a_stopped_stack(stack):
    supervisor = stack.up()
    stack.run("remember", "The cache is written behind the queue")
    supervisor.kill()
    # Until its processes have noticed, they answer.
    eventually(stack.is_empty, "every process notices")
    recalled = stack.run("recall", "cache queue")
    assert "The cache is written behind the queue" in recalled.stdout, recalled.stderr
    assert "Reverie ended unexpectedly; starting it again" in recalled.stderr
    assert stack.run("down").returncode == 0
    refused = stack.run("recall", "cache queue")
    assert refused.returncode == 1
    assert "No Reverie server answers" in refused.stderr
    log = (stack.home / "logs" / "reverie.log").read_text(encoding="utf-8")
    assert re.search(r"^reverie +\| \d{4}-\d\d-\d\d \d\d:\d\d:\d\d SIGTERM: stopping$", log, re.MULTILINE)


def test_killing_the_supervisor_at_once_leaves_no_orphan(stack):
    # Before its processes could look who their parent is.
    supervisor = stack.start(REVERIE, "up")
    eventually(lambda: stack.processes("workers.schedule"), "the last process is started")
    supervisor.kill()
    eventually(stack.is_empty, "every process notices")


def test_killed_process_is_restarted_and_leaves_no_orphan(stack):
    supervisor = stack.up()
    eventually(lambda: len(stack.family(WORKER)) == 3, "the worker has its processes")
    before = {name: stack.family(name) for name in ("web", WORKER, "workers.schedule")}
    for family in before.values():
        family[0].kill()
    old = [process for family in before.values() for process in family]
    for name in before:
        eventually(lambda name=name: set(stack.processes(name)) - set(old), f"{name} comes back")
    eventually(lambda: not any(process.is_running() for process in old), "the old ones are gone")
    eventually(stack.answers, "the server answers again")
    consumer, fork, *_ = eventually(lambda: len(f := stack.family(WORKER)) == 3 and f, "the new worker's processes")
    fork.kill()
    eventually(lambda: len(stack.family(WORKER)) == 3 and fork not in stack.processes(), "a new one")
    assert stack.family(WORKER)[0] == consumer
    assert supervisor.poll() is None
    supervisor.terminate()
    code, output = wait_for_end(supervisor)
    assert code == 0
    assert "web ended (SIGKILL); starting it again" in output


def test_a_second_up_refuses_and_down_stops_the_first(stack):
    supervisor = stack.up()
    for arguments in (["up"], ["up", "--daemon"]):
        answer = stack.run(*arguments)
        assert answer.returncode == 1
        assert f"already running on {stack.home} (pid {supervisor.pid})" in answer.stderr
    assert stack.answers()
    answer = stack.run("down")
    assert answer.returncode == 0
    assert f"supervisor (pid {supervisor.pid})" in answer.stdout
    assert wait_for_end(supervisor)[0] == 0
    assert stack.is_empty()
    answer = stack.run("down")
    assert (answer.returncode, answer.stdout.startswith("nothing runs")) == (0, True)


def test_up_is_rejected_while_a_separately_started_server_runs(stack):
    web = stack.start(sys.executable, "-I", "-m", "web")
    eventually(stack.answers, "the server answers")
    answer = stack.run("up")
    assert answer.returncode == 1
    assert f"web is already running (pid {web.pid})" in answer.stderr
    assert [process["pid"] for process in stack.status()["processes"]] == [web.pid]
    assert stack.run("down").returncode == 0
    assert wait_for_end(web)[0] == 0
    assert stack.is_empty()


def test_up_is_rejected_if_another_program_uses_the_port(stack):
    with socket.create_server(("127.0.0.1", stack.port)):
        answer = stack.run("up")
        assert answer.returncode == 1
        assert f"Cannot listen on 127.0.0.1:{stack.port}" in answer.stderr
        web = stack.start(sys.executable, "-I", "-m", "web")
        code, output = wait_for_end(web)
    assert code == 69
    assert output.strip().splitlines()[-1].startswith(f"Cannot listen on 127.0.0.1:{stack.port}")


def test_daemon_starts_and_stops_and_completes_the_store_file(stack):
    answer = stack.run("up", "--daemon", "--json")
    assert answer.returncode == 0, answer.stderr
    assert "compiles the embedding model (once, about 20 s)" in answer.stderr
    started = json.loads(answer.stdout)
    assert stack.answers()
    status = stack.status()
    assert status["answers"]
    assert [process["name"] for process in status["processes"]] == ["supervisor", "web", "worker", "scheduler"]
    assert status["processes"][0]["pid"] == started["pid"]
    assert stack.run("remember", "The cache is written behind the queue").returncode == 0
    assert stack.run("down").returncode == 0
    # A process that compiles looks for its parent from time to time.
    eventually(stack.is_empty, "every process has ended")
    assert copied_memories(stack) == ["The cache is written behind the queue"]
    assert list_logs(stack) == []
    log = (stack.home / "logs" / "reverie.log").read_text()
    assert "SIGTERM: stopping" in log
    assert log.count("compiles the embedding model (once") == 1


@pytest.mark.parametrize("place", ["home/models/one", "cache/reverie/encoders/digest/one"])
def test_up_with_an_existing_encoder_does_not_announce_compilation(stack, place):
    folder = stack.home.parent / place
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()
    stack.environment |= {"XDG_CACHE_HOME": str(stack.home.parent / "cache"), "REVERIE_EMBEDDING_MODEL": "auto"}
    answer = stack.run("up", "--daemon")
    assert answer.returncode == 0, answer.stderr
    assert "compiles" not in answer.stderr
    assert stack.run("down").returncode == 0
    assert "compiled" not in (stack.home / "logs" / "reverie.log").read_text()


def test_idle_stack_stops_automatically_and_a_new_stack_can_start(stack):
    stack.environment["REVERIE_IDLE_EXIT_MIN"] = "0.05"
    idle = stack.start(REVERIE, "up")
    log = iter(lambda: idle.stdout.readline().decode(), "")
    assert any("0.05 min without a request: stopping" in line for line in log)
    del stack.environment["REVERIE_IDLE_EXIT_MIN"]
    # Whoever needs it just now does not find the door locked by one that is on its way out.
    answer = stack.run("up", "--daemon", "--json")
    assert answer.returncode == 0, answer.stderr
    assert wait_for_end(idle)[0] == 0
    assert stack.status()["processes"][0]["pid"] == json.loads(answer.stdout)["pid"]
    assert stack.answers()
    assert stack.run("down").returncode == 0
    assert stack.is_empty()


def copied_memories(stack):
    """Copy only the store's main file, as a user does, and return the texts in the copy."""
    copy = stack.folder / "copy.sqlite"
    shutil.copyfile(stack.home / "workspaces" / "default" / "events.sqlite", copy)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [text for (text,) in db.execute("SELECT content FROM memory ORDER BY seq")]


def list_logs(stack):
    stores = [*stack.home.glob("*.sqlite-wal"), *stack.home.glob("workspaces/*/*.sqlite-wal")]
    return [file.name for file in stores if file.stat().st_size and not file.name.startswith("queue")]


@contextlib.contextmanager
def keep_log(stack):
    """Read from the store, so that nothing can empty its log: neither a job nor a process that ends in order."""
    file = stack.home / "workspaces" / "default" / "events.sqlite"
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memory").fetchone()
        yield


def test_down_completes_the_file_of_a_stack_that_was_killed(stack):
    supervisor = stack.up()
    assert stack.run("remember", "The queue is one file").returncode == 0
    with keep_log(stack):
        assert stack.run("remember", "The cache is written behind the queue").returncode == 0
        for process in (supervisor, *stack.processes()):
            process.kill()
        wait_for_end(supervisor)
        eventually(stack.is_empty, "every process is gone")
    assert list_logs(stack)
    answer = stack.run("down")
    assert (answer.returncode, answer.stdout.startswith("nothing runs")) == (0, True)
    assert copied_memories(stack) == ["The queue is one file", "The cache is written behind the queue"]
    assert list_logs(stack) == []


def test_after_an_idle_exit_the_file_of_the_store_is_complete(stack, tmp_path, models):
    # Without an encoder, the memory would wait for it and keep the stack running.
    del stack.environment["REVERIE_EMBEDDING_MODEL"]
    stack.home.mkdir()
    (stack.home / "models").symlink_to(models, target_is_directory=True)
    stack.environment |= {"REVERIE_IDLE_EXIT_MIN": "0.1", "REVERIE_SWEEP_INTERVAL_S": "1"}
    supervisor = stack.up()
    database = SqliteDatabase(tmp_path / "default" / "events.sqlite", PROFILE, create=True)
    accept_batch(database, [Draft("The cache is written behind the queue")])
    # As a process leaves a store that did not close it.
    shutil.copytree(database.file.parent, stack.home / "workspaces" / "default")
    database.close()
    assert list_logs(stack) == ["events.sqlite-wal"]
    # It ends after the memory is embedded, which loads both encoders.
    assert wait_for_end(supervisor, 3 * DEADLINE_S)[0] == 0
    assert copied_memories(stack) == ["The cache is written behind the queue"]
    assert list_logs(stack) == []
