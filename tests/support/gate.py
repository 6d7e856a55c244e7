"""A gate between a client and a server: open, closed to everybody, or standing still without a word."""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator

HOST = "127.0.0.1"
LOOK_S = 0.05


class Gate:
    """Pass connections on to a server's port for as long as it is open, each piece `delay_s` late."""

    def __init__(self, port: int) -> None:
        self._server = HOST, port
        self._listener = socket.create_server((HOST, 0))
        self._listener.settimeout(LOOK_S)
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._state = "open"
        self.delay_s = 0.0
        self._passed = 0
        self._most: int | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def open(self) -> None:
        """Let everything pass."""
        self._change("open")

    def close(self) -> None:
        """Break off every connection and refuse new ones."""
        self._change("closed")

    def stall(self) -> None:
        """Take connections and say nothing on them."""
        self._change("stalled")

    def close_after(self, count: int) -> None:
        """Let so many bytes pass to the server, then close."""
        with self._lock:
            self._most = self._passed + count

    def end(self) -> None:
        """Stop for good."""
        self._ended.set()
        self._thread.join()
        self._change("closed")
        self._listener.close()

    def _change(self, state: str) -> None:
        with self._lock:
            self._state, self._most = state, None
            broken, self._connections = self._connections, set()
        for one in broken:
            # Its thread may have closed it already.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            with self._lock:
                state = self._state
                self._connections.add(client)
            if state == "closed":
                client.close()
            elif state == "open":
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with (
            client,
            # A client that the gate closed meanwhile has no descriptor: selectors raise ValueError for it.
            contextlib.suppress(OSError, ValueError),
            socket.create_connection(self._server) as server,
            selectors.DefaultSelector() as waiting,
        ):
            waiting.register(client, selectors.EVENT_READ, server)
            waiting.register(server, selectors.EVENT_READ, client)
            while True:
                for ready, _ in waiting.select():
                    content = ready.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not content or not self._may_pass(client, content, to_server=ready.fileobj is client):
                        return
                    time.sleep(self.delay_s)
                    ready.data.sendall(content)

    def _may_pass(self, client: socket.socket, content: bytes, *, to_server: bool) -> bool:
        with self._lock:
            self._passed += len(content) if to_server else 0
            is_over = self._most is not None and self._passed > self._most
            allowed = client in self._connections
        if is_over:
            self.close()
        return allowed and not is_over


@contextlib.contextmanager
def gate_before(port: int) -> Iterator[Gate]:
    """Keep a gate before a server's port during a block."""
    gate = Gate(port)
    try:
        yield gate
    finally:
        gate.end()
