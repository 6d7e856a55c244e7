"""A server that speaks the HTTP contract as far as the demonstration uses it, started as its stack.

It answers a recall with the memory that the sample's questions expect, or, with FAKE_WRONG set, with
another one. The queue empties by one look at a time, as if workers were busy.
"""

import hashlib
import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from demo.sample import FAKE_SECRET, load_sample

SAMPLE = load_sample()
TOKEN = "t0ken"
MEMORIES: dict[str, str] = {}
FACTS: dict[tuple[str, str], list[tuple[str, object]]] = {}
LOOKS = [2]


def write(item):
    content = item["content"].replace(FAKE_SECRET, "[redacted]")
    memory_id = hashlib.sha256(content.encode()).hexdigest()[:26]
    known = memory_id in MEMORIES
    if item["kind"] == "keyed_fact":
        details = item["details"]
        FACTS.setdefault((details["subject"], details["attribute"]), []).append((item["occurred_at"], details["value"]))
    MEMORIES[memory_id] = content
    return {"id": memory_id, "outcome": "merged" if known else "created"}


def recall(query):
    expected = next((q.expect for q in SAMPLE.recalls if q.ask == query), "")
    if os.environ.get("FAKE_WRONG"):
        expected = "kettle"
    content = next(c for c in MEMORIES.values() if expected in c)
    signals = {"channels": {"lexical": {"rank": 1, "score": 7.25, "contribution": 0.5}}}
    result = {
        "id": "x",
        "content": content,
        "kind": "fact",
        "score": 0.9,
        "occurred_at": "2026-03-30T07:30:00Z",
        "signals": signals,
    }
    channels = {"lexical": {"state": "ok", "took_ms": 1}, "dense": {"state": "ok", "took_ms": 2}}
    return {"results": [result], "took_ms": 3.2, "channels": channels, "degraded": False}


def fact(path):
    url = urlsplit(path)
    key = tuple(map(unquote, url.path.split("/")[3:]))
    moment = dict(parse_qsl(url.query)).get("as_of", "9")
    values = [one for one in FACTS[key] if one[0] <= moment]
    return {"value": values[-1][1], "valid_from": values[-1][0], "valid_to": None}


def hook(prompt):
    if prompt != SAMPLE.hook.ask:
        return None
    context = next(c for c in MEMORIES.values() if SAMPLE.hook.expect in c)
    return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": context}}


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
        if self.path.startswith("/v1/facts/"):
            return self.answer(200, fact(self.path))
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
            return self.answer(200, recall(body["query"]))
        if self.path == "/hooks/claude-code":
            return self.answer(200, hook(body["prompt"]))
        return self.answer(404, {"title": "Not Found"})

    def allowed(self):
        return self.headers["Authorization"] == f"Bearer {TOKEN}" and self.headers["X-Reverie-Workspace"] == "demo"

    def answer(self, status, body):
        data = b"" if body is None else json.dumps(body).encode()
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
