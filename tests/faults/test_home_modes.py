"""Nobody but its owner can enter or read anything of a home, whatever the umask and whatever stood there before."""

import contextlib
import http.client
import os
import subprocess
import sys

import pytest

from tests.support.stack import HOST, ROOT, wait_until

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's"),
]


def reverie(stack, *arguments):
    """Run a command of the command line under a umask that closes nothing."""
    command = [sys.executable, "-m", "web.cli", *arguments]
    subprocess.run(command, cwd=ROOT, env=stack.environment, umask=0, check=True, capture_output=True, timeout=90)


def open_places(home):
    """List what of a home others may enter, read or change, links aside."""
    found = [home, *home.rglob("*")]
    modes = {place: place.lstat().st_mode for place in found if place.exists() and not place.is_symlink()}
    assert len(modes) > 15
    return {str(place.relative_to(home)): oct(mode) for place, mode in modes.items() if mode & 0o077}


def test_a_umask_that_closes_nothing_opens_nothing(make_stack):
    stack = make_stack()
    reverie(stack, "up", "--daemon")
    with contextlib.ExitStack() as ending:
        ending.callback(reverie, stack, "down")
        client = ending.enter_context(contextlib.closing(stack.client()))
        for number in range(20):
            client.remember(f"The staging database of team {number} listens on port {5400 + number}")
        stack.wait_until_digested(client)
        # Written by the scheduler, the worker and the command line, each in its own process.
        client.call("POST", "/v1/jobs/segment")
        client.call("POST", "/v1/jobs/vectors")
        reverie(stack, "store", "snapshot", "take", "-w", "default")
        wait_until("the segment is built", lambda: any((stack.workspace / "lexical").iterdir()))
        sign_in(stack, client)
        while_up = open_places(stack.home)
    assert {"token", "sessions", "queue.sqlite"} <= {place.name for place in stack.home.iterdir()}
    assert any((stack.home / "logs").iterdir())
    assert any((stack.workspace / "vectors.lance").iterdir())
    assert while_up == {}
    assert open_places(stack.home) == {}


def sign_in(stack, client):
    """Follow a one-time link, as a browser does."""
    url = client.call("POST", "/v1/dashboard/links").body["url"]
    connection = http.client.HTTPConnection(HOST, stack.port, timeout=30)
    connection.request("GET", url.partition(f":{stack.port}")[2])
    assert connection.getresponse().status == 303
    connection.close()


def test_public_data_directory_is_made_private(make_stack, tmp_path):
    stack = make_stack()
    stack.start("web")
    with contextlib.closing(stack.client()) as client:
        client.remember("The staging database listens on port 5433")
    reverie(stack, "store", "snapshot", "take", "-w", "default")
    stack.stop()
    outside = tmp_path / "outside"
    outside.write_text("of somebody else's")
    outside.chmod(0o644)
    (stack.home / "elsewhere").symlink_to(outside)
    (stack.home / "config.toml").write_text("review = true\n")
    for place in [stack.home, *stack.home.rglob("*")]:
        if not place.is_symlink():
            place.chmod(0o777 if place.is_dir() else 0o666)
    stack.start("web")
    assert open_places(stack.home) == {}
    assert outside.stat().st_mode & 0o777 == 0o644
