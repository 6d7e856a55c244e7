"""Who may call: loopback names against DNS rebinding, our own pages only, and the bearer token or a way of its own."""

import hmac
import time
from collections.abc import Callable, Collection, Mapping
from urllib.parse import urlsplit

from flask import Flask, g, request
from werkzeug.wrappers import Response

from web.connections import vouch_for
from web.problems import problem

# The blueprint of what one Reverie asks another.
MEMBERS = "changes"
OPEN_PATHS = frozenset({"/healthz"})
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})


# Of refused requests of the same route one is told in so many seconds: anybody may send them.
REFUSAL_TOLD_S = 60.0

# Answers None to let a request in.
Door = Callable[[], Response | None]
OnRefusal = Callable[[str], None]


def register_security(
    app: Flask,
    token: Callable[[], str],
    host: str,
    doors: Mapping[str, Door],
    on_refusal: OnRefusal = lambda _: None,
    restore_token: Callable[[], None] = lambda: None,
    is_member: Callable[[str, str], bool] = lambda _token, _path: False,
) -> None:
    """Check every request before anything else sees it; a blueprint may have a door for those without the token.

    What devices of one circle ask each other `is_member` opens to who shows the circle's token. `on_refusal` is told
    the route of a refused request; `restore_token` makes a token where there is none.
    """
    refuse = _make_refusal(on_refusal, restore_token)
    names = LOOPBACK_NAMES | {host.lower()}

    @app.before_request
    def guard() -> Response | None:
        if not _is_our_host(request.host, names):
            return problem(403, "the Host header names another server")
        origin = request.headers.get("Origin")
        if origin is not None and not _is_same_origin(origin, request.host):
            return problem(403, "the Origin header names another site")
        if request.path in OPEN_PATHS and request.method == "GET":
            return None
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        expected = token()
        # Without a token nobody holds it.
        g.bearer = bool(expected) and hmac.compare_digest(given, f"Bearer {expected}".encode())
        if g.bearer:
            vouch_for(request.environ)
            return None
        if request.blueprint == MEMBERS and is_member(
            given.decode("utf-8", "replace").removeprefix("Bearer "), request.path
        ):
            return None
        door = doors.get(request.blueprint or "")
        return door() if door is not None and "Authorization" not in request.headers else refuse()


def _make_refusal(on_refusal: OnRefusal, restore_token: Callable[[], None]) -> Callable[[], Response]:
    told: dict[str, float] = {}

    def refuse() -> Response:
        route = "" if request.url_rule is None else request.url_rule.rule
        if time.monotonic() - told.get(route, -REFUSAL_TOLD_S) >= REFUSAL_TOLD_S:
            told[route] = time.monotonic()
            on_refusal(route)
        restore_token()
        return _ask_for_token()

    return refuse


def _ask_for_token() -> Response:
    refusal = problem(401, "a bearer token is needed; it stands in the file `token` of the Reverie home")
    refusal.headers["WWW-Authenticate"] = "Bearer"
    return refusal


def _is_our_host(host: str, names: Collection[str]) -> bool:
    # Any port: a forwarded one is still this machine. A name that only resolves to it is not.
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name is not None and name in names


def _is_same_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
