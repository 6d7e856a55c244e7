"""Measure the import of sessions on transcripts like Claude Code's, beside only reading and parsing the same bytes.

Run by `make bench-import`. The transcripts are made up; by bytes, most are tool results, as in real ones.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil

from benchmarks.corpus import memories
from benchmarks.figures import Limit, Report

ROOT = Path(__file__).resolve().parents[1]
MEGABYTE = 1_000_000
SESSION_BYTES = 2 * MEGABYTE
LOOK_S = 0.1
STARTED = datetime(2026, 1, 5, 8, tzinfo=UTC)
COMMANDS = ("make test", "git commit -m 'Fix the parser'", "cargo build --release", "npm run lint", "pytest -x tests")
OUTPUT = "src/parser/lexer.rs:{n}: warning: unused variable `{word}` in function `read_{word}` of module lexer\n"


class TranscriptWriter:
    """Write one session after the other until there are enough bytes."""

    def __init__(self, projects: Path, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._projects, self._cwd = projects, str(folder)
        self._texts = [str(memory["content"]) for memory in memories(2000, 7)]
        self._at = STARTED

    def write(self, size: int) -> int:
        """Write sessions of a total size; return their number."""
        slug = self._projects / self._cwd.replace("/", "-")
        slug.mkdir(parents=True, exist_ok=True)
        written = sessions = 0
        while written < size:
            session = str(uuid.UUID(int=self._random.getrandbits(128)))
            with (slug / f"{session}.jsonl").open("w") as file:
                for record in self._records(session):
                    line = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
                    file.write(line + "\n")
                    written += len(line) + 1
                    if file.tell() >= min(SESSION_BYTES, size):
                        break
            sessions += 1
        return sessions

    def _records(self, session: str) -> Iterator[dict[str, Any]]:
        while True:
            yield self._record(session, "user", {"role": "user", "content": self._say(2)})
            for _ in range(self._random.randint(4, 20)):
                yield from self._step(session)
            yield self._answer(session, {"type": "text", "text": self._say(6)})

    def _step(self, session: str) -> Iterator[dict[str, Any]]:
        call = f"toolu_{self._random.getrandbits(64):x}"
        yield self._answer(session, {"type": "thinking", "thinking": self._say(4), "signature": "c" * 400})
        if self._random.random() < 0.3:
            yield self._answer(session, {"type": "text", "text": self._say(2)})
        command = self._random.choice(COMMANDS)
        tool, arguments = self._random.choice(
            (
                ("Bash", {"command": f"{command} --run {self._random.randint(1, 999)}", "description": self._say(1)}),
                ("Read", {"file_path": f"{self._cwd}/src/parser/lexer.rs"}),
                (
                    "Edit",
                    {"file_path": f"{self._cwd}/src/a.rs", "old_string": self._say(3), "new_string": self._say(3)},
                ),
            )
        )
        yield self._answer(session, {"type": "tool_use", "id": call, "name": tool, "input": arguments})
        for number in range(self._random.randint(0, 3)):
            data = {"type": "bash_progress", "output": OUTPUT.format(n=number, word="token") * 20}
            yield {"type": "progress", "sessionId": session, "timestamp": self._time(), "data": data}
        has_failed = tool == "Bash" and self._random.random() < 0.1
        word = self._random.choice(("token", "cursor", "buffer"))
        output = "".join(OUTPUT.format(n=number, word=word) for number in range(self._random.randint(5, 120)))
        output = f"Exit code 1\n{output}" if has_failed else output
        result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": has_failed}
        record = self._record(session, "user", {"role": "user", "content": [result]})
        yield record | {"toolUseResult": f"Error: {output}" if has_failed else {"stdout": output, "stderr": ""}}

    def _answer(self, session: str, block: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 12, "cache_read_input_tokens": 48_000, "output_tokens": 300}
        message = {"role": "assistant", "model": "claude-x", "content": [block], "usage": usage}
        return self._record(session, "assistant", message)

    def _record(self, session: str, kind: str, message: dict[str, Any]) -> dict[str, Any]:
        envelope = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": self._cwd}
        names = {"sessionId": session, "version": "2.1.40", "gitBranch": "main", "type": kind, "message": message}
        uid = str(uuid.UUID(int=self._random.getrandbits(128)))
        return envelope | names | {"uuid": uid, "timestamp": self._time()}

    def _time(self) -> str:
        self._at += timedelta(milliseconds=self._random.randint(200, 9000))
        return self._at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _say(self, sentences: int) -> str:
        return " ".join(self._random.choices(self._texts, k=sentences))


def parse_only(projects: Path) -> float:
    """Return the bytes per second of reading every file and parsing each line, in one process."""
    size, began = 0, time.perf_counter()
    for file in projects.rglob("*.jsonl"):
        with file.open("rb") as lines:
            for line in lines:
                json.loads(line)
                size += len(line)
    return size / (time.perf_counter() - began)


def run_import(home: Path, data: Path) -> tuple[dict[str, Any], float, int]:
    """Import everything; return the command's answer, its seconds, and the largest PSS of its processes."""
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    environment |= {"HOME": str(home), "REVERIE_HOME": str(data), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "web.cli", "--json", "import", "sessions"]
    began, largest = time.perf_counter(), 0
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, cwd=ROOT) as process:
        parent = psutil.Process(process.pid)
        while process.poll() is None:
            largest = max(largest, _measure(parent))
            time.sleep(LOOK_S)
        took = time.perf_counter() - began
        assert process.stdout is not None
        answer = json.loads(process.stdout.read())
    return answer, took, largest


def _measure(parent: psutil.Process) -> int:
    size = 0
    with suppress(psutil.Error):
        for process in (parent, *parent.children(recursive=True)):
            with suppress(psutil.Error):
                size += process.memory_full_info().pss
    return size


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="keep the transcripts here, and use them again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = arguments.folder or Path(scratch) / "user"
        projects = home / ".claude" / "projects"
        if not projects.exists():
            folder = home / "app"
            folder.mkdir(parents=True)
            subprocess.run(["git", "init", "-q", str(folder)], check=True)
            TranscriptWriter(projects, folder, seed=7).write(arguments.megabytes * MEGABYTE)
        files = list(projects.rglob("*.jsonl"))
        size = sum(file.stat().st_size for file in files)
        report, limit = Report(), Limit("reading and parsing in one process", parse_only(projects) / MEGABYTE)
        report.section(f"{len(files)} sessions, {size / MEGABYTE:.0f} MB, {os.cpu_count()} cores")
        report.row("bare: read and parse, one process", f"{limit.value:.0f} MB/s")
        answer, took, largest = run_import(home, Path(scratch) / "data")
        [agent] = [each for each in answer["agents"] if each["files"]]
        rate = size / took / MEGABYTE
        figure = f"{rate:.0f} MB/s, searchable after {took:.1f} s, {largest / (1 << 20):.0f} MiB PSS"
        report.row("import", figure, against=(limit, rate))
        stored = f"{agent['sessions']} sessions, {agent['turns']} messages, {agent['actions']} actions"
        report.row("stored", stored)
        again, took, _ = run_import(home, Path(scratch) / "data")
        report.row("again", f"{took:.1f} s, {sum(each['turns'] for each in again['agents'])} new messages")


if __name__ == "__main__":
    main()
