"""A front over real connections: the server that the product runs, in a thread of the test."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from flask import Flask
from waitress.server import MultiSocketServer

from web.http.connections import Server, listen
from web.http.local_connection import bind_socket

HOST = "127.0.0.1"
DEADLINE_S = 30.0


@contextlib.contextmanager
def listening(app: Flask, *, files: int = 1024, max_body_bytes: int = 1 << 20) -> Iterator[Callable[[], socket.socket]]:
    """Serve an application during a block; yields what connects to it."""
    with (
        serving(app, threads=2, files=files, max_body_bytes=max_body_bytes) as port,
        contextlib.ExitStack() as running,
    ):
        yield lambda: running.enter_context(socket.create_connection((HOST, port), timeout=DEADLINE_S))


@contextlib.contextmanager
def serving(app: Flask, *, threads: int, files: int, max_body_bytes: int, home: Path | None = None) -> Iterator[int]:
    """Serve an application during a block, also at the socket of a data directory; yields the port."""
    local = None if home is None else bind_socket(str(home))
    served = listen(app, HOST, 0, threads=threads, files=files, max_body_bytes=max_body_bytes, local=local)
    servers = list(served.map.values()) if isinstance(served, MultiSocketServer) else [served]
    server = next(server for server in servers if isinstance(server, Server))
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            server.asyncore.loop(timeout=0.05, map=server._map, use_poll=True, count=1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield int(server.effective_port)
    finally:
        ended.set()
        # Let the loop notice it at once.
        server.pull_trigger()
        thread.join(DEADLINE_S)
        server.task_dispatcher.shutdown(timeout=1)
        server.asyncore.close_all(server._map)
