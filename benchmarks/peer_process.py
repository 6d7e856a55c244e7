"""The peer under measurement: its environment, its process, its data, its daemon."""

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.wire import Answer, Wire, post
from tests.support.stack import HOST, POLL_S, free_port

NAME, VERSION = "pmb-ai", "1.2.3"
# Installed first: resolved as a dependency it would bring a GPU's libraries along.
TORCH = "torch==2.13.0"
DRIVER = Path(__file__).with_name("peer_driver.py")
# -P: in the driver's folder are modules with the names of packages that the peer imports, such as mcp.
ARGUMENTS = ("-P", str(DRIVER))
# Each of its batches writes its whole lexical index again: large ones suit it best.
BATCH = 2000
DAEMON_WITHIN_S = 180.0
CALIBRATION = 15
LOG_LINES = 15


class PeerFailedError(Exception):
    """The peer could not be installed or started, or it stopped; the message ends with its log."""

    def __init__(self, what: str, status: int | None, log: Path) -> None:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
        ended = "its process still runs" if status is None else f"its process ended with status {status}"
        super().__init__("\n    ".join([f"{what}; {ended}. The end of {log}:", *(lines or ["(empty)"])]))


@dataclass(frozen=True, slots=True)
class Answers:
    """The ids that were found for each question, and the milliseconds that each took."""

    ids: list[list[str]]
    ms: list[float]


def environment(bench: Path, tell: Callable[[str], None]) -> Path:
    """Return the Python of the peer's own environment; make it where there is none."""
    folder = bench / "peer-venv"
    python, marker = folder / "bin" / "python", folder / f".{NAME}-{VERSION}"
    if not marker.exists():
        tell(f"installing {NAME} {VERSION} into {folder}; this happens once")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        for wanted in (TORCH, f"{NAME}=={VERSION}"):
            _install(python, wanted, folder.with_suffix(".log"))
        marker.touch()
    return python


def _install(python: Path, wanted: str, log: Path) -> None:
    with log.open("wb") as output:
        command = [str(python), "-m", "pip", "install", "--quiet", wanted]
        status = subprocess.run(command, check=False, stdout=output, stderr=output).returncode
    if status:
        raise PeerFailedError(f"pip cannot install {wanted}", status, log)


class Peer:
    """The peer's engine in a process of its own, warm; a context."""

    def __init__(self, python: Path, home: Path, model: Path) -> None:
        self._python = python
        self._model = model
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self._log_file = home.with_name(f"{home.name}.log")
        self._log = self._log_file.open("wb")
        self._process = subprocess.Popen(
            [str(python), *ARGUMENTS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_environment(home),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def do(self, command: str, **arguments: object) -> Any:
        """Have one command carried out and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = b""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"do": command, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise PeerFailedError(f"the peer stopped at `{command}`", self._process.wait(), self._log_file)
        return json.loads(line)

    def open(self, workspace: str) -> None:
        """Open a workspace and warm it up."""
        self.do("open", home=str(self.home), workspace=workspace, model=str(self._model))

    def fill(self, memories: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store memories and let the peer finish its indexes; return their ids."""
        ids: list[str] = []
        for start in range(0, len(memories), BATCH):
            items = [_item(memory) for memory in memories[start : start + BATCH]]
            ids += self.do("write", items=items)["ids"]
        vectors = self.do("finish")["vectors"]
        if vectors != len(memories):
            what = f"the peer has {vectors} vectors of {len(memories)} memories"
            raise PeerFailedError(what, self._process.poll(), self._log_file)
        return ids

    def recall(self, questions: Sequence[str], k: int) -> Answers:
        """Ask its engine within its own process."""
        return Answers(**self.do("recall", queries=list(questions), k=k))

    def tune(self, questions: Sequence[str], k: int) -> int:
        """Give its encoder as many threads as make it fastest here; return their number."""
        taken: dict[int, float] = {}
        for count in sorted({1, os.cpu_count() or 1}):
            self.do("threads", count=count)
            part = questions[len(taken) * CALIBRATION :][:CALIBRATION]
            taken[count] = statistics.median(self.recall(part, k).ms)
        best = min(taken, key=lambda count: taken[count])
        self.do("threads", count=best)
        return best


def _environment(home: Path, **more: str) -> dict[str, str]:
    return os.environ | {"PMB_HOME": str(home), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"} | more


def _item(memory: Mapping[str, Any]) -> dict[str, Any]:
    # Its own field for the time that a memory is about; recall makes use of it.
    moment = datetime.fromisoformat(memory["occurred_at"])
    metadata = {"kind": memory["kind"], "session": memory["session_id"], "event_time": moment.timestamp()}
    return {"content": memory["content"], "metadata": metadata}


@contextmanager
def daemon(python: Path, home: Path, workspace: str, threads: int) -> Iterator[Callable[[Sequence[str], int], Answers]]:
    """Run the peer's own daemon, warm; yield how to ask it over HTTP."""
    port, log_file = free_port(), home.with_name(f"{home.name}-daemon.log")
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [str(python), *ARGUMENTS, "serve", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(home, PMB_WORKSPACE=workspace, OMP_NUM_THREADS=str(threads)),
        )
    try:
        _wait_until_warm(process, port, log_file)
        token = (home / "daemon.token").read_text(encoding="utf-8").strip()
        yield lambda questions, k: _ask(port, token, questions, k)
    except (OSError, http.client.HTTPException) as error:
        raise PeerFailedError(f"the peer's daemon cannot be asked: {error!r}", process.poll(), log_file) from error
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_warm(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + DAEMON_WITHIN_S
    while not _is_warm(port):
        if (status := process.poll()) is not None:
            raise PeerFailedError("the peer's daemon stopped before it was warm", status, log)
        if time.monotonic() > end:
            raise PeerFailedError(f"the peer's daemon is not warm after {DAEMON_WITHIN_S:.0f} s", None, log)
        time.sleep(POLL_S)


def _is_warm(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/internal/health")
        return bool(json.loads(connection.getresponse().read())["warm"])
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _ask(port: int, token: str, questions: Sequence[str], k: int) -> Answers:
    requests = [post("/internal/recall", {"query": question, "top_k": k}, token) for question in questions]
    with Wire(port) as wire:
        answers: list[Answer] = wire.ask_all(requests)
    bad = next((answer for answer in answers if answer.status != 200), None)
    if bad is not None:
        raise ConnectionError(f"it answered {bad.status}: {bad.body[:200]!r}")
    ids = [[result["ulid"] for result in answer.json()["results"]] for answer in answers]
    return Answers(ids, [answer.took_ms for answer in answers])
