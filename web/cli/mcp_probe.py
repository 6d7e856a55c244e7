"""Start the configured `reverie mcp` command as a host does, and ask it for its tools."""

import json
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from config.operating_system import kill_group, new_process_group
from config.settings import environment_with
from pipeline.errors import ReverieError
from web.hosts.configured_commands import ServerCommand

# Hosts give up on a server after 10 to 60 s.
WITHIN_S = 10.0
# As hosts do, its input is closed first.
END_WITHIN_S = 1.0
PROTOCOL = "2025-06-18"
CLIENT = {"name": "reverie-doctor", "version": "1"}
_REQUESTS: tuple[Mapping[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": CLIENT},
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


class NoTools(ReverieError):
    """Report why a configured MCP server offers no tools."""


def count_tools(command: ServerCommand, folder: Path) -> tuple[int, float]:
    """Return how many tools the server of a host offers, and after how many milliseconds.

    Raises NoTools if it does not answer in time.
    """
    began = time.perf_counter()
    try:
        process = subprocess.Popen(  # noqa: S603 - the command that the host runs, without a shell
            list(command.words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment_with(command.variables),
            cwd=folder,
            **new_process_group(),
        )
    except OSError as error:
        raise NoTools(f"{command.words[0]} cannot be started: {error.strerror}") from error
    answers: SimpleQueue[bytes] = SimpleQueue()
    reader = threading.Thread(target=_read_lines, args=(process, answers), daemon=True)
    reader.start()
    with process:
        try:
            return _ask_for_tools(process, answers), (time.perf_counter() - began) * 1000
        finally:
            _end(process)
            reader.join()


def _ask_for_tools(process: "subprocess.Popen[bytes]", answers: "SimpleQueue[bytes]") -> int:
    deadline = time.monotonic() + WITHIN_S
    assert process.stdin is not None
    for request in _REQUESTS:
        try:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise NoTools("it ended before it was asked for its tools") from error
        if "id" in request:
            result = _wait_for_answer(answers, request, deadline)
    tools = result.get("tools")
    if not isinstance(tools, list):
        raise NoTools("its answer to tools/list has no tools")
    return len(tools)


def _read_lines(process: "subprocess.Popen[bytes]", answers: "SimpleQueue[bytes]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)
    answers.put(b"")


def _wait_for_answer(answers: "SimpleQueue[bytes]", request: Mapping[str, Any], deadline: float) -> dict[str, Any]:
    """Return the result of a request; skip notifications."""
    while True:
        try:
            line = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            raise NoTools(f"it did not answer {request['method']} within {WITHIN_S:g} s") from None
        if not line:
            raise NoTools(f"it ended without an answer to {request['method']}")
        try:
            message = json.loads(line)
        except ValueError as error:
            raise NoTools(f"it answered {request['method']} with something other than JSON") from error
        if isinstance(message, dict) and message.get("id") == request["id"]:
            result = message.get("result")
            if not isinstance(result, dict):
                raise NoTools(f"it refused {request['method']}: {message.get('error')}")
            return result


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    # It may have ended with unread input.
    with suppress(OSError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_WITHIN_S)
    # Also what it has started: that may hold its output open.
    kill_group(process.pid)
