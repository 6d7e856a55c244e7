"""Who keeps a connection for how long; over sockets, with times that a test can wait for."""

import contextlib
import threading

import pytest
from flask import Flask, Response, request

from tests.support.sockets import DEADLINE_S, HOST, listening
from web.http import connections
from web.http.connections import vouch_for

# More than two kernels keep of what nobody reads.
LARGE = b"x" * (32 << 20)


@pytest.fixture
def serve(monkeypatch):
    """Serve a small application with the waits given; return how to connect."""
    with contextlib.ExitStack() as running:

        def start(files=1024, **waits):
            for name, seconds in waits.items():
                monkeypatch.setattr(connections, name, seconds)
            return running.enter_context(listening(app(), files=files))

        yield start


def app():
    app = Flask("small")

    @app.before_request
    def guard():
        if request.headers.get("Authorization") == "yes":
            vouch_for(request.environ)

    app.add_url_rule("/", "home", lambda: "fine")
    app.add_url_rule("/large", "large", lambda: Response(LARGE))
    return app


def ask(connection, path="/", *headers):
    connection.sendall("\r\n".join([f"GET {path} HTTP/1.1", f"Host: {HOST}", *headers, "", ""]).encode())
    read = b""
    while not read.endswith(b"fine"):
        part = connection.recv(1000)
        assert part, "sent away"
        read += part
    return read


def is_open(connection):
    """Tell whether the other side holds the connection, once it did what it does."""
    connection.settimeout(0.5)
    try:
        return connection.recv(1000) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.settimeout(DEADLINE_S)


def ends(connection):
    """Read until the other side ends the connection; fail when it does not."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


KNOWN = "Authorization: yes"


def test_unauthenticated_idle_connection_is_closed_sooner(serve):
    connect = serve(STRANGER_S=0.2)
    silent, asked, known = connect(), connect(), connect()
    ask(asked)
    ask(known, "/", KNOWN)
    assert ends(silent)
    assert ends(asked)
    ask(known)


def test_idle_and_slow_connections_are_closed(serve):
    connect = serve(IDLE_S=0.2, REQUEST_S=0.2)
    resting, sending = connect(), connect()
    for connection in (resting, sending):
        ask(connection, "/", KNOWN)
    sending.sendall(b"POST / HTTP/1.1\r\n")
    assert ends(resting)
    assert ends(sending)


def test_a_request_has_its_own_time(serve):
    connect = serve(IDLE_S=1000, REQUEST_S=0.2)
    connection = connect()
    ask(connection, "/", KNOWN)
    assert is_open(connection)
    ask(connection)


def test_unread_answer_is_abandoned(serve):
    connect = serve(STUCK_S=0.2)
    for headers in ((), (KNOWN,)):
        connection = connect()
        connection.sendall("\r\n".join(["GET /large HTTP/1.1", f"Host: {HOST}", *headers, "", ""]).encode())
        threading.Event().wait(2)
        read = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                read += len(part)
        assert read < len(LARGE)


def test_a_large_answer_is_read_to_its_end(serve):
    connection = serve()()
    connection.sendall(f"GET /large HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
    read = b""
    while part := connection.recv(1 << 20):
        read += part
    assert read.endswith(LARGE)


def test_oldest_unauthenticated_connections_are_closed_first(serve):
    connect = serve()
    known = [connect() for _ in range(20)]
    for connection in known:
        ask(connection, "/", KNOWN)
    many = [connect() for _ in range(connections.MOST_STRANGERS * 3)]
    # The last one came after all others were looked at.
    ask(many[-1])
    assert [is_open(connection) for connection in many[: connections.MOST_STRANGERS]].count(True) == 0
    for connection in known:
        ask(connection)


def test_longest_idle_authenticated_connection_is_closed_first(serve):
    connect = serve(files=128)
    many = []
    for _ in range(40):
        many.append(connect())
        ask(many[-1], "/", KNOWN)
    assert not is_open(many[0])
    ask(many[-1])


def test_a_stranger_asks_one_thing_at_a_time(serve):
    connect = serve(STRANGER_S=1000)
    many = connect()
    many.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode() * 100)
    assert ends(many)
    known = connect()
    ask(known, "/", KNOWN)
    known.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode() * 10)
    read = b""
    while read.count(b"200 OK") < 10:
        read += known.recv(1 << 16)
