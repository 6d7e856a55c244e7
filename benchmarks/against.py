"""Compare this checkout with another one: both servers run at once and get the same requests in turn.

Run by `make bench-against ARGS="PATH"`; PATH is a checkout with its own `.venv`. On a shared machine only the ratios
count. CPU time is what the kernel ran all threads of a server, or a process of the hook client, from one request to
the next, so it includes what a server does after its answer.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, islice, pairwise
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.corpus import memories
from benchmarks.figures import Report, latency
from benchmarks.homes import BENCH, WORKSPACE, has_answered
from benchmarks.questions import questions
from benchmarks.wire import Wire, post
from tests.support.stack import HOST, ROOT, Client, free_port, wait_until

SIZE = 10_000
ASKS, STARTS, WARM_UP = 300, 60, 60
QUESTION_SEED, WRITE_SEED, FILLED_SEED = 23, 29, 7
SESSION = 100
Measure = Callable[[int], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Build:
    """A checkout with its environment."""

    root: Path

    @property
    def program(self) -> str:
        """Return its interpreter."""
        return str(self.root / ".venv/bin/python")

    def prepare(self, size: int) -> Path:
        """Return its kept data directory of a size; fill it with its own code if there is none."""
        command = [self.program, "-m", "benchmarks.recall", "--prepare-only", "--sizes", str(size)]
        subprocess.run(command, cwd=self.root, check=True)
        [ids] = (self.root / BENCH.name).glob(f"home-{size}-s{FILLED_SEED}-*.ids.json")
        return ids.with_name(ids.name.removesuffix(".ids.json"))

    @contextmanager
    def serve(self, size: int) -> Iterator["Server"]:
        """Run its web server, without workers, on a copy of its data directory."""
        kept = self.prepare(size)
        with tempfile.TemporaryDirectory(prefix="run-", dir=kept.parent) as place:
            (Path(place) / "models").symlink_to(kept.parent / "models", target_is_directory=True)
            home, port = shutil.copytree(kept, Path(place) / "home", symlinks=True), free_port()
            inherited = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
            own = {"REVERIE_HOME": str(home), "REVERIE_HOST": HOST, "REVERIE_PORT": str(port), "HF_HUB_OFFLINE": "1"}
            command = [self.program, "-I", "-m", "web"]
            with subprocess.Popen(command, cwd=self.root, env=inherited | own, stdout=subprocess.DEVNULL) as process:
                try:
                    yield Server(self, process.pid, home, port)
                finally:
                    process.terminate()


@dataclass(frozen=True, slots=True)
class Server:
    """A running web server of a build."""

    build: Build
    pid: int
    home: Path
    port: int

    def wait(self) -> str:
        """Wait until both channels answer; return the token."""
        token = self.home / "token"
        wait_until("the server answers", lambda: token.exists() and self._answers(token))
        return token.read_text(encoding="ascii").strip()

    def _answers(self, token: Path) -> bool:
        client = Client(self.port, token.read_text(encoding="ascii").strip(), WORKSPACE)
        try:
            return has_answered(client, "lexical", "dense")
        except OSError:
            return False
        finally:
            client.close()

    def cpu_ms(self) -> float:
        """Return the CPU time of all its threads, also of those that have ended."""
        # Linux: the scheduler's clock of another process (CPUCLOCK_SCHED). The files of /proc count ended threads in
        # ticks of 10 ms only.
        return time.clock_gettime_ns(~self.pid << 3 | 2) / 1e6


def measure_requests(server: Server, requests: Sequence[bytes]) -> Iterator[Measure]:
    """Yield a function that sends the request of a number and returns CPU and wall time, in milliseconds."""
    with Wire(server.port) as wire:

        def ask(number: int) -> tuple[float, float]:
            before = server.cpu_ms()
            answer = wire.ask(requests[number])
            if answer.status >= 300:
                raise SystemExit(f"{server.build.root}: {answer.status} {answer.body[:200]!r}")
            return before, answer.took_ms

        yield ask


def measure_client(server: Server, events: Sequence[bytes]) -> Iterator[Measure]:
    """Yield a function that runs the hook client, as a host does, and returns the CPU and wall time of the process."""
    command = [str(server.build.root / ".venv/bin/reverie-hook"), "claude-code"]
    environment = {
        "REVERIE_HOME": str(server.home),
        "REVERIE_PORT": str(server.port),
        "REVERIE_WORKSPACE": WORKSPACE,
        "PATH": os.defpath,
    }

    def run(number: int) -> tuple[float, float]:
        before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, input=events[number], env=environment, capture_output=True, check=True)
        took, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return used * 1000, took * 1000

    yield run


def alternate(measures: Sequence[Measure], numbers: Sequence[int]) -> list[list[tuple[float, float]]]:
    """Let two builds do the same in turn, each first every other time; return the measurements of both."""
    taken: list[list[tuple[float, float]]] = [[], []]
    for number in numbers:
        for side in (0, 1) if number % 2 else (1, 0):
            taken[side].append(measures[side](number))
    return taken


class Comparison:
    """Two servers, this build's and the other's, and the table of their ratios."""

    def __init__(self, servers: Sequence[Server], report: Report) -> None:
        self._servers = servers
        self._tokens = [server.wait() for server in servers]
        self._report = report

    def requests(self, name: str, path: str, bodies: Sequence[object]) -> None:
        """Compare requests that the servers answer."""
        with ExitStack() as stack:
            measures = [
                stack.enter_context(
                    contextmanager(measure_requests)(server, [post(path, body, token, WORKSPACE) for body in bodies])
                )
                for server, token in zip(self._servers, self._tokens, strict=True)
            ]
            taken = alternate(measures, range(len(bodies)))
        walls = [[wall for _, wall in side] for side in taken]
        totals = [[before for before, _ in side] for side in taken]
        cpu = [[after - before for before, after in pairwise(side)] for side in totals]
        self._tell(name, cpu, walls)

    def clients(self, name: str, events: Sequence[object]) -> None:
        """Compare processes of the hook client."""
        encoded = [json.dumps(event).encode() for event in events]
        with ExitStack() as stack:
            measures = [
                stack.enter_context(contextmanager(measure_client)(server, encoded)) for server in self._servers
            ]
            taken = alternate(measures, range(len(events)))
        self._tell(name, *([[pair[part] for pair in side] for side in taken] for part in (0, 1)))

    def _tell(self, name: str, cpu: Sequence[Sequence[float]], walls: Sequence[Sequence[float]]) -> None:
        now, other = map(latency, walls)
        used, other_used = (statistics.fmean(_without_outliers(side)) for side in cpu)
        figure = (
            f"CPU {used / other_used:.2f} ({used:.2f} / {other_used:.2f} ms)  p50 {now.p50 / other.p50:.2f} "
            f"({now.p50:.2f} / {other.p50:.2f})  p95 {now.p95 / other.p95:.2f} ({now.p95:.2f} / {other.p95:.2f})"
        )
        self._report.row(name, figure)
        ratios = {"cpu": used / other_used, "p50": now.p50 / other.p50, "p95": now.p95 / other.p95}
        self._report.keep("against", name, value={part: round(ratio, 3) for part, ratio in ratios.items()})


def _without_outliers(values: Sequence[float]) -> list[float]:
    """Drop the largest twentieth: what a server does now and then is not the cost of one request."""
    return sorted(values)[: max(1, len(values) * 19 // 20)]


def compare(comparison: Comparison, size: int, asks: int, starts: int) -> None:
    """Compare what agents wait for."""
    corpus = list(memories(size, FILLED_SEED))
    asked = (question.text for question in questions(corpus, WARM_UP + 3 * asks + starts + 1, QUESTION_SEED))
    session = count()

    def event(name: str, **fields: object) -> dict[str, object]:
        identity = {"session_id": f"bench-{next(session) // SESSION}", "cwd": "/srv/bench"}
        return {"hook_event_name": name, **identity, **fields}

    def recalls(texts: Iterable[str]) -> list[object]:
        return [{"query": text, "k": 10} for text in texts]

    call = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "cd api && make none-of-these 2>&1"}}
    done = call | {"tool_response": {"stdout": "x" * 2000, "stderr": "", "interrupted": False}}
    comparison.requests("(warm up)", "/v1/recall", recalls(islice(asked, WARM_UP)))
    comparison.requests("recall, new question", "/v1/recall", recalls(islice(asked, asks)))
    comparison.requests("recall, cached answer", "/v1/recall", recalls(islice(asked, 1)) * asks)
    comparison.requests("prepare", "/v1/prepare", [{"message": text} for text in islice(asked, asks)])
    prompts = [event("UserPromptSubmit", prompt=text) for text in islice(asked, asks)]
    comparison.requests("prompt hook, in the server", "/hooks/claude-code", prompts)
    tools = [event("PostToolUse", **done) for _ in range(asks)]
    comparison.requests("tool hook, in the server", "/hooks/claude-code", tools)
    comparison.clients(
        "prompt hook, the client", [event("UserPromptSubmit", prompt=text) for text in islice(asked, starts)]
    )
    comparison.clients("tool hook, the client", [event("PostToolUse", **done) for _ in range(starts)])
    comparison.requests("write", "/v1/memories", list(memories(asks, WRITE_SEED)))


def main() -> None:
    """Compare with the checkout at a path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="the other checkout")
    parser.add_argument("--size", type=int, default=SIZE, help="number of memories")
    parser.add_argument("--asks", type=int, default=ASKS, help="requests of each kind")
    parser.add_argument("--starts", type=int, default=STARTS, help="processes of each kind")
    parser.add_argument("--json", type=Path, help="write the ratios here as well")
    chosen = parser.parse_args()
    report = Report()
    report.section(f"{ROOT} / {chosen.path}, {chosen.size:,} memories")
    with ExitStack() as stack:
        builds = (Build(ROOT), Build(chosen.path.resolve()))
        servers = [stack.enter_context(build.serve(chosen.size)) for build in builds]
        compare(Comparison(servers, report), chosen.size, chosen.asks, chosen.starts)
    report.write(chosen.json)


if __name__ == "__main__":
    main()
