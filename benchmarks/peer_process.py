"""The peers under measurement: their environments, processes and data."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import psutil

# Installed first: resolved as a dependency it would bring a GPU's libraries along.
TORCH = "torch==2.13.0"
# What each needs to work without a server; the first is the peer.
PEERS: Mapping[str, tuple[str, ...]] = {
    "pmb-ai": ("pmb-ai==1.2.3",),
    "mempalace": ("mempalace==3.11.0", "transformers", "onnx"),
    "mcp-memory-service": ("mcp-memory-service", "sentence-transformers"),
    "mem0ai": ("mem0ai==2.2.1", "sentence-transformers", "faiss-cpu"),
}
DRIVER = Path(__file__).with_name("peer_driver.py")
# PMB writes its whole lexical index again in each batch: large ones suit it best.
BATCH = 2000
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


def environment(name: str, bench: Path) -> Path:
    """Return the Python of a peer's own environment; make it where there is none."""
    folder = bench / f"peer-{name}"
    python, marker, log = folder / "bin" / "python", folder / ".installed", bench / f"peer-{name}.log"
    if not marker.exists():
        print(f"installing {name} into {folder}; this happens once")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        for wanted in ((TORCH,), PEERS[name]):
            with log.open("wb") as output:
                command = [str(python), "-m", "pip", "install", "--quiet", *wanted]
                status = subprocess.run(command, check=False, stdout=output, stderr=output).returncode
            if status:
                raise PeerFailedError(f"pip cannot install {' '.join(wanted)}", status, log)
        marker.touch()
    return python


class Peer:
    """A peer in a process of its own, warm; a context."""

    def __init__(self, name: str, python: Path, home: Path, model: Path) -> None:
        self.name = name
        self._home = home
        home.mkdir(parents=True, exist_ok=True)
        self._log_file = home.with_name(f"{home.name}.log")
        self._log = self._log_file.open("wb")
        # -P: in the driver's folder are modules with the names of packages that peers import, such as mcp.
        self._process = subprocess.Popen(
            [str(python), "-P", str(DRIVER), name, str(home), str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | {"HOME": str(home), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
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

    def _do(self, command: str, **arguments: object) -> Any:
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

    def fill(self, memories: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store memories and let the peer finish its indexes; return their ids."""
        ids: list[str] = []
        for start in range(0, len(memories), BATCH):
            ids += self._do("write", items=[_item(memory) for memory in memories[start : start + BATCH]])
        self._do("finish")
        return ids

    def recall(self, questions: Sequence[str], k: int) -> Answers:
        """Ask questions one after the other."""
        answers = self._do("recall", queries=list(questions), k=k)
        return Answers([ids for ids, _ in answers], [ms for _, ms in answers])

    def measure_installation(self) -> int:
        """Return the bytes of the peer's package and of all that it needs here."""
        size: int = self._do("size", packages=[wanted.partition("==")[0] for wanted in PEERS[self.name]])
        return size

    def measure_memory(self) -> int:
        """Return the bytes of memory (PSS) of its process."""
        return int(psutil.Process(self._process.pid).memory_full_info().pss)

    def use_cpu_s(self) -> float:
        """Return the seconds of CPU time that its process has used."""
        return sum(psutil.Process(self._process.pid).cpu_times()[:2])


def _item(memory: Mapping[str, Any]) -> dict[str, Any]:
    # PMB's own field for the time that a memory is about; its recall makes use of it.
    moment = datetime.fromisoformat(memory["occurred_at"])
    metadata = {"kind": memory["kind"], "session": memory["session_id"], "event_time": moment.timestamp()}
    return {"content": memory["content"], "metadata": metadata}
