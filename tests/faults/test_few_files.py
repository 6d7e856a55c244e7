"""Every process of the stack may open 256 files: many workspaces are visited, digested and swept all the same."""

import contextlib
import random
import threading
import urllib.request

import psutil
import pytest

from tests.support.stack import wait_until

pytestmark = pytest.mark.timeout(600)

FEW_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
WORKSPACES = [f"project-{number}" for number in range(80)]
CLIENTS = 2


def visit(stack, number, failures):
    """Write to all workspaces in an order of one's own, and ask for what was written."""
    order = random.Random(number).sample(WORKSPACES, len(WORKSPACES))
    for workspace in order:
        with contextlib.closing(stack.client(workspace)) as client:
            try:
                memory = client.remember(f"The word of client {number} in {workspace} is w{number}{workspace[8:]}x")
                found = client.recall(f"w{number}{workspace[8:]}x")["results"]
                assert memory in [hit["id"] for hit in found], (workspace, found)
            except Exception as error:  # noqa: BLE001 - shown by the test
                failures.append(repr(error))


def most_files(stack):
    """Tell how many files the process has open that has the most."""
    family = [
        p for name, process in stack.running.items() for p in (psutil.Process(process.pid), *stack.children(name))
    ]
    return max(process.num_fds() for process in family)


def test_few_files_are_enough_for_many_workspaces(make_stack):
    stack = make_stack(SEGMENT_INTERVAL_S="3600")
    stack.start("web", "worker", "scheduler", before=("-c", FEW_FILES))
    failures = []
    threads = [threading.Thread(target=visit, args=(stack, number, failures)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with contextlib.closing(stack.client()) as client:
        wait_until("all is digested", lambda: not count_pending(stack), 400)
        assert most_files(stack) < 256
        assert [error for error in client.errors() if "encoder" not in error] == []
    for name in stack.running:
        log = stack.tail(name, lines=10_000)
        assert "Too many open files" not in log
        assert "unable to open database" not in log


def count_pending(stack):
    """Count the work that waits in any workspace."""
    metrics = read_metrics(stack)
    return sum(float(line.rpartition(" ")[2]) for line in metrics.splitlines() if line.startswith("reverie_work_"))


def read_metrics(stack):
    token = (stack.home / "token").read_text(encoding="ascii").strip()
    request = urllib.request.Request(
        f"http://127.0.0.1:{stack.port}/metrics", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()
