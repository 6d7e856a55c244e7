"""The whole way of a team's request: TLS, a real proxy as deploy/ has it, and `reverie team serve --behind-proxy`."""

import contextlib
import json
import re

import pytest

from tests.support.proxies import NAME, PROXIES, is_installed, run_proxy
from tests.support.stack import HOST, Stack
from tests.support.team import make_token, serving

WORKSPACE = "shop"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.skipif(not is_installed(name), reason=f"no {name} on this machine"))
        for name in PROXIES
    ],
)
def proxy(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxies")
    (folder / "models").mkdir()
    (folder / "proxy").mkdir()
    stack = Stack(folder / "home", folder / "models")
    # Made by the first server that starts; here nothing has started yet.
    token = make_token(stack.home, "Ann", **{WORKSPACE: "writer"})
    options = {"REVERIE_PUBLIC_URL": f"https://{NAME}"}
    with (
        serving(stack, "--behind-proxy", environment=options),
        run_proxy(request.param, folder / "proxy", f"{HOST}:{stack.port}") as proxy,
    ):
        yield proxy, stack, token


def call(proxy, method, path, token="", body=None, **headers):
    given = {"Host": proxy.authority, "X-Reverie-Workspace": WORKSPACE, "Content-Type": "application/json"}
    if token:
        given["Authorization"] = f"Bearer {token}"
    with contextlib.closing(proxy.connect()) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), {**given, **headers})
        answer = connection.getresponse()
        return answer, answer.read()


def test_a_person_reaches_the_server_through_it(proxy):
    proxy, _, token = proxy
    answer, text = call(proxy, "POST", "/v1/memories", token, {"content": "The port is 6543"})
    assert answer.status == 201, text
    answer, text = call(proxy, "POST", "/v1/recall", token, {"query": "port"})
    assert answer.status == 200
    assert "6543" in text.decode()
    # The proxy's own, which is neither the client's nor one that the server made.
    given = "of-the-client-1234"
    named = [call(proxy, "GET", "/healthz", **{"X-Request-Id": given})[0].getheader("X-Request-Id") for _ in range(2)]
    assert given not in named
    assert len(set(named)) == 2
    assert all(re.fullmatch(r"[0-9a-f]{32}|[0-9a-f-]{36}", one) for one in named)
    answer, text = call(proxy, "GET", "/v1/stats")
    assert answer.status == 401
    problem = json.loads(text)
    assert problem["instance"] == f"urn:reverie:request:{answer.getheader('X-Request-Id')}"
    hook = {"hook_event_name": "SessionEnd", "session_id": "s1", "cwd": "/nowhere"}
    assert call(proxy, "POST", "/hooks/claude-code", token, hook)[0].status == 200
    # Too large for the server, which says so itself.
    answer, text = call(proxy, "POST", "/v1/memories", token, {"content": "x" * (9 * 1024 * 1024)})
    assert (answer.status, json.loads(text)["status"]) == (413, 413)


def test_the_installations_token_does_not_work_through_it(proxy):
    proxy, stack, _ = proxy
    home_token = (stack.home / "token").read_text(encoding="ascii").strip()
    assert call(proxy, "GET", "/v1/workspaces", home_token)[0].status == 401
    # Whatever a client says of itself.
    for header in ({"X-Forwarded-For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1;proto=http"}):
        assert call(proxy, "GET", "/v1/workspaces", home_token, **header)[0].status == 401
    with contextlib.closing(stack.client()) as here:
        assert here.call("GET", "/v1/workspaces").status == 200


def test_events_come_as_they_happen(proxy):
    proxy, _, token = proxy
    call(proxy, "POST", "/v1/memories", token, {"content": "The crane lifts on Mondays"})
    with contextlib.closing(proxy.connect()) as connection:
        headers = {"Host": proxy.authority, "Authorization": f"Bearer {token}"}
        connection.request("GET", f"/w/{WORKSPACE}/timeline/events?after=0", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200
        # The answer goes on for a while: what is read here was not held back.
        first = b"".join(iter(answer.readline, b"event: digestion\n"))
    assert b"event: changes" in first


def test_names_that_are_not_the_servers_are_refused_behind_it_too(proxy):
    proxy, _, token = proxy
    origin = {"Origin": "https://evil.example"}
    assert call(proxy, "GET", "/v1/stats", token, **origin)[0].status == 403
    own = {"Origin": f"https://{proxy.authority}"}
    assert call(proxy, "GET", "/healthz", token, **own)[0].status == 200
