"""Reverie past one machine, all of it on this one: stores, fronts, workers and schedulers behind a load balancer.

Every process of ours has a home of its own that is empty at first, as if it stood on a machine of its own.
"""

import contextlib
import http.client
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

import redis

from tests.support.postgres import PostgresServer, find_programs, serve_postgres
from tests.support.programs import Program, find_program
from tests.support.s3 import PROGRAM as S3_PROGRAM, S3Server, serve_s3
from tests.support.stack import HOST, ROOT, Client, Stack, free_port, wait_until

BALANCER = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
BUCKET = "reverie"
ROLES = {"front": "web", "worker": "worker", "scheduler": "scheduler"}


def list_missing_programs() -> list[str]:
    """Name what a cluster needs and this machine lacks."""
    found = {name: find_program(name) for name in ("redis-server", "haproxy")}
    found |= {"postgres": find_programs(), "weed": S3_PROGRAM if S3_PROGRAM.exists() else None}
    return [name for name, program in found.items() if program is None]


class Part(Protocol):
    """What can be killed in the middle of everything and started again."""

    @property
    def pid(self) -> int:
        """Return the id of its process, whose children belong to it too."""

    def start(self) -> None:
        """Start it where it was."""

    def kill(self) -> None:
        """End it with SIGKILL and all that it forked, if it runs."""


class Machine:
    """A machine with one process of ours: a front, a worker or a scheduler."""

    def __init__(self, role: str, stack: Stack) -> None:
        self.stack = stack
        self._role = role

    @property
    def pid(self) -> int:
        """Return the id of its process."""
        return self.stack.running[self._role].pid

    def start(self) -> None:
        """Start it; who wants to ask it waits until it answers."""
        self.stack.launch(self._role)

    def kill(self) -> None:
        """End it with SIGKILL, with all that it forked."""
        if self._role in self.stack.running:
            self.stack.kill(self._role, with_children=True)

    def has_ended(self) -> bool:
        """Tell whether its process ended by itself."""
        process = self.stack.running.get(self._role)
        return process is not None and process.poll() is not None


class Cluster:
    """All of it; each of `parts` goes by its name, and clients come in by `port`."""

    def __init__(
        self, folder: Path, models: Path, *, fronts: int = 2, workers: int = 3, schedulers: int = 1, **settings: str
    ) -> None:
        self._folder, self._models, self._settings = folder, models, settings
        self._counts = {"front": fronts, "worker": workers, "scheduler": schedulers}
        self._running = contextlib.ExitStack()
        self.store_settings: dict[str, str] = {}
        self.machines: dict[str, Machine] = {}
        self.parts: dict[str, Part] = {}
        self.postgres: PostgresServer
        self.s3: S3Server
        self.token = secrets.token_urlsafe(32)
        self.port = free_port()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            self._start_servers(opening)
            for kind, count in self._counts.items():
                for number in range(1, count + 1):
                    opening.enter_context(self.add(kind, f"{kind}-{number}").stack)
            self._running = opening.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._running.close()

    def start(self) -> None:
        """Start the machines and the balancer, and wait until every front can be asked."""
        self._start_balancer()
        for machine in self.machines.values():
            machine.start()
        self.wait_for_fronts()

    def add(self, kind: str, name: str, **settings: str) -> Machine:
        """Set up a machine without starting it; of one that comes later, who adds it ends the stack."""
        stack = Stack(self._folder / name, self._models, **self._settings | self.store_settings | settings)
        stack.environment |= self.s3.environment
        token = stack.home / "token"
        token.touch(mode=0o600)
        token.write_text(self.token, encoding="ascii")
        machine = self.machines[name] = self.parts[name] = Machine(ROLES[kind], stack)
        return machine

    def list_fronts(self) -> list[Stack]:
        """List the fronts' stacks."""
        return [machine.stack for name, machine in self.machines.items() if name.startswith("front")]

    def wait_for_fronts(self) -> None:
        """Wait until every front answers, and the balancer knows."""
        for stack in self.list_fronts():
            wait_until(f"the front on {stack.port} answers", stack.is_healthy)
        wait_until("the balancer lets through", self._lets_through)

    def client(self, workspace: str = "default") -> Client:
        """Return a client that comes in by the balancer."""
        return Client(self.port, self.token, workspace)

    def read_logs(self, lines: int = 20) -> str:
        """Return what each process printed last."""
        logs = sorted(self._folder.glob("*-logs/*.log")) + sorted(self._folder.glob("*/log"))
        tails = ((log, log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]) for log in logs)
        return "\n".join(f"== {log.relative_to(self._folder)}\n" + "\n".join(tail) for log, tail in tails)

    def _start_servers(self, opening: contextlib.ExitStack) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self.postgres = opening.enter_context(serve_postgres(self._folder / "postgres"))
        self.s3 = opening.enter_context(serve_s3(self._folder / "s3"))
        self.s3.make_bucket(BUCKET)
        port = free_port()
        queue = self._folder / "redis"
        # As a queue is run: what it holds may be lost at any time.
        command = ("redis-server", "--port", str(port), "--bind", HOST, "--save", "", "--dir", str(queue))
        broker = self._program(command, lambda: _answers_ping(port))
        opening.callback(broker.kill)
        broker.start()
        self.parts |= {"postgres": self.postgres, "s3": self.s3, "redis": broker}
        self.store_settings = {
            "STORE": self.postgres.url,
            "VECTORS": f"s3://{BUCKET}",
            "QUEUE_URL": f"redis://{HOST}:{port}/0",
        }

    def _start_balancer(self) -> None:
        fronts = {name: m.stack.port for name, m in self.machines.items() if name.startswith("front")}
        folder = self._folder / "haproxy"
        balancer = self._program(("haproxy", "-db", "-f", str(folder / "haproxy.cfg")), self._answers_requests)
        (folder / "haproxy.cfg").write_text(configure_balancer(self.port, fronts), encoding="utf-8")
        self._running.callback(balancer.kill)
        balancer.start()
        self.parts["balancer"] = balancer

    def _program(self, command: tuple[str, ...], answers: Any) -> Program:
        folder = self._folder / command[0].removesuffix("-server")
        folder.mkdir()
        return Program((find_program(command[0]) or command[0], *command[1:]), folder / "log", answers)

    def _answers_requests(self) -> bool:
        return self._ask_for_health() is not None

    def _lets_through(self) -> bool:
        return self._ask_for_health() == http.client.OK

    def _ask_for_health(self) -> int | None:
        with contextlib.closing(Client(self.port, "", timeout_s=5)) as client:
            try:
                return client.call("GET", "/healthz").status
            except (OSError, http.client.HTTPException):
                return None


def configure_balancer(port: int, fronts: Mapping[str, int]) -> str:
    """Return the shipped configuration of HAProxy with these ports in it."""
    text = BALANCER.read_text(encoding="utf-8")
    text = re.sub(r"^    bind .*$", f"    bind {HOST}:{port}", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^    server .*\n", "", text, flags=re.MULTILINE)
    return text.rstrip() + "\n" + "".join(f"    server {name} {HOST}:{at}\n" for name, at in fronts.items())


def _answers_ping(port: int) -> bool:
    with contextlib.closing(redis.Redis(HOST, port, socket_timeout=2)) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
