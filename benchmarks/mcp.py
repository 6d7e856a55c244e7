"""Measure how long a host waits for what it asks of `reverie mcp` at its start, beside a running web server.

Run by `make bench-mcp`. Each run is a process of its own, from its start to the answer.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import Aim, Limit, Report, latency
from benchmarks.homes import stack_on
from benchmarks.processes import run_bare

REVERIE = str(Path(sys.executable).parent / "reverie")
RUNS = 20
AIM_MS = 250
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
# In the order in which hosts say it; what stands together is said at once.
SAID: tuple[tuple[tuple[str, dict[str, Any]], ...], ...] = (
    (("initialize", CLIENT),),
    (("notifications/initialized", {}), ("tools/list", {}), ("prompts/list", {}), ("resources/list", {})),
    (("tools/call", {"name": "goals", "arguments": {}}),),
)


def time_answers(environment: dict[str, str], folder: str) -> dict[str, float]:
    """Start a relay and return the milliseconds from its start to each answer."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [REVERIE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=folder
    )
    assert process.stdin is not None
    assert process.stdout is not None
    took = {}
    with process:
        for together in SAID:
            for method, params in together:
                request = {"jsonrpc": "2.0", "method": method, "params": params}
                asked = {} if method.startswith("notifications/") else {"id": method}
                process.stdin.write(json.dumps(request | asked).encode() + b"\n")
            process.stdin.flush()
            for method, _ in together:
                if not method.startswith("notifications/"):
                    assert json.loads(process.stdout.readline())["id"] == method
                    took[method] = (time.perf_counter() - began) * 1000
        process.stdin.close()
    return took


def main() -> None:
    """Print the median and the 95th percentile of each answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder, stack_on(Path(folder) / "home") as stack:
        stack.start("web")
        stack.client().close()
        runs = [time_answers(stack.environment, folder) for _ in range(chosen.runs)]
        bare = Limit("an interpreter", latency([1000 * run_bare("")[0] for _ in range(chosen.runs)]).p50)
        report.section(f"`reverie mcp`, {chosen.runs} starts, from the start of the process to the answer")
        for method in runs[0]:
            found = latency([run[method] for run in runs])
            aims = [] if method == "tools/call" else [(Aim("p50", AIM_MS), found.p50)]
            report.row(method, str(found), *aims, against=(bare, found.p50))
            report.keep("mcp", method, value=found)
    report.write(chosen.json)


if __name__ == "__main__":
    main()
