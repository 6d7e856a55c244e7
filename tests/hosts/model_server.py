"""A stand-in for the model that hosts ask: speaks four protocols, answers by a script, keeps every request.

Anthropic's Messages, OpenAI's Responses and Chat Completions, and Gemini's streamGenerateContent, each streamed.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Event = tuple[str | None, dict[str, Any]]


@dataclass(frozen=True)
class Say:
    """The model's last word of a turn."""

    text: str = "Done."


@dataclass(frozen=True)
class Call:
    """A tool to call: by its name, or by the end of it, since hosts put the server's name before a tool's."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fail:
    """An error instead of an answer."""

    status: int = 400
    message: str = "the prompt is too long"

    @property
    def body(self) -> bytes:
        """Return the answer of a server that refuses a request."""
        error = {"type": "invalid_request_error", "code": self.status, "message": self.message}
        return json.dumps({"type": "error", "error": error}).encode()


@dataclass(frozen=True)
class Stall:
    """No answer until the host gives up, its user interrupts it, or the server ends."""


Turn = Say | Call | Fail | Stall


@dataclass(frozen=True)
class ModelRequest:
    """What a host sent for one step of its agent."""

    path: str
    body: dict[str, Any]
    at: float

    @property
    def tools(self) -> list[str]:
        """Name the tools that the model is offered."""
        return [name for tool in self.body.get("tools") or () for name in _tool_names(tool)]

    @property
    def text(self) -> str:
        """Return all that the model is given to read, without the tools."""
        return json.dumps({name: value for name, value in self.body.items() if name != "tools"}, ensure_ascii=False)

    @property
    def results(self) -> list[str]:
        """Return what the model is told that its tools answered, in order."""
        return [text for part in _parts(self.body) for text in _results(part)]


def _parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pieces of a conversation, however a protocol nests them."""
    said = body.get("messages") or body.get("input") or body.get("contents") or []
    parts = []
    for one in said:
        inner = one.get("content") or one.get("parts")
        parts += [one, *(inner if isinstance(inner, list) else [])]
    return parts


def _results(part: dict[str, Any]) -> list[str]:
    if part.get("type") in ("tool_result", "function_call_output") or part.get("role") == "tool":
        content = part.get("content", part.get("output"))
        return [content] if isinstance(content, str) else [one.get("text", "") for one in content or ()]
    if "functionResponse" in part:
        return [json.dumps(part["functionResponse"]["response"], ensure_ascii=False)]
    return []


def _tool_names(tool: dict[str, Any]) -> list[str]:
    if "functionDeclarations" in tool:
        return [one["name"] for one in tool["functionDeclarations"]]
    if tool.get("type") == "namespace":
        return [f"{tool['name']}/{one['name']}" for one in tool["tools"]]
    return [tool.get("name") or tool.get("function", {}).get("name") or tool.get("type", "")]


# A part of the names that hosts give to Reverie's tools.
OURS = "reverie"
# An answer, or a model that reads the request.
Step = Turn | Callable[[ModelRequest], Turn]


class ModelServer:
    """Serves on a free port of loopback; a context."""

    def __init__(self) -> None:
        self.script: list[Step] = []
        self.requests: list[ModelRequest] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def expect(self, *script: Step) -> None:
        """Answer the next steps so, and forget the requests so far."""
        with self._lock:
            self.script, self.requests = list(script), []

    def _next(self, request: ModelRequest) -> Turn:
        # Hosts ask for titles and summaries beside the agent's steps, without tools, and for verdicts in JSON: without
        # one that it can read, Gemini CLI asks for a minute and a half.
        if request.body.get("generationConfig", {}).get("responseMimeType") == "application/json":
            return Say(json.dumps({"reasoning": "", "model_choice": "flash", "next_speaker": "user"}))
        if not request.tools:
            return Say("A title")
        with self._lock:
            self.requests.append(request)
            step = self.script.pop(0) if self.script else Say()
        return step(request) if callable(step) else step

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send(b'{"models": [], "data": [], "object": "list"}', "application/json")

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                request = ModelRequest(self.path, body, time.monotonic())
                if "count_tokens" in self.path or "countTokens" in self.path:
                    self._send(b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
                    return
                speak = next((speak for part, speak in PROTOCOLS.items() if part in self.path), None)
                if speak is None:
                    self._send(b"{}", "application/json")
                    return
                turn = model._next(request)
                if isinstance(turn, Stall):
                    model._ended.wait()
                    return
                if isinstance(turn, Fail):
                    self._send(turn.body, "application/json", turn.status)
                    return
                turn = _resolve(turn, request.tools)
                events = list(speak(turn, len(model.requests)))
                if "generateContent" in self.path:
                    self._send(json.dumps(events[-1][1]).encode(), "application/json")
                    return
                self._send(b"".join(map(_encode, events)), "text/event-stream")

            def _send(self, body: bytes, kind: str, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        return Handler


def _resolve(turn: Say | Call, tools: list[str]) -> Say | Call:
    if isinstance(turn, Say):
        return turn
    # Kilo has a tool of its own whose name ends as one of ours.
    found = sorted(
        (tool for tool in tools if tool.endswith(turn.tool)), key=lambda tool: (tool != turn.tool, OURS not in tool)
    )
    return Call(next(iter(found), turn.tool), turn.arguments)


def _encode(event: Event) -> bytes:
    name, data = event
    head = "" if name is None else f"event: {name}\n"
    text = "[DONE]" if not data else json.dumps(data)
    return f"{head}data: {text}\n\n".encode()


def _messages(turn: Say | Call, number: int) -> Iterator[Event]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude", "content": []}
    yield "message_start", {"type": "message_start", "message": message | {"stop_reason": None, "usage": usage}}
    if isinstance(turn, Say):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": turn.text}
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": turn.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if isinstance(turn, Say) else "tool_use"
    yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _responses(turn: Say | Call, number: int) -> Iterator[Event]:
    response: dict[str, Any] = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
    yield "response.created", {"type": "response.created", "response": response}
    if isinstance(turn, Say):
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": f"m_{number}", "role": "assistant", "content": content}
    elif turn.tool == "apply_patch":
        item = {"type": "custom_tool_call", "call_id": f"call_{number}", "name": turn.tool}
        item["input"] = turn.arguments["input"]
    else:
        namespace, _, name = turn.tool.rpartition("/")
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        item["arguments"] = json.dumps(turn.arguments)
        if namespace:
            item["namespace"] = namespace
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    done = response | {"status": "completed", "output": [item], "usage": usage}
    yield "response.completed", {"type": "response.completed", "response": done}


def _completions(turn: Say | Call, number: int) -> Iterator[Event]:
    head = {"id": f"c_{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    if isinstance(turn, Say):
        delta: dict[str, Any] = {"role": "assistant", "content": turn.text}
    else:
        function = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}],
        }
    yield None, head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "stop" if isinstance(turn, Say) else "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield None, head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}
    yield None, {}


def _generate(turn: Say | Call, _number: int) -> Iterator[Event]:
    if isinstance(turn, Say):
        part: dict[str, Any] = {"text": turn.text}
    else:
        part = {"functionCall": {"name": turn.tool, "args": turn.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    yield None, {"candidates": [candidate], "usageMetadata": usage}


PROTOCOLS = {
    "/messages": _messages,
    "/responses": _responses,
    "/chat/completions": _completions,
    "enerateContent": _generate,
}
