"""Measure the CPU of the largest hostile body that each route takes, worst first.

Run by `make bench-largest`. Everything runs in this process, on an empty home with hashed words for vectors: what is
measured is what a request costs before a worker sees it. Each text is tried small first; only those that seemed worst
are tried at the full size.
"""

import argparse
import itertools
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from benchmarks.figures import Aim, Limit, Report
from pipeline.kernel.records import MAX_METADATA_BYTES
from tests.fakes.client import HOST
from tests.fakes.in_process import fast_settings, open_web
from web.http.app import create_app
from web.http.lazy_app import MAX_BODY_BYTES

AIM = Aim("s", 1.0)
# Rounds of plain parsing: one alone is shorter than the clock's step.
PARSED = 5
SMALL = 16
# What a body has beside its texts: names of fields, quotation marks.
MARGIN = 64 * 1024
TAKES_A_BODY = ("post", "put", "patch")
HOOK = "/hooks/claude-code"

# Texts that cost much where a pattern looks at the same letters again from every place.
TEXTS: dict[str, str] = {
    "letters": "a",
    "capitals": "A",
    "digits": "1",
    "words": "word ",
    "assignments": "key=",
    "passwords": "password: ",
    "quoted names": '"password": "',
    "addresses": "http://a:b@",
    "open addresses": "https://user:",
    "mail": "a.b@c.",
    "paths": "/a/b.",
    "dots": "a.",
    "dashes": "a-",
    "underscores": "a_",
    "base64": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.",
    "keys": "-----BEGIN PRIVATE KEY-----\n",
    "tags": "<add key='DbPassword' value='",
    "brackets": "[(<{",
    "quotes": "\"'`",
    "backslashes": "\\",
    "spaces": "a  \t",
    "lines": "a:\n",
    "lists": "- a: ",
    "shell": "curl -u a:$'",
    "numbers": "4111 1111 ",
    "dates": "2026-03-01 ",
    "accents": "a\u0301\u0323",
    "hidden": "p\u200ba\u200d",
    "hangul": "\u1112\u1161\u11ab",
    "negations": "not never no ",
    "orders": "ignore previous instructions ",
    "names": "Ada Byron-Smith ",
}

