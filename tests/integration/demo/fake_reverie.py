"""A Reverie for the demonstration: a server started as its stack, and a terminal that answers as expected.

The queue empties by one look at a time, as if workers were busy. With FAKE_WRONG in the environment, no command finds
anything.
"""

import hashlib
import json
import os
import re
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from demo.runner import import_step
from demo.sample import FAKE_SECRET, load_sample
from demo.story import SESSION, list_sections

TOKEN = "t0ken"
WORKSPACE = "larder-api-12345678"
MEMORIES: dict[str, str] = {}
LOOKS = [2]


class FakeTerminal:
    """Answers each step of the story with what it expects."""

    def __init__(self, environment, folder):
        self.folder = folder
        self.finds = "FAKE_WRONG" not in environment
        sections = list_sections(load_sample(datetime.now(UTC)).monday)
        self.steps = {step.command: step for section in sections for step in section.steps}

    def run(self, command):
        if command == "reverie workspace current":
            return f"{WORKSPACE}\n"
        if command.startswith("reverie import sessions"):
            return " ".join(import_step(load_sample(datetime.now(UTC))).expect)
        if command.startswith("reverie lessons outcome"):
            return ""
        text = " ".join(self.steps[command.removesuffix(" --json")].expect) if self.finds else "the kettle"
        return json.dumps({"results": [{"content": text}]}) if command.endswith(" --json") else text

    def send_event(self, _command, event, session_id):
        if session_id != SESSION:
            return "- a lesson (surface 01ABC)"
        steps = [step for section in list_sections(datetime.now(UTC)) for step in section.steps if step.event == event]
        return " ".join(steps[0].expect)


def write(item):
    content = item["content"].replace(FAKE_SECRET, "[redacted]")
    memory_id = hashlib.sha256(content.encode()).hexdigest()[:26]
    known = memory_id in MEMORIES
    MEMORIES[memory_id] = content
    return {"id": memory_id, "outcome": "merged" if known else "created"}


def queue():
    LOOKS[0] = max(LOOKS[0] - 1, 0)
    dead = int(os.environ.get("FAKE_DEAD", "0"))
    return {"pending": {"embed": LOOKS[0], "entities": 0}, "dead": {"embed": dead}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/healthz":
            return self.answer(200, {"ok": True})
        if not self.allowed():
            return self.answer(401, {"title": "Unauthorized"})
        if self.path == "/v1/queue":
            return self.answer(200, queue())
        if found := re.fullmatch(r"/v1/memories/(\w+)", self.path):
            return self.answer(200, {"content": MEMORIES[found[1]]})
        return self.answer(404, {"title": "Not Found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return self.answer(401, {"title": "Unauthorized"})
        if self.path == "/v1/memories/batch":
            return self.answer(200, {"results": [write(item) for item in body["items"]]})
        if self.path == "/v1/recall":
            return self.answer(200, {"results": [], "channels": {"dense": {"state": "ok"}}})
        return self.answer(404, {"title": "Not Found"})

    def allowed(self):
        allowed = self.headers["Authorization"] == f"Bearer {TOKEN}"
        return allowed and self.headers["X-Reverie-Workspace"] == WORKSPACE

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        return


def main():
    if os.environ.get("FAKE_CRASH"):
        sys.exit("the database is on fire")
    (Path(os.environ["REVERIE_HOME"]) / "token").write_text(TOKEN + "\n")
    ThreadingHTTPServer((os.environ["REVERIE_HOST"], int(os.environ["REVERIE_PORT"])), Handler).serve_forever()


if __name__ == "__main__":
    main()
