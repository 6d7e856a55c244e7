import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from demo.errors import DemoFailed
from demo.stack import HOST, Stack, choose_port, claimed_home, honcho_command, is_free, stack_environment

ROOT = Path(__file__).resolve().parents[3]
# A process that starts another one in a session of its own, as a process manager does, and waits.
PARENT_AND_CHILD = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""


@pytest.fixture
def taken_port():
    with socket.socket() as holder:
        holder.bind((HOST, 0))
        holder.listen()
        yield holder.getsockname()[1]


def eventually(condition, deadline_s=30.0):
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.05)


def has_text(path):
    return path.exists() and path.read_text() != ""


def stack(tmp_path, *command):
    return Stack([sys.executable, *command], ROOT, tmp_path, os.environ)


def test_a_taken_port_is_refused_when_it_was_asked_for(taken_port):
    assert not is_free(taken_port)
    with pytest.raises(DemoFailed, match=str(taken_port)):
        choose_port(taken_port)


def test_the_next_free_port_is_chosen(monkeypatch):
    monkeypatch.setattr("demo.stack.is_free", lambda port: port >= 7079)
    assert choose_port(None) == 7079
    monkeypatch.setattr("demo.stack.is_free", lambda _: False)
    with pytest.raises(DemoFailed, match="no free port"):
        choose_port(None)


def test_demo_environment_uses_only_the_demo_data_directory(tmp_path):
    base = {
        "PATH": "/bin",
        "HOME": "/h",
        "REVERIE_HOME": "/mine",
        "REVERIE_QUEUE_URL": "redis://mine",
        "REVERIE_EMBEDDING_MODEL": "other",
    }
    env = stack_environment(base, tmp_path, 7078)
    assert env["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/bin"]
    assert (env["REVERIE_HOME"], env["REVERIE_PORT"], env["REVERIE_HOST"]) == (str(tmp_path), "7078", HOST)
    assert "REVERIE_QUEUE_URL" not in env
    assert (env["HOME"], env["REVERIE_EMBEDDING_MODEL"]) == ("/h", "other")


def test_demo_data_directory_is_emptied_except_models_and_locked(tmp_path):
    (tmp_path / "workspaces" / "demo").mkdir(parents=True)
    (tmp_path / "models").mkdir()
    (tmp_path / "token").write_text("old")
    with claimed_home(tmp_path) as home:
        assert not (home / "workspaces").exists()
        assert not (home / "token").exists()
        assert (home / "models").is_dir()
        (home / "token").write_text("ours")
        with pytest.raises(DemoFailed, match="another demo"), claimed_home(tmp_path):
            pass
        assert (home / "token").read_text() == "ours"
    with claimed_home(tmp_path):
        pass


def test_leaving_the_stack_stops_all_child_processes(tmp_path):
    pid_file = tmp_path / "pid"
    with stack(tmp_path, "-c", PARENT_AND_CHILD, str(pid_file)):
        eventually(lambda: has_text(pid_file))
        pid = int(pid_file.read_text())
        assert psutil.pid_exists(pid)
    eventually(lambda: is_gone(pid))


def test_a_killed_demo_leaves_no_processes(tmp_path):
    pid_file = tmp_path / "pid"
    command = [sys.executable, "-c", PARENT_AND_CHILD, str(pid_file)]
    script = (
        "import os, pathlib, signal, sys, time\n"
        "from demo.stack import Stack\n"
        f"root, home = pathlib.Path({str(ROOT)!r}), pathlib.Path({str(tmp_path)!r})\n"
        f"with Stack({command!r}, root, home, os.environ):\n"
        f"    while not pathlib.Path({str(pid_file)!r}).exists(): time.sleep(0.05)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False, timeout=60)
    eventually(lambda: has_text(pid_file))
    pid = int(pid_file.read_text())
    eventually(lambda: is_gone(pid))
    with claimed_home(tmp_path):
        assert not pid_file.exists()


def test_stack_that_exits_is_reported_with_its_log(tmp_path):
    with stack(tmp_path, "-c", "import sys; print('line one'); sys.exit('the disk is full')") as running:
        with pytest.raises(DemoFailed, match=r"stopped by itself \(exit code 1\)") as caught:
            running.wait_until_healthy(f"http://{HOST}:9", deadline_s=60)
        assert "line one" in caught.value.log_tail
        assert "the disk is full" in caught.value.log_tail


def test_a_server_that_never_answers_is_reported(tmp_path, taken_port):
    with (
        stack(tmp_path, "-c", "import time; time.sleep(600)") as running,
        pytest.raises(DemoFailed, match="no answer from"),
    ):
        running.wait_until_healthy(f"http://{HOST}:{taken_port}", deadline_s=0.1)


def test_honcho_starts_a_procfile_with_the_given_environment(tmp_path):
    (tmp_path / "Procfile").write_text("echo: echo port=$REVERIE_PORT > seen\n")
    (tmp_path / ".env").write_text("REVERIE_PORT=1\n")
    env = stack_environment(os.environ, tmp_path, 7078)
    done = subprocess.run(honcho_command(tmp_path), cwd=tmp_path, env=env, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen").read_text() == "port=7078\n"


def test_leaving_the_demo_stack_stops_its_processes(tmp_path):
    (tmp_path / "Procfile").write_text("one: echo $$ > one.pid; sleep 600\ntwo: echo $$ > two.pid; sleep 600\n")
    pid_files = [tmp_path / "one.pid", tmp_path / "two.pid"]
    env = {**stack_environment(os.environ, tmp_path, 7078), "PYTHONPATH": str(ROOT)}
    with Stack(honcho_command(tmp_path), tmp_path, tmp_path, env) as running:
        eventually(lambda: all(has_text(path) for path in pid_files))
        running.check()
    assert all(is_gone(int(path.read_text())) for path in pid_files)


def is_gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
