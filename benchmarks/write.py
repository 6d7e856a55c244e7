"""Measure `POST /v1/memories` over keep-alive, alone and while workers digest, beside a bare one; and batches.

Run by `make bench-write`. Starts the stack of the Procfile on a home of its own and stops it.
"""

import argparse
import http.client
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bare import time_bare_commits, time_bare_writes
from benchmarks.corpus import memories
from benchmarks.figures import Limit, Report, latency
from demo.stack import HOST, Stack, choose_port, honcho_command, stack_environment

ROOT = Path(__file__).resolve().parents[1]
READY_S = 600.0
WARM_UP = 200
BATCH = 100
# What a write may take at most, as a multiple of a bare one: alone, and the 95th percentile while workers digest.
ALONE, DIGESTING = 2, 4


class Connection:
    """One keep-alive connection to the server."""

    def __init__(self, port: int, token: str, workspace: str) -> None:
        self._http = http.client.HTTPConnection(HOST, port, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "X-Reverie-Workspace": workspace,
        }

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request and return its JSON."""
        raw = None if body is None else json.dumps(body).encode()
        self._http.request(method, path, raw, self._headers)
        response = self._http.getresponse()
        data = response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {data[:300]!r}")
        return json.loads(data)


def time_writes(connection: Connection, bodies: Sequence[dict[str, Any]]) -> list[float]:
    """Write memories one by one; return the milliseconds of each."""
    taken = []
    for body in bodies:
        began = time.perf_counter()
        connection.call("POST", "/v1/memories", body)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def write_batches(connection: Connection, bodies: Sequence[dict[str, Any]]) -> float:
    """Write memories in batches; return the seconds it took."""
    began = time.perf_counter()
    for start in range(0, len(bodies), BATCH):
        connection.call("POST", "/v1/memories/batch", {"items": bodies[start : start + BATCH]})
    return time.perf_counter() - began


def wait_until_digested(connection: Connection) -> float:
    """Wait until nothing is pending; return the seconds it took."""
    began = time.perf_counter()
    while sum(connection.call("GET", "/v1/queue")["pending"].values()):
        if time.perf_counter() - began > READY_S:
            raise SystemExit("the queue did not drain")
        time.sleep(0.05)
    return time.perf_counter() - began


def measure(port: int, token: str, count: int, report: Report) -> None:
    """Run the benchmark against a server that is up."""
    report.section("writes")
    warm = Connection(port, token, "warm")
    time_writes(warm, list(memories(WARM_UP, seed=1)))
    ready = f"{wait_until_digested(warm):.1f} s (the first start compiles the encoder)"
    report.row("workers ready", ready)

    backlog = Connection(port, token, "backlog")
    bodies = list(memories(count, seed=2))
    written = write_batches(backlog, bodies)
    drained = wait_until_digested(backlog)
    with tempfile.TemporaryDirectory(prefix="reverie-bare-") as folder:
        commits = time_bare_commits(Path(folder), [body["content"] for body in bodies], BATCH)
        bare = latency(time_bare_writes(Path(folder), list(memories(1000, 3)))[WARM_UP:])
    rate, plain = count / written, Limit(f"bare commits of {BATCH}", 1000 * count / sum(commits))
    report.row(f"batch write, {BATCH} a request", f"{rate:.0f} memories/s acknowledged", against=(plain, rate))
    # `make bench-digest` compares it with the encoder alone.
    report.row(f"digestion of {count} memories", f"{count / (written + drained):.0f} memories/s")
    report.latency("bare: a Flask POST and a FULL commit", bare)
    limit = Limit("a bare one", bare.p50)
    alone = latency(time_writes(Connection(port, token, "single"), list(memories(1000, 3))))
    report.latency("one by one, workers idle otherwise", alone, limit, p50=round(ALONE * bare.p50, 2))
    write_batches(backlog, list(memories(count, seed=5)))
    busy = latency(time_writes(Connection(port, token, "busy"), list(memories(1000, 4))))
    report.latency("one by one, while workers digest a backlog", busy, limit, p95=round(DIGESTING * bare.p50, 2))


def main() -> None:
    """Start a stack, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4000, help="memories of the digest run")
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as folder:
        home, port = Path(folder), choose_port(None)
        with Stack(honcho_command(home), ROOT, home, stack_environment(os.environ, home, port)) as stack:
            stack.wait_until_healthy(f"http://{HOST}:{port}")
            measure(port, (home / "token").read_text().strip(), count, Report())


if __name__ == "__main__":
    main()
