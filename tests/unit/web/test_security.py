import pytest
from flask import Flask
from hypothesis import given, strategies as st

from web.http.listener import Listener
from web.http.security import MOST_WRONG_TOKENS, WrongTokens, register_security

TOKEN = "t0ken-t0ken-t0ken"
NAMES = {"127.0.0.1", "localhost", "::1", "reverie.lan"}
LISTENER = Listener(frozenset(NAMES), is_exposed=False)


@pytest.fixture(scope="module")
def client():
    app = Flask("test")
    register_security(app, lambda: TOKEN, LISTENER, {})
    for path in ("/healthz", "/v1/thing"):
        app.add_url_rule(path, path, lambda: "fine", methods=["GET", "POST"])
    return app.test_client()


def get(client, path="/v1/thing", method="GET", **headers):
    return client.open(path, method=method, headers={"Authorization": f"Bearer {TOKEN}", **headers}).status_code


def test_the_token_opens_and_nothing_near_it_does(client):
    assert get(client) == 200
    for near in (TOKEN[:-1], TOKEN + "x", TOKEN.upper(), f" {TOKEN}", f"{TOKEN} ", ""):
        assert get(client, Authorization=f"Bearer {near}") == 401, near
    for scheme in ("Basic", "Token", "Bearer:", "xBearer", ""):
        assert get(client, Authorization=f"{scheme} {TOKEN}") == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_name_of_the_scheme_has_no_case(client, scheme):
    assert get(client, Authorization=f"{scheme} {TOKEN}") == 200
    assert get(client, Authorization=f"{scheme} {TOKEN.upper()}") == 401


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/mcp/.well-known/openid-configuration",
    ],
)
@pytest.mark.parametrize("token", [None, "Bearer wrong", f"Bearer {TOKEN}"])
def test_oauth_discovery_is_answered_with_not_found(client, path, token):
    headers = {} if token is None else {"Authorization": token}
    for method in ("GET", "HEAD"):
        answer = client.open(path, method=method, headers=headers)
        assert (answer.status_code, answer.headers.get("WWW-Authenticate")) == (404, None)
    assert get(client, path, Host="evil.example") == 403


@given(st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=60))
def test_no_other_header_opens(client, header):
    assert get(client, Authorization=header.strip()) == 401


def test_only_the_current_token_is_accepted_and_an_empty_token_never():
    held = [TOKEN]
    app = Flask("renewed")
    register_security(app, lambda: held[0], LISTENER, {})
    app.add_url_rule("/v1/thing", "thing", lambda: "fine")
    client = app.test_client()
    assert get(client) == 200
    held[0] = "another-token"
    assert get(client) == 401
    assert get(client, Authorization="Bearer another-token") == 200
    held[0] = ""
    assert get(client, Authorization="Bearer ") == 401
    assert get(client, Authorization="Bearer") == 401


def ask_from(client, address, token):
    headers = {"Authorization": f"Bearer {token}"}
    return client.get("/v1/thing", headers=headers, environ_base={"REMOTE_ADDR": address})


@pytest.mark.parametrize("is_exposed", [True, False])
def test_repeated_wrong_tokens_are_rate_limited_on_an_exposed_server(is_exposed):
    app = Flask("exposed")
    listener = Listener(frozenset(NAMES), is_exposed=is_exposed, own=frozenset({"10.0.0.7", "10.0.0.8"}))
    register_security(app, lambda: TOKEN, listener, {})
    app.add_url_rule("/v1/thing", "thing", lambda: "fine")
    client = app.test_client()
    for _ in range(MOST_WRONG_TOKENS):
        assert ask_from(client, "10.0.0.7", "wrong").status_code == 401
    refused = ask_from(client, "10.0.0.7", "wrong")
    assert refused.status_code == (429 if is_exposed else 401)
    assert ("Retry-After" in refused.headers) is is_exposed
    assert ask_from(client, "10.0.0.8", "wrong").status_code == 401


def test_wrong_tokens_are_forgotten_after_a_minute():
    now = [0.0]
    wrong = WrongTokens(lambda: now[0])
    assert [wrong.note("a") for _ in range(MOST_WRONG_TOKENS + 1)] == [0] * MOST_WRONG_TOKENS + [60]
    now[0] = 20.0
    assert wrong.note("a") == 40
    now[0] = 81.0
    assert wrong.note("a") == 0


def test_only_reading_the_health_is_open(client):
    assert client.get("/healthz").status_code == 200
    for method, path in (("POST", "/healthz"), ("GET", "/healthz/"), ("GET", "/v1/../healthz")):
        assert client.open(path, method=method).status_code == 401


@pytest.mark.parametrize("name", sorted(NAMES))
def test_our_names_are_ours_at_any_port(client, name):
    shown = f"[{name}]" if ":" in name else name
    assert get(client, Host=shown) == 200
    assert get(client, Host=f"{shown}:7077") == 200
    assert get(client, Host=f"{shown.upper()}:1") == 200


@given(st.from_regex(r"[a-z0-9.@:\[\]/-]{1,30}", fullmatch=True))
def test_no_other_name_is_ours(client, host):
    if get(client, Host=host) == 200:
        assert host.startswith((*(n for n in NAMES if ":" not in n), "[::1]"))


@pytest.mark.parametrize(
    "host",
    ["localhost.evil.example", "evil.example", "127.0.0.1@evil.example", "127.0.0.2", "0.0.0.0", "2130706433", "[::1"],
)
def test_names_that_only_look_like_ours_are_refused(client, host):
    assert get(client, Host=host) == 403
    assert get(client, "/healthz", Host=host) == 403


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:7077", "http://localhost:7077", 200),
        ("localhost:7077", "HTTP://LOCALHOST:7077", 200),
        ("localhost:7077", "http://localhost:7078", 403),
        ("localhost:7077", "http://127.0.0.1:7077", 403),
        ("localhost:7077", "http://localhost:7077.evil.example", 403),
        ("localhost:7077", "http://evil.example/localhost:7077", 403),
        ("localhost:7077", "null", 403),
        ("localhost:7077", "chrome-extension://localhost:7077", 403),
        ("localhost:7077", "", 403),
    ],
)
def test_only_our_own_pages_may_call(client, host, origin, status):
    assert get(client, Host=host, Origin=origin) == status
