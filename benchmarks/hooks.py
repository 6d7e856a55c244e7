"""Measure what a host waits for: a prompt, advice before a tool, a row in the journal, and the client of every hook.

Run by `make bench-hooks`. Everything but the client runs in this process, on a copy of the home of `make bench-recall`;
the client is timed from start to end, with a server that answers at once, and where no stack runs and it starts one.
The first prompt is also judged: is it answered?
"""

import argparse
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flask.testing import FlaskClient

from benchmarks.figures import Aim, Latency, Limit, Report, latency
from benchmarks.first_prompts import measure_first_prompts
from benchmarks.homes import BENCH, bench_folder, copy_of, prepare_home
from benchmarks.questions import questions
from config.settings import load_settings
from pipeline.bootstrap.web import WebContainer
from pipeline.index.encoders import usual_model
from web.http.app import create_app
from web.http.local_connection import SOCKET
from web.stack.processes import stop_all

SIZE = 10_000
PROMPTS, TOOLS, STARTS, STACKS = 300, 1000, 40, 8
LESSONS = 500
# Milliseconds that a call may wait for the lines before it.
ACT_MS = 10.0
# Events of one session.
SESSION = 100
QUESTION_SEED = 17
PROGRAM = Path(sys.executable).parent / "reverie-hook"
HOST = "127.0.0.1:7077"
# What a prompt may take longer than a recall, in milliseconds.
BESIDE_MS = 2.0


def main() -> None:
    """Print the figures, and write them as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help="memories in the home")
    parser.add_argument("--bench", type=Path, default=BENCH, help="where homes are kept")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    report = Report()
    measure_hooks(given.size, bench_folder(given.bench), report)
    report.write(given.json)


def measure_hooks(size: int, bench: Path, report: Report) -> None:
    """Report the latencies of each event on a home of a size, and of the session's client."""
    home = prepare_home(size, bench)
    asked = [question.text for question in questions(home.corpus, 3 * PROMPTS, QUESTION_SEED)]
    report.section(f"events in this process, {size:,} memories")
    with copy_of(home) as folder:
        environment = {"REVERIE_HOME": str(folder)}
        container = WebContainer(load_settings(environment), lambda _workspace, _stage: None)
        container.encoders.load(usual_model(container.settings))
        client = create_app(container).test_client()
        try:
            _measure_events(container, client, asked, report)
        finally:
            container.close()
    report.section("the client, a process for each event")
    python = _measure_clients(report)
    for name, found, bounds in _cold_starts(bench):
        _tell(report, name, found, python, **bounds)
    first, title = measure_first_prompts(bench), "the first prompt, the stack down"
    report.row(title, str(first), (Aim("p50", 1500), first.wait.p50), against=(python, first.wait.p50))
    report.keep(title, value=first.wait)


def _tell(report: Report, name: str, found: Latency, limit: Limit, **bounds: float) -> None:
    report.latency(name, found, limit, **bounds)
    report.keep(name, value=found)


def _measure_events(container: WebContainer, client: FlaskClient, asked: list[str], report: Report) -> None:
    headers, texts = {"Authorization": f"Bearer {container.token}", "Host": HOST}, iter(asked[-PROMPTS:])

    def recall() -> None:
        assert client.post("/v1/recall", json={"query": next(texts)}, headers=headers).status_code == 200

    request = Limit("an empty request", _time_calls(PROMPTS, lambda: client.get("/healthz", headers=headers)).p50)
    recalls = _time_calls(PROMPTS, recall, partial(_rest, container))
    report.latency("bare: a recall", recalls, request)
    for name, found, bounds in _events(container, client, asked[:-PROMPTS], recalls.p50 + BESIDE_MS):
        limit = Limit("a recall", recalls.p50) if name.startswith("UserPromptSubmit") else request
        _tell(report, name, found, limit, **bounds)


Timed = tuple[str, Latency, dict[str, float]]


def _events(container: WebContainer, client: FlaskClient, asked: list[str], prompt_ms: float) -> Iterator[Timed]:
    post = _poster(client, container.token)
    for text in asked[:50]:
        post("UserPromptSubmit", prompt=text)
    prompts = iter(asked[50:])
    # Nobody prompts twice within the milliseconds in which the last answer is noted.
    rest = partial(_rest, container)
    asking = _time_calls(PROMPTS, lambda: post("UserPromptSubmit", prompt=next(prompts)), rest)
    yield "UserPromptSubmit, new questions", asking, {"p50": round(prompt_ms, 2)}
    for number in range(LESSONS):
        headers = {"Authorization": f"Bearer {container.token}", "Host": HOST}
        lesson = {"content": f"Run make step-{number} before make release-{number}", "kind": "lesson"}
        client.post("/v1/memories", json=lesson, headers=headers)
    call = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "cd api && make none-of-these 2>&1"}}
    yield f"PreToolUse beside {LESSONS} lessons", _time_calls(PROMPTS, lambda: post("PreToolUse", **call), rest), {}
    for name, acts in _list_acts().items():
        numbered = itertools.cycle(acts)
        ask = _time_calls(PROMPTS, lambda numbered=numbered: post("PreToolUse", **next(numbered)), rest)
        yield f"PreToolUse, {name}", ask, {"p95": ACT_MS}
    done = call | {"tool_response": {"stdout": "x" * 2000, "stderr": "", "interrupted": False}}
    yield "PostToolUse, an action", _time_calls(TOOLS, lambda: post("PostToolUse", **done)), {"p50": 2}
    looked = call | {"tool_name": "Read", "tool_response": {"file": {"content": "x" * 20_000}}}
    yield "PostToolUse, a read", _time_calls(TOOLS, lambda: post("PostToolUse", **looked)), {}
    began = time.perf_counter()
    _rest(container)
    print(f"the journal was behind by {(time.perf_counter() - began) * 1000:.0f} ms after {2 * TOOLS} calls in a row")
    yield "SessionStart, a brief", _time_calls(50, lambda: post("SessionStart", source="startup")), {}


