"""Live through hours of a developer's light use in minutes, and watch what the stack holds, writes and leaves behind.

Run by `make bench-soak`. The stack is `reverie up` on a scratch home with default settings. After the work it is left
alone, for what it does while idle; then it is ended in every way there is, and asked for orphans.
"""

import argparse
import itertools
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.corpus import memories
from benchmarks.exits import measure_exits
from benchmarks.figures import Aim, Limit, Report
from benchmarks.homes import BENCH, share_models
from benchmarks.processes import MIB, Sample, UpStack, Usage, fit_slope, run_bare
from tests.support.stack import ROOT, Client, wait_until

MINUTES = 10.0
SAMPLE_S = 15.0
# A minute of work, then a pause; somebody who works an hour does about as much as is done here in ten minutes.
ROUND_S, PAUSE_S = 60.0, 10.0
TURN_S = 1.5
TURNS_A_SESSION = 12
IDLE_SHARE = 0.2
SEED = 11
DIGESTED_WITHIN_S = 300.0


def main() -> None:
    """Print the figures, and write them as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="how long to work and to rest together")
    parser.add_argument("--bench", type=Path, default=BENCH, help="where the compiled encoder is kept")
    parser.add_argument("--no-exits", action="store_true", help="leave the ways to end it out")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    report = Report()
    scratch = Path(tempfile.mkdtemp(prefix="soak-"))
    stack = UpStack(scratch / "home", share_models(given.bench))
    try:
        stack.up()
        _soak(stack, given.minutes * 60, report)
        if not given.no_exits:
            measure_exits(stack, report)
        report.write(given.json)
    finally:
        stack.processes.kill_all()
        stack.reap()
        shutil.rmtree(scratch)


def _soak(stack: UpStack, seconds: float, report: Report) -> None:
    report.section(f"{seconds / 60:g} minutes, {IDLE_SHARE:.0%} of them idle")
    bare = Limit("an idle interpreter, MiB", run_bare("")[1] / MIB)
    report.row("bare: an idle interpreter", f"{bare.value:.1f} MiB PSS")
    client = stack.client()
    # The encoder's compilation is none of the work that is watched.
    _rest_until_digested(client, stack)
    before, written = stack.processes.usage(), _Work(client)
    samples = list(_sample_work(stack, written, seconds * (1 - IDLE_SHARE)))
    _report_use(report, written.counts, stack.processes.usage().since(before))
    _report_growth(report, samples)
    _rest_until_digested(client, stack)
    _report_idle(report, stack, seconds * IDLE_SHARE, bare)
    client.close()


def _rest_until_digested(client: Client, stack: UpStack) -> None:
    client.remember("The soak begins and ends with a memory that has been digested")

    def digested() -> bool:
        ready = client.call("GET", "/healthz").body["encoder"] == "ready"
        return ready and not any(client.call("GET", "/v1/queue").body["pending"].values())

    wait_until("everything is digested", digested, DIGESTED_WITHIN_S)


class _Work:
    """What a developer and an agent do, one turn after the other, and how often."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._chance = random.Random(SEED)
        self._corpus: Iterator[dict[str, Any]] = memories(1_000_000, SEED)
        self._turns = itertools.count()
        self.counts = {"writes": 0, "recalls": 0, "hooks": 0, "sessions": 0}

    def do_turn(self) -> None:
        """Prompt, call a tool, remember one or two things, ask for one."""
        number, memory = next(self._turns), next(self._corpus)
        session = f"soak-{number // TURNS_A_SESSION}"
        if number % TURNS_A_SESSION == 0:
            self.counts["sessions"] += 1
            self._hook(session, "SessionStart", source="startup")
        words = memory["content"].split()
        self._hook(session, "UserPromptSubmit", prompt=f"what about {' '.join(words[:8])}?")
        tool = {"tool_name": "Bash", "tool_use_id": f"t{number}", "tool_input": {"command": f"make {words[0]}"}}
        self._hook(session, "PreToolUse", **tool)
        self._hook(session, "PostToolUse", **tool, tool_response={"stdout": memory["content"], "stderr": ""})
        for item in (memory, *itertools.islice(self._corpus, number % 2)):
            self._post("/v1/memories", item, "writes")
        self._client.recall(" ".join(self._chance.sample(words, min(5, len(words)))))
        self.counts["recalls"] += 1
        if number % TURNS_A_SESSION == TURNS_A_SESSION - 1:
            self._hook(session, "Stop")

    def _hook(self, session: str, event: str, **fields: object) -> None:
        body = {"session_id": session, "cwd": str(ROOT), "hook_event_name": event, **fields}
        self._post("/hooks/claude-code", body, "hooks")

    def _post(self, path: str, body: object, counted: str) -> None:
        reply = self._client.call("POST", path, body)
        if reply.status not in (200, 201):
            raise SystemExit(f"{path} answered {reply}")
        self.counts[counted] += 1


