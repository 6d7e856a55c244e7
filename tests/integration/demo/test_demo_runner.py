import io
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from demo import __main__ as entry, runner
from demo.client import Client
from demo.errors import DemoFailed
from demo.runner import Options, developer_environment, open_dashboard, run
from demo.sample import MONDAY
from demo.stack import HOST, is_free
from demo.story import list_sections
from tests.integration.demo.fake_reverie import WORKSPACE, FakeTerminal

ROOT = Path(__file__).resolve().parents[3]
FAKE = str(Path(__file__).with_name("fake_reverie.py"))


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@pytest.fixture
def environ():
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(autouse=True)
def fake_terminal(monkeypatch):
    monkeypatch.setattr(runner, "Terminal", FakeTerminal)


def run_once(home, port, environ):
    out = io.StringIO()
    options = Options(ROOT, home, (sys.executable, FAKE), once=True, port=port)
    code = run(options, environ, Console(file=out, width=110))
    return code, out.getvalue()


def test_once_shows_everything_and_stops_the_stack(tmp_path, port, environ):
    code, text = run_once(tmp_path, port, environ)
    assert code == 0, text
    assert text.count("✓") == 1 + sum(len(section.steps) for section in list_sections(MONDAY))
    assert "✗" not in text
    assert "A memory that was stored twice: merged." in text
    assert "[redacted]" in text
    assert f"http://{HOST}:{port}/w/{WORKSPACE}/map" in text
    assert text.endswith("Now with your own history: `reverie setup`\nStopping Reverie …\n")
    assert is_free(port)


def test_once_fails_where_another_memory_came_first(tmp_path, port, environ):
    code, text = run_once(tmp_path, port, environ | {"FAKE_WRONG": "1"})
    assert code == 1
    assert "expected: LAR-212 root cause" in text
    assert "Everything expected came" not in text
    assert is_free(port)


def test_without_a_browser_the_link_to_the_dashboard_is_printed(monkeypatch):
    monkeypatch.setattr(runner.webbrowser, "open", lambda _: False)
    out = io.StringIO()
    terminal = SimpleNamespace(run=lambda _: "http://127.0.0.1:7077/sign-in?code=c\n")
    open_dashboard(SimpleNamespace(terminal=terminal, console=Console(file=out)))
    assert out.getvalue() == "http://127.0.0.1:7077/sign-in?code=c\n"


def test_nothing_of_the_person_is_read(tmp_path):
    given = {"HOME": "/home/me", "CLAUDE_CONFIG_DIR": "/home/me/.claude", "REVERIE_HOME": "/home/me/.reverie"}
    environment = developer_environment(given, tmp_path, 7099)
    assert "CLAUDE_CONFIG_DIR" not in environment
    assert not any(value.startswith("/home/me") for value in environment.values())


def test_once_fails_where_the_workers_gave_up(tmp_path, port, environ):
    code, text = run_once(tmp_path, port, environ | {"FAKE_DEAD": "2"})
    assert code == 1
    assert "✗ dead letters: embed 2" in text


def test_a_stack_that_dies_fails_with_its_log(tmp_path, port, environ):
    with pytest.raises(DemoFailed, match="stopped by itself") as caught:
        run_once(tmp_path, port, environ | {"FAKE_CRASH": "1"})
    assert "the database is on fire" in caught.value.log_tail


def test_the_command_line_prints_a_failure_with_the_log_and_exits_1(tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise DemoFailed("the stack [web] stopped", "last\nwords")

    monkeypatch.setattr(entry, "run", fail)
    monkeypatch.setattr(entry.signal, "signal", lambda *_: None)
    assert entry.main(["--once"]) == 1
    out = capsys.readouterr().out
    assert "The demo failed: the stack [web] stopped" in out
    assert "words" in out


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--once"], 130)])
def test_an_interrupt_exits_0_unless_the_questions_were_to_be_judged(arguments, code, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "run", interrupt)
    monkeypatch.setattr(entry.signal, "signal", lambda *_: None)
    assert entry.main(arguments) == code
    assert "Stopped." in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_serving_demo_and_its_stack(tmp_path, port, environ, number):
    script = (
        "import pathlib, sys\n"
        "from demo import __main__ as entry, runner\n"
        "from tests.integration.demo.fake_reverie import FakeTerminal\n"
        "runner.Terminal = FakeTerminal\n"
        "entry.honcho_command = lambda home: [sys.executable, sys.argv[1]]\n"
        "entry.ROOT = pathlib.Path(sys.argv[2])\n"
        "sys.exit(entry.main(['--port', sys.argv[3]]))\n"
    )
    command = [sys.executable, "-u", "-c", script, FAKE, str(tmp_path), str(port)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if "Ctrl-C stops it" in line:
                demo.send_signal(number)
        assert demo.wait(60) == 0, "".join(lines)
    assert any(f"http://{HOST}:{port}" in line for line in lines)
    assert is_free(port)


def test_a_refused_request_is_reported_with_its_status(tmp_path, port, environ):
    server = subprocess.Popen(
        [sys.executable, FAKE],
        env=environ | {"REVERIE_HOME": str(tmp_path), "REVERIE_HOST": HOST, "REVERIE_PORT": str(port)},
    )
    try:
        while is_free(port):
            assert server.poll() is None
        with pytest.raises(DemoFailed, match="GET /v1/queue answered 401"):
            Client(f"http://{HOST}:{port}", "wrong", WORKSPACE).queue()
    finally:
        server.terminate()
        server.wait()


def test_a_missing_answer_is_reported(port):
    with pytest.raises(DemoFailed, match="GET /v1/queue got no answer"):
        Client(f"http://{HOST}:{port}", "t", WORKSPACE).queue()
