#!/usr/bin/env bash
# Claude Code 2.1.332 (npm, @anthropic-ai/claude-code): the first `tools/list` waits for the answer to
# `subscriptions/listen`.
#
# Expected: a stream of changes and the list itself are independent requests. A server of protocol version 2026-07-28
#   that declares `tools.listChanged` and acknowledges the stream slowly still gets its tools listed at once.
# Observed: Claude Code sends `subscriptions/listen` first, and no `tools/list` before the acknowledgement. With
#   `alwaysLoad`, the first prompt waits about 5 seconds for the server; then the model is asked without its tools.
#   A server that refuses the stream with "Method not found", or that does not declare `listChanged`, is asked for its
#   tools at once. A server should therefore acknowledge the stream before it does anything slow.
#
# Output (requests to the server up to the first `tools/list` | its tools in the first request to the model):
#   acknowledges after 60 s   server/discover subscriptions/listen | (none)
#   refuses the stream        server/discover subscriptions/listen tools/list | mcp__probe__measure
#   declares no listChanged   server/discover tools/list | mcp__probe__measure
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

npm install --silent --no-audit --no-fund --prefix "$work" @anthropic-ai/claude-code@2.1.332

# The MCP server. Arguments: its behavior, and the file for the methods of the requests that it receives.
cat >"$work/server.py" <<'PYTHON'
import json
import sys
import threading

behavior, log = sys.argv[1:]
declared = {} if behavior == "undeclared" else {"listChanged": True}
tool = {"name": "measure", "description": "Measure.", "inputSchema": {"type": "object", "properties": {}}}
cacheable = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
results = {
    "server/discover": cacheable
    | {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": declared},
        "serverInfo": {"name": "probe", "version": "1"},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "probe", "version": "1"}},
    },
    "tools/list": cacheable | {"tools": [tool]},
}


def send(message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def acknowledge(request):
    meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
    params = {"_meta": meta, "notifications": request["params"]["notifications"]}
    send({"method": "notifications/subscriptions/acknowledged", "params": params})


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method = request["method"]
    with open(log, "a") as file:
        print(method, file=file)
    if method in results:
        send({"id": request["id"], "result": results[method]})
    elif method == "subscriptions/listen" and behavior == "slow":
        timer = threading.Timer(60, acknowledge, [request])
        timer.daemon = True
        timer.start()
    else:
        send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
PYTHON

# A stand-in for the model, and one prompt for each behavior of the server. Argument: the folder.
cat >"$work/check.py" <<'PYTHON'
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

work = Path(sys.argv[1])
prompts = []
EVENTS = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "stand-in",
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


class Model(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        # Requests without tools ask for a title or count tokens.
        if body.get("tools"):
            prompts.append([tool["name"] for tool in body["tools"] if tool["name"].startswith("mcp__")])
        answer = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
threading.Thread(target=model.serve_forever, daemon=True).start()


def ask(behavior):
    """Ask Claude Code one thing; return the requests to the server and its tools in the first request to the model."""
    home, log = work / behavior, work / f"{behavior}.log"
    (home / "project").mkdir(parents=True)
    server = {"command": sys.executable, "args": [str(work / "server.py"), behavior, str(log)], "alwaysLoad": True}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"probe": server}}))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ANTHROPIC_API_KEY": "made-up",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    prompts.clear()
    claude = [str(work / "node_modules/.bin/claude"), "-p", "hello"]
    subprocess.run(claude, env=environment, cwd=home / "project", check=True, stdout=subprocess.DEVNULL, timeout=120)
    requests = log.read_text().split()
    # After a refusal, Claude Code requests the stream again later.
    listed = requests.index("tools/list") + 1 if "tools/list" in requests else len(requests)
    return requests[:listed], prompts[0]


LISTED = ["mcp__probe__measure"]
EXPECTED = {
    "slow": ("acknowledges after 60 s", ["server/discover", "subscriptions/listen"], []),
    "refusing": ("refuses the stream", ["server/discover", "subscriptions/listen", "tools/list"], LISTED),
    "undeclared": ("declares no listChanged", ["server/discover", "tools/list"], LISTED),
}
changed = False
for behavior, (label, *expected) in EXPECTED.items():
    requests, tools = ask(behavior)
    print(f"{label:<25} {' '.join(requests)} | {' '.join(tools) or '(none)'}", flush=True)
    changed = changed or [requests, tools] != expected
raise SystemExit("changed: Claude Code behaves differently" if changed else 0)
PYTHON

unshare --map-root-user --net bash -c 'ip link set lo up && exec python3 "$1/check.py" "$1"' _ "$work"
