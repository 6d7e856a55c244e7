"""Bare limits: a Flask POST through the same server with one commit that syncs, commits alone, the encoder alone.

`python -m benchmarks.bare FOLDER PORT` serves the POST; the benchmarks measure all of them in the same run.
"""

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from flask import Flask, request

from benchmarks.wire import Answer, Wire, post
from config.settings import load_settings
from demo.stack import HOST, choose_port
from pipeline.index.encoder import Encoder
from pipeline.index.encoders import load_encoder, usual_model
from tests.support.stack import wait_until
from web.http.connections import listen

THREADS, FILES, MAX_BODY_BYTES = 4, 256, 1 << 20
FULL_SYNC = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE IF NOT EXISTS memory (content TEXT)"
ROOT = Path(__file__).resolve().parents[1]


def serve(folder: Path, port: int) -> None:
    """Answer POST /v1/memories with a commit of the body's text until killed."""
    app, local = Flask("bare", static_folder=None), threading.local()

    def connection() -> sqlite3.Connection:
        if not hasattr(local, "db"):
            local.db = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
            local.db.executescript(FULL_SYNC)
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


def time_bare_commits(folder: Path, texts: Sequence[str], size: int = 1) -> list[float]:
    """Return the milliseconds of each commit of so many texts, synced, in this process."""
    db, took = sqlite3.connect(folder / "commits.sqlite", isolation_level=None), []
    db.executescript(FULL_SYNC)
    for start in range(0, len(texts), size):
        began = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO memory VALUES (?)", [(text,) for text in texts[start : start + size]])
        db.execute("COMMIT")
        took.append((time.perf_counter() - began) * 1000)
    db.close()
    return took


def load_bare_encoder(home: Path) -> Encoder:
    """Load the encoder of a data directory as the web server does."""
    settings = load_settings({"REVERIE_HOME": str(home)})
    return load_encoder(settings, usual_model(settings))


def time_bare_encodings(encoder: Encoder, questions: Sequence[str]) -> list[float]:
    """Return the milliseconds of each encoding of a question."""
    took = []
    for question in questions:
        began = time.perf_counter()
        encoder.encode_query(question)
        took.append((time.perf_counter() - began) * 1000)
    return took


def measure_encodings_per_second(encoder: Encoder, questions: Sequence[str], threads: int) -> float:
    """Return how many questions a second several threads encode together."""
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        list(pool.map(encoder.encode_query, questions))
        return len(questions) / (time.perf_counter() - began)


def _answers(port: int) -> bool:
    try:
        with Wire(port):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