def _list_acts() -> dict[str, list[dict[str, Any]]]:
    """Return edits and commands: those that concern nothing, and those that break a rule."""
    code = "".join(f"def step_{number}(value):\n    return value + {number}\n" for number in range(200))
    edits = [
        {
            "tool_name": "Edit",
            "tool_input": {"file_path": f"{Path.cwd()}/src/m{n}.py", "old_string": code[:n], "new_string": code},
        }
        for n in range(20)
    ]
    runs = [
        {"tool_name": "Bash", "tool_input": {"command": f"make release-{number} && git push"}} for number in range(20)
    ]
    return {"edits": edits, "commands": runs}


def _poster(client: FlaskClient, token: str) -> Callable[..., Any]:
    headers = {"Authorization": f"Bearer {token}", "Host": HOST, "Content-Type": "application/json"}
    posted = itertools.count()

    def post(name: str, **fields: object) -> None:
        event = {
            "session_id": f"bench-{next(posted) // SESSION}",
            "cwd": str(Path.cwd()),
            "hook_event_name": name,
            **fields,
        }
        # The workspace that the corpus is in, whatever the folder.
        answer = client.post(
            "/hooks/claude-code", data=json.dumps(event), headers=headers | {"X-Reverie-Workspace": "default"}
        )
        assert answer.status_code == 200

    return post


def _rest(container: WebContainer) -> None:
    container.feedback.submit(lambda: None).result()


def _time_calls(count: int, ask: Callable[[], object], before: Callable[[], object] = lambda: None) -> Latency:
    took = []
    for _ in range(count):
        before()
        began = time.perf_counter()
        ask()
        took.append((time.perf_counter() - began) * 1000)
    return latency(took)


def _measure_clients(report: Report) -> Limit:
    """Time the client against a server that answers at once, and an empty program; return the program's time."""
    body = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    folder, listener = TemporaryDirectory(), socket.socket(socket.AF_UNIX)
    listener.bind(f"{folder.name}/{SOCKET}")
    listener.listen()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(body)

    threading.Thread(target=serve, daemon=True).start()
    environment = {"REVERIE_HOME": folder.name, "PATH": os.defpath}
    try:
        alone = _time_calls(STARTS, lambda: _run([sys.executable, "-S", "-E", "-c", "pass"], environment))
        limit = Limit("Python alone", alone.p50)
        report.latency("bare: Python alone (-S -E -c pass)", alone)
        found = _time_calls(STARTS, lambda: _run([str(PROGRAM), "claude-code"], environment))
        _tell(report, "the hook client, the stack up", found, limit, p50=40)
        return limit
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        folder.cleanup()


def _cold_starts(bench: Path) -> Iterator[Timed]:
    """Time the client where no stack runs, and the prompt that comes right behind it."""
    took: dict[str, list[float]] = {"SessionStart": [], "UserPromptSubmit": []}
    for _ in range(STACKS):
        with TemporaryDirectory(dir=bench) as folder, socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
            probe.close()
            Path(folder, "models").symlink_to(Path.home() / ".reverie" / "models", target_is_directory=True)
            moved = {"REVERIE_HOME": folder, "REVERIE_PORT": str(port)}
            for name, found in took.items():
                event = json.dumps({"hook_event_name": name, "session_id": "b", "cwd": folder, "prompt": "which port?"})
                began = time.perf_counter()
                _run([str(PROGRAM), "claude-code"], os.environ | moved, event.encode())
                found.append((time.perf_counter() - began) * 1000)
            stop_all(load_settings(moved))
    yield "the hook client, the stack down: it starts it", latency(took["SessionStart"]), {"p95": 60}
    yield "the prompt right behind it, which waits for it", latency(took["UserPromptSubmit"]), {}


def _run(command: list[str], environment: Mapping[str, str], event: bytes = b"{}") -> None:
    subprocess.run(command, input=event, env=environment, capture_output=True, check=True)


if __name__ == "__main__":
    main()
