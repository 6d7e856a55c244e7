"""Every way in which a stack may end, and what is left of it."""

import signal
import time
from collections.abc import Callable

from benchmarks.figures import Aim, Report
from benchmarks.processes import UpStack
from tests.support.stack import wait_until

NONE_LEFT = Aim("orphans", 0)
GONE_WITHIN_S = 30.0


def measure_exits(stack: UpStack, report: Report) -> None:
    """End the running stack and start it again, in every way; report what lives on and how long the rest took."""
    report.section("ends")
    ways: dict[str, Callable[[], None]] = {"reverie down": stack.down}
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        ways[f"{number.name} to the supervisor"] = lambda number=number: _signal_supervisor(stack, number)
    for name in ("web", "worker", "scheduler"):
        ways[f"SIGKILL to {name}, then reverie down"] = lambda name=name: _kill_and_stop(stack, name)
    for way, end in ways.items():
        if not stack.processes.alive():
            stack.up()
        began = time.monotonic()
        end()
        left = _count_left(stack)
        report.row(way, f"{left} left after {time.monotonic() - began:.1f} s", (NONE_LEFT, left))
        report.keep("exits", way, value=left)
        stack.processes.kill_all()
        stack.reap()


def _signal_supervisor(stack: UpStack, number: signal.Signals) -> None:
    assert stack.supervisor is not None
    stack.supervisor.send_signal(number)


def _kill_and_stop(stack: UpStack, name: str) -> None:
    """Kill a process, wait for its successor, and stop all; forks of the one that died count as left if they stay."""
    old = stack.processes.find(name)
    children = old.children(recursive=True)
    old.kill()
    wait_until(f"{name} is back", lambda: name in stack.processes.names() and stack.processes.find(name) != old)
    wait_until(f"the forks of {name} are gone", lambda: not any(child.is_running() for child in children))
    stack.down()


def _count_left(stack: UpStack) -> int:
    end = time.monotonic() + GONE_WITHIN_S
    while (left := len(stack.processes.alive())) and time.monotonic() < end:
        time.sleep(0.2)
    return left
