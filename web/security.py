"""Who may call: loopback names against DNS rebinding, our own pages only, and the bearer token or a way of its own."""

import hmac
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from flask import Flask, g, request
from werkzeug.wrappers import Response

from pipeline.records.people import HOME_OWNER, NOBODY, Caller
from web.connections import vouch_for
from web.listener import LISTENER, Listener, find_listener
from web.problems import problem

# The blueprint of what one Reverie asks another.
MEMBERS = "changes"
OPEN_PATHS = frozenset({"/healthz"})
BEARER = "Bearer "

# Of refused requests of the same route one is told in so many seconds: anybody may send them.
REFUSAL_TOLD_S = 60.0

# Answers None to let a request in.
Door = Callable[[], Response | None]
OnRefusal = Callable[[str], None]


def register_security(
    app: Flask,
    token: Callable[[], str],
    listener: Listener,
    doors: Mapping[str, Door],
    on_refusal: OnRefusal = lambda _: None,
    restore_token: Callable[[], None] = lambda: None,
    is_member: Callable[[str, str], bool] = lambda _token, _path: False,
    find_caller: Callable[[str], Caller | None] = lambda _token: None,
) -> None:
    """Check every request before anything else sees it; a blueprint may have a door for those without the token.

    What devices of one circle ask each other `is_member` opens to who shows the circle's token. `find_caller` tells
    whose a person's token is. `on_refusal` is told the route of a refused request; `restore_token` makes a token where
    there is none. Who asks stands in `g.caller` of every request that is let in.
    """
    refuse = _make_refusal(on_refusal, restore_token)
    find_holder = _make_keyring(token, is_member, find_caller)
    app.extensions[LISTENER] = listener

    @app.before_request
    def guard() -> Response | None:
        if listener.is_plain():
            return problem(403, "this server is reached through its proxy alone, which ends TLS")
        if not listener.knows(request.host):
            return problem(403, "the Host header names another server; `public_url` says by which name this one goes")
        origin = request.headers.get("Origin")
        if origin is not None and not _is_same_origin(origin, request.host):
            return problem(403, "the Origin header names another site")
        g.bearer, g.caller = False, NOBODY
        if request.path in OPEN_PATHS and request.method == "GET":
            return None
        if (caller := find_holder()) is not None:
            _let_in(caller)
            return None
        # A door that lets somebody in says who it is.
        door = doors.get(request.blueprint or "")
        return door() if door is not None and "Authorization" not in request.headers else refuse()


def _make_keyring(
    token: Callable[[], str], is_member: Callable[[str, str], bool], find_caller: Callable[[str], Caller | None]
) -> Callable[[], Caller | None]:
    def find_holder() -> Caller | None:
        """Return whose token the request holds."""
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        expected = token()
        # Without a token nobody holds it.
        if expected and hmac.compare_digest(given, f"{BEARER}{expected}".encode()):
            return HOME_OWNER if find_listener().is_local() else None
        if not given.startswith(BEARER.encode()):
            return None
        shown = given.decode("utf-8", "replace").removeprefix(BEARER)
        if request.blueprint == MEMBERS and is_member(shown, request.path):
            return HOME_OWNER
        return find_caller(shown)

    return find_holder


def _let_in(caller: Caller) -> None:
    g.bearer, g.caller = True, caller
    vouch_for(request.environ)


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
    if find_listener().is_exposed:
        says = "a token of your own is needed; whoever runs this server makes one with `reverie user add`"
    else:
        says = "a bearer token is needed; it stands in the file `token` of the Reverie home"
    refusal = problem(401, says)
    refusal.headers["WWW-Authenticate"] = "Bearer"
    return refusal


def _is_same_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
