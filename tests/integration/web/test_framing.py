"""What stands in a request line or a header, as bytes: nothing passes for another request, path or caller."""

import contextlib
import re

import pytest

from tests.support.sockets import listening
from web.http.app import create_app
from web.http.connections import MAX_HEADER_BYTES

CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = b'{"query": "x"}'
CHUNK = b"e\r\n" + BODY + b"\r\n0\r\n\r\n"
SMUGGLED = b"GET /v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def container(module_container):
    return module_container


@pytest.fixture(scope="module")
def connect(container):
    with listening(create_app(container)) as connect:
        yield connect


@pytest.fixture
def send(container, connect):
    """Send bytes over a connection; return every answer's status and text, once the connection ends.

    One that is `authorized` was let in with a request before, and may send several one behind the other.
    """
    token = container.token.encode()

    def answers(request, *, authorized=True):
        held = b"Authorization: Bearer " + token + b"\r\n" if authorized else b""
        with contextlib.closing(connect()) as connection:
            read = b""
            if authorized:
                connection.sendall(b"GET /v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\n" + held + b"\r\n")
                while not read.endswith(b"}"):
                    read += connection.recv(1 << 16)
            read = b""
            # Whoever is sent away while it sends was answered, or not.
            with contextlib.suppress(ConnectionError):
                connection.sendall(request.replace(b"<token>", held))
                while part := connection.recv(1 << 16):
                    read += part
        return [int(status) for status in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", read, re.MULTILINE)], read

    return answers


def post(*headers, body=BODY):
    head = b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\n<token>Connection: close\r\n"
    return head + b"".join(headers) + b"\r\n" + body


def test_a_request_with_one_length_is_answered(send):
    length = b"Content-Length: %d\r\n" % len(BODY)
    assert send(post(length))[0] in ([200], [404])
    assert send(post(CHUNKED, body=CHUNK))[0] in ([200], [404])


@pytest.mark.parametrize(
    "headers",
    [
        (b"Content-Length: 14\r\n", CHUNKED),
        (CHUNKED, b"Content-Length: 14\r\n"),
        (b"Content-Length: 14\r\n", b"Content-Length: 14\r\n"),
        (b"Content-Length: 14\r\n", b"Content-Length: 0\r\n"),
        (b"Content-Length: 14, 14\r\n",),
        (b"Content-Length: +14\r\n",),
        (b"Content-Length: -1\r\n",),
        (b"Content-Length: 0x0e\r\n",),
        (b"Content-Length: 1_4\r\n",),
        (b"Content-Length : 14\r\n",),
        (b"Content-Length: 14\r\n", b"X: a\r\n b\r\n"),
        (b"Content-Length: 14\n", b"X: a\r\n"),
        (b"Content-Length: 14\r\n", b"X: a\rY: b\r\n"),
        (b"Content-Length: 14\r\n", b"X: a\0b\r\n"),
        (b"Content-Length: 14\r\n", b": a\r\n"),
        (b"Transfer-Encoding: identity\r\n",),
        (b"Transfer-Encoding: chunked, gzip\r\n",),
        (b"Transfer-Encoding: xchunked\r\n",),
        (b"Transfer-Encoding:\x0bchunked\r\n",),
        (CHUNKED, CHUNKED),
        (b"Transfer-Encoding: chunked, chunked\r\n",),
        (b"transfer-encoding:chunked\r\n", b"TRANSFER-ENCODING:\tchunked\r\n"),
    ],
    ids=repr,
)
def test_ambiguous_requests_are_refused(send, headers):
    for body in (BODY + SMUGGLED, CHUNK + SMUGGLED, b"0\r\n\r\n" + SMUGGLED):
        statuses, read = send(post(*headers, body=body))
        assert statuses in ([400], [501]), read


@pytest.mark.parametrize("digits", [30, 5000])
def test_a_length_without_end_is_refused(send, digits):
    statuses, _ = send(post(b"Content-Length: " + b"9" * digits + b"\r\n"))
    assert statuses in ([], [413])
    assert send(post(b"Content-Length: %d\r\n" % len(BODY)))[0] in ([200], [404])


@pytest.mark.parametrize(
    "chunk",
    [b"-1\r\n", b"0x2\r\n{}\r\n", b"2;a\n{}\r\n0\r\n\r\n", b"+2\r\n{}", b"2\r\n{}xx\r\n"],
)
def test_a_broken_chunk_is_refused(send, chunk):
    statuses, read = send(post(CHUNKED, body=chunk + b"\r\n0\r\n\r\n" + SMUGGLED))
    assert len(statuses) <= 1, read
    assert all(status in (400, 413, 422) for status in statuses), read


def test_headers_without_end_are_refused(send):
    head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for much in (
        b"X: " + b"a" * MAX_HEADER_BYTES + b"\r\n",
        b"".join(b"X%d: a\r\n" % number for number in range(MAX_HEADER_BYTES // 8)),
        b"a" * MAX_HEADER_BYTES,
    ):
        statuses, _ = send(head + much + b"\r\n")
        assert statuses in ([], [431])
    assert send(b"GET /" + b"a" * MAX_HEADER_BYTES + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")[0] in ([], [431])


def test_a_body_without_end_is_refused(send):
    for size in (b"Content-Length: 1048577\r\n", CHUNKED):
        body = b"100000\r\n" + b"a" * 0x100000 + b"\r\n" if size == CHUNKED else b"a" * 1048577
        statuses, _ = send(post(size, body=body * 2))
        assert statuses in ([], [413])


@pytest.mark.parametrize(
    "header",
    [
        b"X-Forwarded-Host: evil.example\r\n",
        b"X-Forwarded-For: 127.0.0.1\r\n",
        b"X-Forwarded-Proto: https\r\n",
        b"X-Forwarded-Prefix: /healthz\r\n",
        b"Forwarded: for=127.0.0.1;host=localhost\r\n",
        b"X-Original-URL: /healthz\r\n",
        b"X-Rewrite-URL: /healthz\r\n",
        b"X-HTTP-Method-Override: GET\r\n",
        b"X_Forwarded_Host: localhost\r\n",
        b"Host: localhost\r\n",
        b"Remote-User: owner\r\n",
        b"Authorization_: Bearer x\r\n",
    ],
)
def test_nothing_in_another_header_is_believed(send, header):
    end = b"Connection: close\r\n\r\n"
    foreign = send(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n" + header + end, authorized=False)[0]
    assert foreign == [403]
    stranger = send(b"GET /v1/workspaces HTTP/1.1\r\nHost: 127.0.0.1\r\n" + header + end, authorized=False)[0]
    assert stranger in ([401], [403])


@pytest.mark.parametrize("line", [b"", b"Host:\r\n", b"Host: a b\r\n", b"Host: evil.example#127.0.0.1\r\n"])
def test_a_request_without_a_host_of_ours_is_refused(send, line):
    for version in (b"1.0", b"1.1"):
        statuses, read = send(b"GET /healthz HTTP/" + version + b"\r\n" + line + b"Connection: close\r\n\r\n")
        assert statuses in ([403], [400]), read


@pytest.mark.parametrize(
    "target",
    [
        b"http://evil.example/v1/workspaces",
        b"//evil.example/v1/workspaces",
        b"*",
        b"/healthz/../v1/workspaces",
        b"/healthz%2f..%2fv1/workspaces",
        b"/healthz;/../v1/workspaces",
        b"/healthz\\..\\v1\\workspaces",
        b"/%2e%2e/v1/workspaces",
        b"/healthz%00",
        b"/v1/workspaces#/healthz",
    ],
)
def test_no_way_of_writing_a_path_is_another_path(send, target):
    end = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    statuses, read = send(b"GET " + target + end, authorized=False)
    assert statuses in ([400], [401], [403], [404]), read


@pytest.mark.parametrize(
    "path",
    [
        b"/static/../../token",
        b"/static/..%2f..%2ftoken",
        b"/static/%2e%2e/%2e%2e/token",
        b"/static//etc/passwd",
        b"/static/..\\..\\token",
        b"/w/../token",
        b"/w/%2e%2e/",
        b"/w/..%2f..%2f/",
        b"/v1/sources/..%2f..%2ftoken/items",
        b"/v1/memories/..%2f..%2ftoken",
    ],
)
def test_no_path_leads_out_of_its_folder(send, container, path):
    for workspace in (b"default", b"../..", b"..", b"a/../b", b"/etc", b".hidden"):
        head = b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n<token>"
        statuses, read = send(head + b"X-Reverie-Workspace: " + workspace + b"\r\nConnection: close\r\n\r\n")
        assert len(statuses) == 1, read
        assert container.token.encode() not in read
        assert b"root:" not in read
        assert statuses[0] in (200, 308, 400, 404, 422), read
        if statuses[0] == 200:
            assert b'"items": []' in read or b"items" in read
    assert [entry.name for entry in container.settings.paths.workspaces.iterdir()] == []
