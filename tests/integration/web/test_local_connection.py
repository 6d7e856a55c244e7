"""The Unix socket of a data directory: who may have it, what becomes of it, and when TCP takes its place."""

import os
import socket
import stat
import time

import pytest
from waitress.server import MultiSocketServer

from web.hooks.client import take_lock
from web.http import local_connection
from web.http.connections import listen
from web.http.local_connection import LONGEST_PATH, SOCKET, WEB_LOCK, bind_socket, connect, find_socket, is_locked


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    return home


def connect_now(home):
    return connect(str(home), time.monotonic() + 5)


def serve(home):
    local = bind_socket(str(home))
    return listen(lambda _environ, _start: [], "127.0.0.1", 0, threads=1, files=1024, max_body_bytes=1, local=local)


def test_a_server_has_a_private_socket_until_it_closes(home):
    server = serve(home)
    assert isinstance(server, MultiSocketServer)
    assert stat.S_IMODE((home / SOCKET).stat().st_mode) == 0o600
    connection = connect_now(home)
    assert connection.family == socket.AF_UNIX
    connection.close()
    server.close()
    assert list(home.iterdir()) == []


def test_the_socket_of_a_killed_server_is_refused_and_replaced(home):
    bind_socket(str(home)).close()
    with pytest.raises(ConnectionRefusedError):
        connect_now(home)
    server = serve(home)
    connect_now(home).close()
    server.close()


def test_a_server_that_starts_is_refused_before_it_listens(home):
    lock = take_lock(str(home), WEB_LOCK)
    local = bind_socket(str(home))
    with pytest.raises(ConnectionRefusedError):
        connect_now(home)
    local.close()
    os.close(lock)


@pytest.mark.parametrize("exists", [True, False])
def test_without_a_server_nothing_is_created(home, exists):
    if not exists:
        home.rmdir()
    with pytest.raises(ConnectionRefusedError):
        connect_now(home)
    assert not exists or list(home.iterdir()) == []


def test_a_server_that_runs_without_a_socket_is_asked_over_tcp(home):
    lock = take_lock(str(home), WEB_LOCK)
    assert connect_now(home) is None
    os.close(lock)
    assert not is_locked(str(home), WEB_LOCK)
    with pytest.raises(ConnectionRefusedError):
        connect_now(home)


def test_a_folder_that_can_have_no_socket_leaves_the_server_to_tcp(home, caplog):
    assert bind_socket(str(home / "missing")) is None
    assert "clients connect over TCP" in caplog.text


def test_a_path_has_at_most_the_bytes_of_every_system(tmp_path):
    room = LONGEST_PATH - len(os.fsencode(tmp_path)) - len(f"//{SOCKET}")
    assert find_socket(str(tmp_path / ("a" * room)))
    too_long = tmp_path / ("é" * (room // 2 + 1))
    too_long.mkdir(mode=0o700)
    assert find_socket(str(too_long)) is None
    assert connect_now(too_long) is None


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_directory_that_others_may_write_has_no_socket(home, mode):
    home.chmod(mode)
    assert find_socket(str(home)) is None
    assert bind_socket(str(home)) is None


def test_a_directory_of_another_user_has_no_socket(home, monkeypatch):
    status = home.stat()
    monkeypatch.setattr(local_connection.os, "getuid", lambda: status.st_uid + 1)
    monkeypatch.setattr(
        local_connection.os, "stat", lambda _path: os.stat_result([status.st_mode, 0, 0, 0, 4321, *[0] * 5])
    )
    assert find_socket(str(home)) is None


def test_a_system_without_unix_sockets_uses_tcp(home, monkeypatch):
    monkeypatch.delattr(local_connection._socket, "AF_UNIX")
    assert connect_now(home) is None


@pytest.fixture(params=["socket", "chmod"])
def broken(request, monkeypatch):
    """Let the system refuse to create a socket, or to change its mode."""

    def refuse(*_):
        raise PermissionError("not here")

    module = socket if request.param == "socket" else local_connection.os
    monkeypatch.setattr(module, request.param, refuse)


@pytest.mark.usefixtures("broken")
def test_a_server_that_cannot_have_a_socket_leaves_no_file(home, caplog):
    (home / SOCKET).touch()
    assert bind_socket(str(home)) is None
    assert "clients connect over TCP" in caplog.text
    assert list(home.iterdir()) == []


def test_a_client_that_may_not_use_the_socket_asks_over_tcp(home, monkeypatch):
    def refuse(*_):
        raise PermissionError("a sandbox")

    bind_socket(str(home)).close()
    monkeypatch.setattr(local_connection._socket, "socket", refuse)
    with pytest.raises(ConnectionRefusedError):
        connect_now(home)
    lock = take_lock(str(home), WEB_LOCK)
    assert connect_now(home) is None
    monkeypatch.setattr(local_connection, "is_locked", refuse)
    assert connect_now(home) is None
    os.close(lock)


def test_a_client_that_finds_too_many_waiting_asks_over_tcp(home):
    lock, local = take_lock(str(home), WEB_LOCK), bind_socket(str(home))
    local.listen(0)
    waiting = connect_now(home)
    assert connect_now(home) is None
    for end in (waiting, local):
        end.close()
    os.close(lock)
