import io
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from demo import __main__ as entry
from demo.client import Client
from demo.errors import DemoFailed
from demo.runner import Options, run
from demo.stack import HOST, is_free

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


def run_once(home, port, environ):
    out = io.StringIO()
    options = Options(ROOT, home, (sys.executable, FAKE), once=True, port=port)
    code = run(options, environ, Console(file=out, width=110))
    return code, out.getvalue()


def test_once_shows_everything_and_stops_the_stack(tmp_path, port, environ):
    code, text = run_once(tmp_path, port, environ)
    assert code == 0, text
    assert text.count("✓") == 8
    assert "✗" not in text
    assert "144 memories of 14 sessions" in text
    assert "→ merged" in text
    assert "[redacted]" in text
    assert "lexical #1 7.25 · dense -" in text
    assert "now 6543, since 2026-09-02" in text
    assert "as of 2026-06-01 5433, since 2026-01-27" in text
    assert "To “thanks!” the hook adds nothing" in text
    assert is_free(port)


def test_once_fails_where_another_memory_came_first(tmp_path, port, environ):
    code, text = run_once(tmp_path, port, environ | {"FAKE_WRONG": "1"})
    assert code == 1
    assert "✗ question 3: the memory with “staging database port: 6543” did not come first" in text
    assert is_free(port)


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
        "from demo import __main__ as entry\n"
        "entry.honcho_command = lambda home: [sys.executable, sys.argv[1]]\n"
        "entry.ROOT = pathlib.Path(sys.argv[2])\n"
        "sys.exit(entry.main(['--port', sys.argv[3]]))\n"
    )
    command = [sys.executable, "-u", "-c", script, FAKE, str(tmp_path), str(port)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        lines = []
        for line in demo.stdout:
            lines.append(line)
            if "Ctrl-C stops it" in line:
                demo.send_signal(number)
        assert demo.wait(60) == 0, "".join(lines)
    assert any(f"http://{HOST}:{port}" in line for line in lines)
    assert is_free(port)


def test_a_refusal_is_told_with_its_status(tmp_path, port, environ):
    server = subprocess.Popen(
        [sys.executable, FAKE],
        env=environ | {"REVERIE_HOME": str(tmp_path), "REVERIE_HOST": HOST, "REVERIE_PORT": str(port)},
    )
    try:
        while is_free(port):
            assert server.poll() is None
        with pytest.raises(DemoFailed, match="GET /v1/queue answered 401"):
            Client(f"http://{HOST}:{port}", "wrong").queue()
    finally:
        server.terminate()
        server.wait()


def test_no_answer_is_told(port):
    with pytest.raises(DemoFailed, match="GET /v1/queue got no answer"):
        Client(f"http://{HOST}:{port}", "t").queue()


def test_the_history_is_valid_json_lines():
    text = (ROOT / "demo" / "history.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert all(isinstance(json.loads(line), dict) for line in text.splitlines())
