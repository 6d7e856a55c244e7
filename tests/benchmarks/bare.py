"""The least that a write can cost here: a Flask POST through the same server, and one commit that syncs.

`python -m tests.benchmarks.bare FOLDER PORT` serves it; the benchmarks measure it beside a write.
"""

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask import Flask, request

from demo.stack import HOST, choose_port
from tests.benchmarks.wire import Answer, Wire, post
from tests.support.stack import wait_until
from web.connections import listen

THREADS, FILES, MAX_BODY_BYTES = 4, 256, 1 << 20
ROOT = Path(__file__).resolve().parents[2]


def serve(folder: Path, port: int) -> None:
    """Answer POST /v1/memories with a commit of the body's text until killed."""
    app, local = Flask("bare", static_folder=None), threading.local()

    def connection() -> sqlite3.Connection:
        if not hasattr(local, "db"):
            local.db = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
            local.db.executescript(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE IF NOT EXISTS memory (content TEXT)"
            )
        db: sqlite3.Connection = local.db
        return db

    @app.post("/v1/memories")
    def write() -> dict[str, str]:
        connection().execute("INSERT INTO memory VALUES (?)", (json.loads(request.get_data())["content"],))
        return {"outcome": "created"}

    listen(app, HOST, port, threads=THREADS, files=FILES, max_body_bytes=MAX_BODY_BYTES).run()


def time_bare_writes(folder: Path, bodies: Sequence[dict[str, Any]]) -> list[float]:
    """Return the milliseconds of each bare write over one connection."""
    port = choose_port(None)
    with subprocess.Popen([sys.executable, "-m", __name__, str(folder), str(port)], cwd=ROOT) as server:
        try:
            wait_until("the bare server answers", lambda: _answers(port))
            with Wire(port) as wire:
                answers: list[Answer] = wire.ask_all([post("/v1/memories", body, "none") for body in bodies])
        finally:
            server.terminate()
    return [answer.took_ms for answer in answers]


def _answers(port: int) -> bool:
    try:
        with Wire(port):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