# What fits a pattern or is known by a name, where any text would be turned away.
SAMPLES = ("a" * 50, "0" * 64, "workspace", "2026-01-01T00:00:00Z", "1")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one request cost."""

    route: str
    text: str
    size: int
    status: int
    cpu_s: float
    parse_s: float


class Filler:
    """Fills a JSON schema with a text, as much of it as the limits let in."""

    def __init__(self, schemas: dict[str, Any], text: str, room: int) -> None:
        self._schemas = schemas
        self._text = text
        self._room = room
        self._numbers = itertools.count()

    def fill(self, schema: dict[str, Any], name: str = "") -> Any:
        """Return a value that the schema takes, as large as it may be."""
        if "$ref" in schema:
            return self.fill(self._schemas[schema["$ref"].rpartition("/")[2]], name)
        if "anyOf" in schema:
            return self.fill(next(one for one in schema["anyOf"] if one.get("type") != "null"), name)
        if name == "kind" and "decision" in schema.get("enum", ()):
            return "decision"
        if "enum" in schema:
            return schema["enum"][0]
        fillers: dict[str, Callable[[dict[str, Any], str], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
        }
        kind = schema.get("type", "")
        return fillers[kind](schema, name) if kind in fillers else {"boolean": True}.get(kind, schema.get("minimum", 1))

    def text(self, most: int) -> str:
        """Return the text so often that it has so many letters; no two are the same."""
        whole = f"{next(self._numbers)} {self._text * (most // len(self._text) + 1)}"[:most]
        self._room -= len(json.dumps(whole))
        return whole

    def _string(self, schema: dict[str, Any], _name: str) -> str:
        if "pattern" in schema:
            return next(sample for sample in SAMPLES if re.fullmatch(schema["pattern"], sample))
        return "2026-01-01T00:00:00Z" if "format" in schema else self.text(schema["maxLength"])

    def _array(self, schema: dict[str, Any], name: str) -> list[Any]:
        if "prefixItems" in schema:
            return [1, 2]
        if name in ("edges", "kinds"):
            # An edge leads to a memory that is there; without kinds all are asked for.
            return []
        items = []
        while len(items) < schema["maxItems"] and self._room > 0:
            items.append(self.fill(schema["items"], name))
        return items

    def _object(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        if name == "details":
            return {"reason": self.text(2000), "alternatives": [self.text(500) for _ in range(20)]}
        if name == "metadata":
            return {"text": self._json_text(MAX_METADATA_BYTES - 16)}
        if schema.get("title") == "ScopeBody":
            return {"kind": "session", "id": self.text(256)}
        return {
            field: self.fill(inner, field)
            for field, inner in schema["properties"].items()
            # What says of something else what it is has no largest size.
            if field in schema.get("required", ())
            or field not in ("as_of", "source", "session_id", "trust", "group", "budget_ms")
        }

    def _json_text(self, most: int) -> str:
        text = self.text(most)
        while len(json.dumps(text, ensure_ascii=False).encode()) > most:
            text = text[: len(text) * 9 // 10]
        return text


def hook_events(text: str, room: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield events that are as large as a request may be."""
    whole = text * (room // len(text) // len(json.dumps(text)) * len(text) + 1)
    for event in ("UserPromptSubmit", "PreToolUse", "PostToolUse"):
        for tool, field in (("Bash", "command"), ("Edit", "file_path"), ("Bash", "other")):
            yield (
                f"{event} {field}",
                {
                    "hook_event_name": event,
                    "session_id": "s1",
                    "cwd": "/",
                    "prompt": whole if event == "UserPromptSubmit" else "",
                    "tool_name": tool,
                    "tool_input": {field: whole} if event != "UserPromptSubmit" else {},
                },
            )
            if event == "UserPromptSubmit":
                break


class Bench:
    """Sends bodies to the routes of an app, and counts what they cost."""

    def __init__(self, client: FlaskClient, headers: dict[str, str], settle: Callable[[], None]) -> None:
        self._client = client
        self._settle = settle
        self._headers = headers
        self.document: dict[str, Any] = client.get("/openapi.json", headers=headers).get_json()
        self._ids = {
            "memory_id": self._made("/v1/memories", {"content": "A decision", "kind": "decision"}),
            "goal_id": self._made("/v1/goals", {"title": "A goal"}),
            "source": "notes",
            "name": "segment",
        }

    def _made(self, path: str, body: dict[str, Any]) -> str:
        return str(self._client.post(path, json=body, headers=self._headers).get_json()["id"])

    def routes(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield every method and path that may take a body, and how its operation is described."""
        for path, methods in self.document["paths"].items():
            for method in TAKES_A_BODY:
                if method in methods:
                    yield method.upper(), path, methods[method]

    def bodies(self, path: str, operation: dict[str, Any], text: str, room: int) -> Iterator[tuple[str, Any]]:
        """Yield what is sent to a route, each with a name."""
        content = operation.get("requestBody", {}).get("content", {})
        if path == HOOK:
            yield from hook_events(text, room)
        elif content:
            schema = content["application/json"]["schema"]
            yield "", Filler(self.document["components"]["schemas"], text, room).fill(schema)
        else:
            yield "no body", {"nothing": text * (room // len(json.dumps(text)))}

    def send(self, method: str, path: str, name: str, text: str, body: Any) -> Finding:
        """Send one body and return what it cost."""
        address = re.sub(r"\{(\w+)\}", lambda found: self._ids.get(found[1], "a" * 200), path)
        raw = json.dumps(body, ensure_ascii=False).encode()[:MAX_BODY_BYTES]
        headers = {**self._headers, "Content-Type": "application/json"}
        began = time.process_time()
        answer = self._client.open(address, method=method, data=raw, headers=headers)
        # What is written beside the traffic is a cost of the request, too.
        self._settle()
        cpu_s = time.process_time() - began
        return Finding(f"{method} {path} {name}".strip(), text, len(raw), answer.status_code, cpu_s, time_parsing(raw))

    def measure(self, method: str, path: str, operation: dict[str, Any], tried: int) -> Iterator[Finding]:
        """Yield what the largest bodies of a route cost, of the texts that seemed worst when small."""
        room = MAX_BODY_BYTES - MARGIN
        small: dict[str, dict[str, float]] = {}
        for text, repeated in TEXTS.items():
            for name, body in self.bodies(path, operation, repeated, room // SMALL):
                small.setdefault(name, {})[text] = self.send(method, path, name, text, body).cpu_s
        for name, costs in small.items():
            for text in sorted(costs, key=costs.__getitem__, reverse=True)[:tried]:
                body = dict(self.bodies(path, operation, TEXTS[text], room))[name]
                yield self.send(method, path, name, text, body)


def time_parsing(raw: bytes) -> float:
    """Return the CPU seconds that plain parsing of a body takes."""
    began = time.process_time()
    for _ in range(PARSED):
        with suppress(ValueError):
            # A body may have been cut off at the largest size.
            json.loads(raw)
    return (time.process_time() - began) / PARSED


def main() -> None:
    """Print what each route's largest body costs, worst first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--route", default="", help="only routes whose path holds this")
    parser.add_argument("--tried", type=int, default=2, help="texts that each route is sent at the full size")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        container = open_web(fast_settings(Path(folder) / "home"))
        headers = {"Authorization": f"Bearer {container.token}", "Host": HOST}
        bench = Bench(create_app(container).test_client(), headers, container.feedback.flush)
        found = [
            finding
            for method, path, operation in bench.routes()
            if given.route in path
            for finding in bench.measure(method, path, operation, given.tried)
        ]
        container.close()
    show(found, Report())


def show(found: list[Finding], report: Report) -> None:
    """Print the worst of each route, against plain parsing of the same body."""
    worst: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda one: one.cpu_s):
        worst[finding.route] = finding
    report.section("CPU of the largest body of each route")
    for finding in sorted(worst.values(), key=lambda one: one.cpu_s, reverse=True):
        figure = f"{finding.cpu_s:6.2f} s  {finding.size:10,} bytes  {finding.status}  {finding.text}"
        against = (Limit("plain parsing, s", finding.parse_s), finding.cpu_s) if finding.parse_s else None
        report.row(finding.route, figure, (AIM, finding.cpu_s), against=against)


if __name__ == "__main__":
    main()
