"""A real stack on a home of its own; `STACK_COMMAND` is the command that starts it."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import time

import pytest
from reverie_client import Reverie, ReverieError

DEADLINE_S = 120.0


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """Run `reverie up` on a free port; whoever asks without arguments asks it."""
    folder = tmp_path_factory.mktemp("home")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update({"REVERIE_HOME": str(folder), "REVERIE_PORT": str(port)})
    for name in ("REVERIE_HOST", "REVERIE_WORKSPACE"):
        os.environ.pop(name, None)
    command = [*shlex.split(os.environ.get("STACK_COMMAND", "reverie")), "up"]
    # The environment of the client's own installation is none of the server's.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as stack:
        try:
            wait_for_answer(stack)
            yield folder
        finally:
            stack.send_signal(signal.SIGTERM)
            stack.wait(30)


def wait_for_answer(stack):
    """Return when the server answers; fail when it ended, or takes too long."""
    end = time.monotonic() + DEADLINE_S
    while stack.poll() is None and time.monotonic() < end:
        # The token is made by the server.
        with contextlib.suppress(ReverieError), Reverie() as client:
            client.health()
            return
        time.sleep(0.1)
    raise AssertionError(f"no server answers; the stack's exit code: {stack.poll()}")


@pytest.fixture
def workspace(home, request, monkeypatch):
    """Name a workspace of the test's own, which clients without arguments speak of."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name)[:60].strip("-")
    monkeypatch.setenv("REVERIE_WORKSPACE", name)
    return name
