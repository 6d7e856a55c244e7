"""Streams of a real front: a few are held, the places of those who went are free again, and none holds up its end."""

import contextlib
import signal
import socket

import pytest

from config.paths import HomePaths
from pipeline.features.people.usecases import get_person, remove_person, revoke, ungrant
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.people import People
from tests.support.stack import HOST, Stack, wait_until
from tests.support.team import make_token
from web.http.streams import MOST_HELD

EVENTS = "/w/default/timeline/events"
# Without the end of the line before it, a header that ends with 0 would look like it.
LAST_CHUNK = b"\r\n0\r\n\r\n"


@pytest.fixture
def stack(tmp_path):
    (tmp_path / "models").mkdir()
    with Stack(tmp_path / "home", tmp_path / "models") as stack:
        stack.start("web")
        with contextlib.closing(stack.client()) as client:
            client.remember("The crane lifts on Mondays")
        yield stack


@contextlib.contextmanager
def stream(stack, token=None):
    """Ask for events; yields a function that reads until a text is there, or the end is (b"")."""
    token = token or (stack.home / "token").read_text().strip()
    with socket.create_connection((HOST, stack.port), timeout=20) as connection:
        request = f"GET {EVENTS}?after=0 HTTP/1.1\r\nHost: {HOST}:{stack.port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        connection.sendall(request.encode())
        seen = b""

        def read_until(text):
            nonlocal seen
            while text not in seen:
                more = connection.recv(4096)
                if not more:
                    break
                seen += more
            found, _, seen = seen.partition(text)
            return found + text

        yield read_until


def is_held(read_until):
    """Tell whether a stream goes on after its news: a comment follows, or the last chunk."""
    read_until(b"event: digestion")
    read_until(b"\n\n\r\n")
    # There may be more news meanwhile.
    while b"event: " in (chunk := read_until(b"\n\r\n")):
        pass
    return b":\n\n" in chunk


def test_event_streams_are_limited_and_excess_clients_are_answered_once(stack):
    with contextlib.ExitStack() as held:
        for _ in range(MOST_HELD):
            assert is_held(held.enter_context(stream(stack)))
        with stream(stack) as told:
            answer = told(LAST_CHUNK)
            assert b"retry: 3000" in answer
            assert b"event: changes" in answer
        # Threads are left for everybody else.
        assert stack.is_healthy()

    def is_free():
        with stream(stack) as again:
            return is_held(again)

    wait_until("whoever went away freed a place", is_free)


def test_a_stream_does_not_hold_up_the_end(stack):
    with stream(stack) as read_until:
        assert is_held(read_until)
        process = stack.running["web"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert "still running" not in (stack.logs / "web.log").read_text()


@pytest.fixture
def shared(stack):
    """A stack of several people, with a token of Ada's, and the people."""
    token = make_token(stack.home, "Ada", default="reader")
    return stack, token, People(HomeFile(HomePaths(stack.home).home))


def ends_without_asking_for_more(read_until):
    """Tell whether the stream ends, and not because its time is up: then it would say to come again soon."""
    return b"retry: 200\n" not in read_until(LAST_CHUNK)


@pytest.mark.parametrize("how", ["token", "person", "grant"])
def test_stream_ends_when_its_token_person_or_grant_is_removed(shared, how):
    stack, token, people = shared
    ada = get_person(people, "ada")
    with stream(stack, token) as read_until:
        assert is_held(read_until)
        match how:
            case "token":
                revoke(people, ada)
            case "person":
                remove_person(people, ada)
            case "grant":
                ungrant(people, ada, "default")
        assert ends_without_asking_for_more(read_until)
    with stream(stack, token) as refused:
        assert refused(b"\r\n").split()[1] == (b"404" if how == "grant" else b"401")


def test_a_stream_ends_with_the_homes_token(stack):
    with stream(stack) as read_until:
        assert is_held(read_until)
        HomePaths(stack.home).renew_token()
        assert ends_without_asking_for_more(read_until)
