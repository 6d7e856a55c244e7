import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from config.operating_system import new_process_group
from demo.client import is_healthy
from demo.errors import DemoFailed
from demo.guard import GRACE_S

HOST = "127.0.0.1"
PORT = 7077
PORTS_TRIED = 100
HEALTH_DEADLINE_S = 90.0
STOP_DEADLINE_S = 3 * GRACE_S
DEMO_LOCK, STACK_LOCK = "demo.lock", "stack.lock"
# Compiled models depend on no history, and compiling them takes most of the time.
KEPT_ENTRIES = frozenset({DEMO_LOCK, STACK_LOCK, "models"})
# Settings that a person may want to try in the demonstration; all others would point it at their own data.
KEPT_SETTINGS = frozenset({"REVERIE_EMBEDDING_MODEL"})


@contextlib.contextmanager
def claimed_home(home: Path) -> Iterator[Path]:
    """Hold a folder without an earlier history for this demonstration alone; refuse it if another one is running."""
    home.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(home / DEMO_LOCK, timeout=0):
            # A demonstration that was killed may have left a stack that is still on its way out.
            with FileLock(home / STACK_LOCK, timeout=STOP_DEADLINE_S):
                _empty(home)
            yield home
    except Timeout as error:
        raise DemoFailed(f"another demo is running on {home}; stop it first") from error


def _empty(home: Path) -> None:
    for entry in home.iterdir():
        if entry.name in KEPT_ENTRIES:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def is_free(port: int) -> bool:
    """Tell whether a server could listen on this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def choose_port(wanted: int | None) -> int:
    """Return the wanted port, or the first free one from 7077 on where none is wanted."""
    if wanted is not None:
        if not is_free(wanted):
            raise DemoFailed(f"port {wanted} is in use")
        return wanted
    for port in range(PORT, PORT + PORTS_TRIED):
        if is_free(port):
            return port
    raise DemoFailed(f"no free port from {PORT} to {PORT + PORTS_TRIED - 1}")


def stack_environment(base: Mapping[str, str], home: Path, port: int) -> dict[str, str]:
    """Return the environment of the stack: this interpreter's programs first, no one else's data."""
    kept = {k: v for k, v in base.items() if not k.startswith("REVERIE_") or k in KEPT_SETTINGS}
    programs = str(Path(sys.executable).parent)
    return kept | {
        "PATH": os.pathsep.join(filter(None, (programs, base.get("PATH")))),
        "PYTHONUNBUFFERED": "1",
        "REVERIE_HOME": str(home),
        "REVERIE_HOST": HOST,
        "REVERIE_PORT": str(port),
    }


def honcho_command(home: Path) -> list[str]:
    """Return the command that starts the Procfile; a `.env` of the checkout must not redirect it."""
    return [sys.executable, "-I", "-m", "honcho", "start", "--env", str(home / "no.env")]


class Stack:
    """The processes of the Procfile under a guard, as a context; leaving it stops them all."""

    def __init__(self, command: Sequence[str], root: Path, home: Path, env: Mapping[str, str]) -> None:
        self._command = list(command)
        self._root = root
        self.home = home
        self._env = dict(env)
        self.log = home / "logs" / "stack.log"
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        guard = [sys.executable, "-m", "demo.guard", str(self.home / STACK_LOCK), *self._command]
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(  # noqa: S603
                guard,
                cwd=self._root,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                **new_process_group(),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._guard is None or self._guard.stdin is None:
            return
        self._guard.stdin.close()
        try:
            self._guard.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()

    def check(self) -> None:
        """Raise where the stack has stopped by itself."""
        code = None if self._guard is None else self._guard.poll()
        if code is not None:
            raise DemoFailed(f"the stack stopped by itself (exit code {code})", self.tail())

    def wait_until_healthy(self, base_url: str, deadline_s: float = HEALTH_DEADLINE_S) -> None:
        """Wait for the health check; raise with the log's end where it never answers."""
        end = time.monotonic() + deadline_s
        while not is_healthy(base_url):
            self.check()
            if time.monotonic() > end:
                raise DemoFailed(f"no answer from {base_url}/healthz within {deadline_s:.0f} s", self.tail())
            time.sleep(0.1)

    def tail(self, lines: int = 25) -> str:
        """Return the last lines of the stack's log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
