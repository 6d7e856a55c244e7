"""A body that is too large gets its answer, however it is sent, and a stranger cannot make the server read it."""

import contextlib
import http.client
import json
import re
import socket
import urllib.error
import urllib.request

import pytest
import urllib3

from tests.support.sockets import HOST, listening
from web.http.app import create_app

# Field report: a body of 40 MB ended with a reset connection instead of 413.
LARGE = 40 * 1024 * 1024
PIECE = b"a" * (1 << 16)
HEAD = b"POST /v1/memories HTTP/1.1\r\nHost: 127.0.0.1\r\n"
NEXT = b"GET /v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def connect(container):
    with listening(create_app(container)) as opened:
        yield opened


@pytest.fixture
def port(connect):
    return connect().getpeername()[1]


@pytest.fixture
def authorization(container):
    return {"Authorization": f"Bearer {container.token}"}


def read_all(connection):
    read = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(1 << 16):
            read += part
    return read


def list_statuses(read):
    return [int(status) for status in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", read, re.MULTILINE)]


def check_problem(status, content_type, text):
    assert (status, content_type) == (413, "application/problem+json")
    problem = json.loads(text)
    assert problem["status"] == 413
    assert "too large" in problem["detail"]


def pieces(count):
    return (PIECE for _ in range(count))


def test_http_client_reads_the_answer(port, authorization):
    for body in (b"a" * LARGE, b'{"content": "' + NEXT * (LARGE // len(NEXT))):
        connection = http.client.HTTPConnection(HOST, port, timeout=30)
        connection.request("POST", "/v1/memories", body, authorization)
        answer = connection.getresponse()
        check_problem(answer.status, answer.headers["Content-Type"], answer.read())
        assert answer.headers["Connection"] == "close"
        connection.close()


def test_http_client_reads_the_answer_to_chunks(port, authorization):
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request("POST", "/v1/memories", pieces(LARGE // len(PIECE)), authorization, encode_chunked=True)
    answer = connection.getresponse()
    check_problem(answer.status, answer.headers["Content-Type"], answer.read())
    connection.close()


def test_urllib_reads_the_answer(port, authorization):
    request = urllib.request.Request(f"http://{HOST}:{port}/v1/memories", b"a" * LARGE, authorization)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    check_problem(refused.value.code, refused.value.headers["Content-Type"], refused.value.read())


def test_a_pool_reads_the_answer_and_goes_on(port, authorization):
    with urllib3.HTTPConnectionPool(HOST, port, maxsize=1, timeout=30, headers=authorization) as pool:
        for _ in range(2):
            answer = pool.request("POST", "/v1/memories", body=b"a" * LARGE, retries=False)
            check_problem(answer.status, answer.headers["Content-Type"], answer.data)
            assert pool.request("GET", "/v1/workspaces", retries=False).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
@pytest.mark.parametrize("path", ["/v1/memories/x?hard=true", "/nowhere", "/v1/recall"])
def test_no_route_acts_on_a_request_whose_body_is_too_large(port, authorization, method, path):
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request(method, path, b"a" * (2 << 20), authorization)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_client_that_waits_for_permission_gets_the_answer_instead(connect, authorization):
    connection = connect()
    token = authorization["Authorization"].encode()
    connection.sendall(
        HEAD + b"Authorization: " + token + b"\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n" % LARGE
    )
    assert list_statuses(read_all(connection)) == [413]


def test_the_answer_comes_before_the_rest_of_the_body(connect, authorization):
    connection = connect()
    token = authorization["Authorization"].encode()
    connection.sendall(HEAD + b"Authorization: " + token + b"\r\nContent-Length: %d\r\n\r\n" % LARGE + NEXT)
    # Only a slow client has not sent everything by now; what it sends later is not another request.
    read = connection.recv(1 << 16)
    connection.sendall(NEXT * 3)
    connection.shutdown(socket.SHUT_WR)
    assert list_statuses(read + read_all(connection)) == [413]


@pytest.mark.parametrize("header", [b"Content-Length: %d\r\n" % LARGE, b"Transfer-Encoding: chunked\r\n"], ids=repr)
@pytest.mark.parametrize("token", [b"", b"Authorization: Bearer wrong\r\n"])
def test_a_stranger_cannot_make_the_server_read_it(connect, header, token):
    connection = connect()
    # The system's own buffers would take much of it.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
    connection.sendall(HEAD + token + header + b"\r\n")
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < LARGE:
            connection.sendall(b"10000\r\n" + PIECE + b"\r\n")
            sent += len(PIECE)
    assert sent < LARGE / 2


def test_a_stranger_hears_about_the_token(connect):
    connection = connect()
    connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % LARGE)
    connection.shutdown(socket.SHUT_WR)
    assert list_statuses(read_all(connection)) == [401]


def test_other_clients_are_answered_while_a_body_is_discarded(connect, port, authorization):
    slow = connect()
    token = authorization["Authorization"].encode()
    slow.sendall(HEAD + b"Authorization: " + token + b"\r\nContent-Length: %d\r\n\r\n" % LARGE)
    assert list_statuses(slow.recv(1 << 16)) == [413]
    slow.sendall(PIECE)
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    connection.request("GET", "/v1/workspaces", headers=authorization)
    assert connection.getresponse().status == 200
    connection.close()
