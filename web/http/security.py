"""Access checks of every request: host names against DNS rebinding, same origin, and the bearer token."""

import hmac
import math
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from flask import Flask, g, request
from werkzeug.wrappers import Response

from pipeline.kernel.records.people import HOME_OWNER, NOBODY, Caller
from web.http.connections import vouch_for
from web.http.listener import LISTENER, Listener, find_listener
from web.http.problems import problem

# The blueprint of the routes for other devices of the circle.
MEMBERS = "changes"
OPEN_PATHS = frozenset({"/healthz"})
# Clients of MCP look here for a sign-in with OAuth, and take only 404 for the answer that there is none.
WELL_KNOWN = "/.well-known/"

# Log at most one rejected request per route in this time: unauthenticated clients can send any number.
REFUSAL_TOLD_S = 60.0

# On a server for other machines, an address that sends more wrong tokens in a minute than this has to wait.
MOST_WRONG_TOKENS = 20
WRONG_TOKENS_S = 60.0
MOST_ADDRESSES = 4096

# Returns None to accept a request.
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
    """Check every request before it is handled; a blueprint may have its own check for requests without a token.

    `is_member` accepts the circle's token for the routes of other devices. `find_caller` returns the caller of a
    person's token. `on_refusal` gets the route of a rejected request; `restore_token` creates a missing token. The
    caller of an accepted request is in `g.caller`.
    """
    refuse = _make_refusal(on_refusal, restore_token)
    find_holder = _make_keyring(token, is_member, find_caller)
    app.extensions[LISTENER] = listener

    @app.before_request
    def guard() -> Response | None:
        if listener.is_plain():
            return problem(403, "This server is reachable only through its TLS proxy. Use the proxy's address.")
        if not listener.knows(request.host):
            return problem(403, "The Host header names another server. Set `public_url` to the name of this server.")
        origin = request.headers.get("Origin")
        if origin is not None and not _is_same_origin(origin, request.host):
            return problem(403, "The Origin header names another site. Only pages of this server may send requests.")
        g.bearer, g.caller = False, NOBODY
        if request.path in OPEN_PATHS and request.method == "GET":
            return None
        if (caller := find_holder()) is not None:
            g.bearer, g.caller = True, caller
            vouch_for(request.environ)
            return None
        # A blueprint's own check sets the caller.
        door = doors.get(request.blueprint or "")
        return door() if door is not None and "Authorization" not in request.headers else refuse()


def _make_keyring(
    token: Callable[[], str], is_member: Callable[[str, str], bool], find_caller: Callable[[str], Caller | None]
) -> Callable[[], Caller | None]:
    def find_holder() -> Caller | None:
        """Return the caller by the token of the request."""
        scheme, _, sent_text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        sent = sent_text.encode("utf-8", "surrogateescape")
        expected = token()
        # Without a stored token no request can match it.
        if expected and hmac.compare_digest(sent, expected.encode()):
            return HOME_OWNER if find_listener().is_local() else None
        shown = sent.decode("utf-8", "replace")
        if request.blueprint == MEMBERS and is_member(shown, request.path):
            return HOME_OWNER
        return find_caller(shown)

    return find_holder


def _make_refusal(on_refusal: OnRefusal, restore_token: Callable[[], None]) -> Callable[[], Response]:
    logged_at: dict[str, float] = {}
    wrong_tokens = WrongTokens()

    def refuse() -> Response:
        if WELL_KNOWN in request.path:
            return problem(404, "This server has no sign-in with OAuth. Send a bearer token.")
        if "Authorization" in request.headers and find_listener().is_exposed:
            wait_s = wrong_tokens.note(request.remote_addr or "")
            if wait_s:
                return _ask_to_wait(wait_s)
        route = "" if request.url_rule is None else request.url_rule.rule
        if time.monotonic() - logged_at.get(route, -REFUSAL_TOLD_S) >= REFUSAL_TOLD_S:
            logged_at[route] = time.monotonic()
            on_refusal(route)
        restore_token()
        return _ask_for_token()

    return refuse


class WrongTokens:
    """Count the wrong tokens of each address; a right token is always accepted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, list[float]] = {}

    def note(self, address: str) -> int:
        """Note a wrong token of an address; return the seconds that it has to wait, 0 if it need not."""
        now = self._clock()
        if len(self._windows) == MOST_ADDRESSES:
            self._windows.clear()
        recent = [at for at in self._windows.get(address, ()) if now - at < WRONG_TOKENS_S][-MOST_WRONG_TOKENS:]
        times = self._windows[address] = [*recent, now]
        return math.ceil(times[0] + WRONG_TOKENS_S - now) if len(times) > MOST_WRONG_TOKENS else 0


def _ask_to_wait(seconds: int) -> Response:
    refusal = problem(429, "This address sent too many wrong tokens. Check the token, wait, and try again.")
    refusal.headers["Retry-After"] = str(seconds)
    return refusal


def _ask_for_token() -> Response:
    if find_listener().is_exposed:
        says = "This server needs your personal token. Its administrator creates one with `reverie user add NAME`."
    else:
        says = "The bearer token is missing or wrong. Send the token in the file `token` of the data directory."
    refusal = problem(401, says)
    refusal.headers["WWW-Authenticate"] = "Bearer"
    return refusal


def _is_same_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
