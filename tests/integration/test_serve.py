"""`reverie team serve`: what it refuses and says instead, and the stack that it runs."""

import signal
import subprocess
import sys

import psutil
import pytest

from config.process import EXIT_IN_USE
from tests.support.stack import ROOT, Stack, wait_until
from tests.support.team import make_token, serve_command

PARTS = {"web", "workers.tasks.huey", "workers.schedule"}


@pytest.fixture
def stack(tmp_path):
    (tmp_path / "models").mkdir()
    with Stack(tmp_path / "home", tmp_path / "models") as stack:
        yield stack


def run(stack, command, **environment):
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**stack.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("command", [serve_command("--host", "0.0.0.0"), [sys.executable, "-m", "web.cli", "up"]])
def test_serving_beyond_loopback_reports_the_missing_requirements(stack, command):
    environment = {"REVERIE_HOST": "0.0.0.0"}
    code, says = run(stack, command, **environment)
    assert code == 1
    assert says.count("\n") == 1
    assert "without TLS" in says
    assert "reverie team serve --behind-proxy" in says
    code, says = run(stack, command, **environment, REVERIE_BEHIND_PROXY="127.0.0.1")
    assert code == 1
    assert "reverie user add NAME" in says


def test_the_web_server_itself_does_not_listen_either(stack):
    code, says = run(stack, [sys.executable, "-m", "web"], REVERIE_HOST="0.0.0.0")
    assert code == EXIT_IN_USE
    assert "without TLS" in says
    code, says = run(stack, [sys.executable, "-m", "web"], REVERIE_BEHIND_PROXY="127.0.0.1")
    assert code == EXIT_IN_USE
    assert "reverie user add NAME" in says


def test_team_serve_runs_and_stops_the_stack_with_its_options(stack):
    make_token(stack.home, "Ann")
    elsewhere = {**stack.environment, "REVERIE_PORT": "1"}
    with (stack.logs / "serve.log").open("wb") as log:
        stack.running["serve"] = subprocess.Popen(
            serve_command("--behind-proxy", "--host", "0.0.0.0", "--port", str(stack.port)),
            cwd=ROOT,
            env=elsewhere,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    wait_until("the server answers", stack.is_healthy)
    wait_until(
        "all three run", lambda: {part for child in stack.children("serve") for part in child.cmdline()} >= PARTS
    )
    process = stack.running["serve"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert "`public_url` is not set" in (stack.logs / "serve.log").read_text()


@pytest.mark.parametrize("name", ["worker", "scheduler"])
def test_it_becomes_one_process_of_the_stack(stack, name):
    with (stack.logs / f"{name}.log").open("wb") as log:
        stack.running[name] = subprocess.Popen(
            serve_command("--only", name), cwd=ROOT, env=stack.environment, stdout=log, stderr=log
        )
    runs = {"worker": "workers.tasks.huey", "scheduler": "workers.schedule"}[name]
    process = stack.running[name]

    def has_become():
        assert process.poll() is None, stack.tail(name)
        return runs in psutil.Process(process.pid).cmdline()

    wait_until(f"it is a {name}", has_become)