def _sample_work(stack: UpStack, work: _Work, seconds: float) -> Iterator[Sample]:
    """Work, pause from time to time, and look at the processes as often as is due."""
    began = time.monotonic()
    due = began
    while (now := time.monotonic()) < began + seconds:
        if now >= due:
            due = now + SAMPLE_S
            sample = stack.processes.sample(now - began)
            print(f"  {sample}", flush=True)
            yield sample
        if (now - began) % ROUND_S < ROUND_S - PAUSE_S:
            work.do_turn()
        time.sleep(TURN_S)


def _report_use(report: Report, counts: dict[str, int], used: Usage) -> None:
    report.row("done", ", ".join(f"{count} {name}" for name, count in counts.items()))
    report.row("at work", f"{used.cpu_share:.1%} of a core, {used.written_a_second / 1000:.1f} KB/s written")
    report.keep("work", value=counts | {"cpu_share": used.cpu_share, "written_a_second": used.written_a_second})


def _report_growth(report: Report, samples: list[Sample]) -> None:
    """Fit a line through the second half of the samples: the first is caches that fill."""
    half = samples[len(samples) // 2 :]
    for name in [*sorted({name for sample in half for name in sample.uss}), "all"]:
        fit = fit_slope([(sample.at_s, sample.own(name)) for sample in half])
        slope, error = (bytes_a_second * 3600 / MIB for bytes_a_second in (fit.slope, fit.twice_error))
        figure = f"{half[-1].own(name) / MIB:7.1f} MiB, {slope:+7.1f} ± {error:.1f} MiB/h"
        report.row(f"USS of {name}, {len(half)} samples", figure)
        report.keep("growth", name, value={"uss": half[-1].own(name), "slope": fit.slope, "error": fit.twice_error})
    first, last = half[0], half[-1]
    report.row("open files, most in a process", f"{max(first.files.values())} → {max(last.files.values())}")
    report.row("threads, all", f"{sum(first.threads.values())} → {sum(last.threads.values())}")


def _report_idle(report: Report, stack: UpStack, seconds: float, bare: Limit) -> None:
    """Report the time after the work, in which jobs index what was written, and the rest that follows."""
    for name in ("just after the work", "at rest"):
        before = stack.processes.usage()
        time.sleep(seconds / 2)
        used = stack.processes.usage().since(before)
        rate = used.written_a_second
        report.section(f"{name}: {seconds / 2:.0f} s with nothing to digest")
        report.row("CPU", f"{used.cpu_share:.2%} of a core", (Aim("%", 0.3), 100 * used.cpu_share))
        report.row("written", f"{rate:.0f} bytes/s", (Aim("bytes/s", 1000), rate))
        for process, (cpu, written) in used.by_process().items():
            report.row(f"  {process}", f"{cpu:.2%} of a core, {written:.0f} bytes/s")
        report.keep("idle", name, value={"cpu_share": used.cpu_share, "written_a_second": rate})
    memory = stack.processes.sample(0.0).total
    report.row("PSS after it", f"{memory / MIB:.0f} MiB", against=(bare, memory / MIB))
    report.keep("idle", "pss", value=memory)


if __name__ == "__main__":
    main()
