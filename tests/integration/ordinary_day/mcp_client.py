"""A host that speaks MCP with `reverie mcp` over standard input and output, one call at a time."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROTOCOL = "2025-06-18"


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool answered, as its model reads it."""

    text: str
    is_error: bool


class McpClient:
    """A running `reverie mcp` in a folder."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )
        self._requests = 0
        client = {"name": "claude-code", "version": "2.1.36"}
        self._ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool."""
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return ToolAnswer(str(answer["error"].get("message")), is_error=True)
        result = answer["result"]
        text = "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
        return ToolAnswer(text, is_error=result.get("isError") is True)

    def close(self) -> None:
        """End it as a host does, by closing its input."""
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._requests and "method" not in answer:
                return answer
        raise AssertionError(f"reverie mcp ended with {self._process.wait()} instead of an answer to {method}")

    def _send(self, message: Mapping[str, Any]) -> None:
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()
