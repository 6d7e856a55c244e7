"""Real processes on a home of their own: started, killed and asked over HTTP by the tests that break things."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from web.stack.procfile import read_procfile

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
# Generous: a machine may be slow and busy; nothing waits this long unless it is broken.
DEADLINE_S = 60.0
POLL_S = 0.05
GRACE_S = 12.0
# Short waits everywhere, so that what heals by itself heals while a test looks on.
QUICK = {
    "LEASE_S": "5",
    "BACKOFF_S": "0.2",
    "SWEEP_INTERVAL_S": "1",
    "RECALL_BUDGET_MS": "5000",
}


def wait_until(what: str, holds: Callable[[], Any], deadline_s: float = DEADLINE_S) -> Any:
    """Return the first true value of a condition; fail with its name when it stays false."""
    end = time.monotonic() + deadline_s
    while True:
        value = holds()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(POLL_S)


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer, its JSON parsed."""

    status: int
    headers: http.client.HTTPMessage
    body: Any


class Client:
    """One connection to the web server, made anew after an error; not for two threads at once."""

    def __init__(self, port: int, token: str, workspace: str = "default", timeout_s: float = 30.0) -> None:
        self._port = port
        self._timeout_s = timeout_s
        self._headers = {
            "Authorization": f"Bearer {token}",
            "X-Reverie-Workspace": workspace,
            "Content-Type": "application/json",
        }
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, path: str, body: object = None) -> Reply:
        """Send one request; raise OSError or HTTPException when the server goes away, never repeat by itself."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(HOST, self._port, timeout=self._timeout_s)
        try:
            data = None if body is None else json.dumps(body).encode()
            self._connection.request(method, path, data, self._headers)
            answer = self._connection.getresponse()
            text = answer.read()
            return Reply(answer.status, answer.headers, json.loads(text) if text else None)
        except BaseException:
            self.close()
            raise

    def recall(self, query: str, **fields: object) -> dict[str, Any]:
        """Recall with a budget that only a hanging channel exceeds."""
        reply = self.call("POST", "/v1/recall", {"query": query, "budget_ms": 10_000, **fields})
        assert reply.status == 200, reply
        return reply.body

    def remember(self, content: str, **fields: object) -> str:
        """Store a memory and return its id."""
        reply = self.call("POST", "/v1/memories", {"content": content, **fields})
        assert reply.status == 201, reply
        return reply.body["id"]

    def errors(self) -> list[str]:
        """List the error log's lines, newest first, each with its component."""
        items = self.call("GET", "/v1/errors?limit=200").body["items"]
        return [f"{item['component']}: {item['message']}" for item in items]

    def close(self) -> None:
        """Drop the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Stack:
    """The processes of one home, each started and ended by name."""

    def __init__(self, home: Path, models: Path, **settings: str) -> None:
        self.home = home
        self.port = free_port()
        self.logs = home.with_name(f"{home.name}-logs")
        self.logs.mkdir(parents=True, exist_ok=True)
        home.mkdir(parents=True, exist_ok=True)
        if not (home / "models").exists():
            (home / "models").symlink_to(models, target_is_directory=True)
        processes = read_procfile(int(settings.get("WORKER_PROCESSES", "1")))
        self._commands = {command.name: command.words[1:] for command in processes}
        values = QUICK | settings | {"HOME": str(home), "HOST": HOST, "PORT": str(self.port)}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("REVERIE_")}
        self.environment = (
            kept
            | {f"REVERIE_{name}": value for name, value in values.items()}
            | {"HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
        )
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def workspace(self) -> Path:
        """Return the folder of the default workspace."""
        return self.home / "workspaces" / "default"

    def start(self, *names: str, before: Sequence[str] = ()) -> None:
        """Start processes and wait until the web server, if it is among them, answers."""
        self.launch(*names, before=before)
        if "web" in names:
            wait_until("the web server answers", self.is_healthy)

    def launch(self, *names: str, before: Sequence[str] = ()) -> None:
        """Start processes without waiting for them; `before` are arguments of Python that come first."""
        for name in names:
            with (self.logs / f"{name}.log").open("ab") as log:
                self.running[name] = subprocess.Popen(
                    [sys.executable, *before, *self._commands[name]],
                    cwd=ROOT,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def is_healthy(self) -> bool:
        """Tell whether the web server answers now."""
        return self.health() is not None

    def health(self) -> dict[str, Any] | None:
        """Return what the web server says of its health, None when it does not answer."""
        with contextlib.closing(Client(self.port, "", timeout_s=5)) as client:
            try:
                reply = client.call("GET", "/healthz")
            except (OSError, http.client.HTTPException):
                return None
        return reply.body if reply.status == 200 else None

    def wait_for_encoder(self) -> None:
        """Wait until the web server can search by meaning."""
        wait_until("the encoder is ready", lambda: (self.health() or {}).get("encoder") == "ready")

    def client(self, workspace: str = "default", timeout_s: float = 30.0) -> Client:
        """Return a new client with the home's token."""
        return Client(self.port, (self.home / "token").read_text(encoding="ascii").strip(), workspace, timeout_s)

    def children(self, name: str) -> list[psutil.Process]:
        """List the child processes of one that runs."""
        process = self.running.get(name)
        try:
            return [] if process is None else psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def kill(self, name: str, *, with_children: bool = False) -> None:
        """End a process with SIGKILL, at will with all its children at the same moment."""
        process = self.running.pop(name)
        children = self.children_of(process) if with_children else []
        process.kill()
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        process.wait()

    @staticmethod
    def children_of(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
        """List the children of a process, none when it has ended."""
        try:
            return psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def stop(self) -> None:
        """End every process: politely first, then not; none of their children survives."""
        families = {name: self.children_of(process) for name, process in self.running.items()}
        for process in self.running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for name, process in self.running.items():
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for child in families[name]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
        self.running.clear()

    def pending(self, client: Client) -> dict[str, int]:
        """Return what waits in the default workspace, by stage."""
        return {stage: n for stage, n in client.call("GET", "/v1/queue").body["pending"].items() if n}

    def dead(self, client: Client) -> dict[str, int]:
        """Return the dead letters of the default workspace, by stage."""
        return {stage: n for stage, n in client.call("GET", "/v1/queue").body["dead"].items() if n}

    def wait_until_digested(self, client: Client, deadline_s: float = DEADLINE_S) -> None:
        """Wait until nothing is pending; fail at once over a dead letter."""

        def drained() -> bool:
            dead = self.dead(client)
            assert not dead, (dead, client.errors()[:10])
            return not self.pending(client)

        try:
            wait_until("the queue is empty", drained, deadline_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(client)}") from None

    def story(self, client: Client) -> str:
        """Tell what waits, who runs, what the error log says, and what the worker printed last."""
        alive = {name: process.poll() for name, process in self.running.items()}
        lines = [f"queue {client.call('GET', '/v1/queue').body}", f"exit codes {alive}", *client.errors()[:10]]
        return "\n".join([*lines, self.tail("worker")])

    def tail(self, name: str, lines: int = 30) -> str:
        """Return the last lines that a process printed."""
        log = self.logs / f"{name}.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


class Prober:
    """Ask the web server one question over and over from its own thread, and keep what went wrong."""

    def __init__(self, client: Client, query: str) -> None:
        self._client = client
        self._query = query
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answers: list[dict[str, Any]] = []
        self.failures: list[str] = []

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            try:
                # Answers are remembered; another budget makes it another question.
                budget = 4000 + self._asked() % 1000
                reply = self._client.call("POST", "/v1/recall", {"query": self._query, "budget_ms": budget})
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                continue
            if reply.status == 200:
                self.answers.append(reply.body)
            else:
                self.failures.append(f"{reply.status}: {reply.body}")

    def _asked(self) -> int:
        return len(self.answers) + len(self.failures)

    @classmethod
    @contextlib.contextmanager
    def probing(cls, client: Client, query: str) -> "Iterator[Prober]":
        """Probe during a block; afterwards every question must have been answered with 200."""
        prober = cls(client, query)
        prober._thread.start()
        try:
            yield prober
            seen = prober._asked()
            wait_until("the web server was asked afterwards too", lambda: prober._asked() >= seen + 3)
        finally:
            prober._stop.set()
            prober._thread.join(DEADLINE_S)
            client.close()
        assert not prober.failures, prober.failures[:5]
