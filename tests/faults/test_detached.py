"""The stack belongs to nobody: no end of a host, and no signal to its processes, ends what it has started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from config.settings import load_settings
from tests.support.stack import free_port, wait_until
from web.hooks import client
from web.stack.processes import list_running, stop_all

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(os.name != "posix", reason="process groups and sessions as POSIX has them"),
]

# Starts the client as a host does, says when it is back, and waits.
HOST = """
import subprocess, sys, time
subprocess.run(sys.argv[1:], stdin=open({event!r}))
print("back", flush=True)
time.sleep(600)
"""


@pytest.fixture
def settings(tmp_path, models):
    found = load_settings({"REVERIE_HOME": str(tmp_path / "home"), "REVERIE_PORT": str(free_port())})
    found.paths.root.mkdir(mode=0o700)
    # Otherwise each stack begins to compile them.
    found.paths.models.symlink_to(models, target_is_directory=True)
    yield found
    stop_all(found)


@pytest.fixture
def host(tmp_path, settings):
    """A host whose hook has just found nothing listening; whoever reads "back" from it knows that the hook is over."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"hook_event_name": "SessionStart", "cwd": str(tmp_path)}))
    process = subprocess.Popen(
        [sys.executable, "-c", HOST.format(event=str(event)), sys.executable, client.__file__, "claude-code"],
        env=os.environ | {"REVERIE_HOME": str(settings.home), "REVERIE_PORT": str(settings.port)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout.readline() == b"back\n"
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()


def end_by_exit(host):
    host.send_signal(signal.SIGTERM)


def end_by_kill(host):
    host.kill()


def end_group(host):
    os.killpg(host.pid, signal.SIGKILL)


def end_session(host):
    for process in psutil.process_iter():
        if os.getsid(process.pid) == host.pid:
            process.kill()


def end_descendants(host):
    for process in [*psutil.Process(host.pid).children(recursive=True), psutil.Process(host.pid)]:
        process.kill()


@pytest.mark.parametrize("end", [end_by_exit, end_by_kill, end_group, end_session, end_descendants])
def test_no_end_of_a_host_ends_a_stack_that_is_just_starting(settings, host, end):
    end(host)
    wait_until("the stack runs", lambda: [p.name for p in list_running(settings)][:2] == ["supervisor", "web"])
    supervisor = list_running(settings)[0].process
    assert os.getsid(supervisor.pid) not in (os.getsid(0), host.pid)
    assert Path(supervisor.cwd()) == Path("/")


def test_stack_started_by_a_hook_leaves_no_zombie_or_open_host_files(settings, host):
    wait_until("the stack runs", lambda: [p.name for p in list_running(settings)][:2] == ["supervisor", "web"])
    assert psutil.Process(host.pid).children(recursive=True) == []
    supervisor = list_running(settings)[0].process
    assert {file.path for file in supervisor.open_files()} <= {
        str(settings.paths.logs / "reverie.log"),
        str(settings.paths.root / "up.lock"),
        str(settings.paths.root / "up.pid"),
    }
    pipe = f"pipe:[{os.fstat(host.stdout.fileno()).st_ino}]"
    assert pipe not in [str(entry.readlink()) for entry in Path(f"/proc/{supervisor.pid}/fd").glob("*")]
