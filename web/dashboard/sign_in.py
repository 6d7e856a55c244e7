"""Sign-in: a caller with the token gets a one-time link, and the link sets a cookie.

A cookie is valid until the token changes, the cookie expires, or the browser signs out.
"""

import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import cast
from urllib.parse import urljoin, urlsplit

from flask import (
    Flask,
    Request,
    Response,
    abort,
    current_app,
    g,
    redirect,
    render_template as render,
    request,
    session,
    url_for,
)
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from werkzeug.wrappers import Response as AnyResponse

from config.paths import FileState, file_state, is_workspace_id
from config.settings import Settings
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.leadership import read_secret
from pipeline.kernel.records.people import HOME_OWNER, Caller
from pipeline.kernel.store.home_values import HomeValues
from pipeline.kernel.store.people import People
from pipeline.kernel.times import utc_now
from web.dashboard.shared_sessions import Holder, SharedLinks, SharedSessions
from web.hosts.installed_files import PRIVATE, write_atomically
from web.http.access import Right, may_enter
from web.http.answers import Answer
from web.http.call import Call
from web.http.connections import BY_SOCKET, vouch_for
from web.http.endpoint import Api, Endpoint, container
from web.http.listener import find_listener

LINK_LIFETIME_S = 120
SESSION_LIFETIME = timedelta(days=30)
# Only callers with the token can create links, so more unused links are forgotten tabs.
MOST_LINKS = 16
# Above this number, the oldest sessions end.
MOST_SESSIONS = 256
# Endpoints that need no sign-in.
OPEN = frozenset(
    {"dashboard.sign_in", "dashboard.static", "dashboard.begin_provider_sign_in", "dashboard.end_provider_sign_in"}
)
# Limit for a team server.
MOST_SHARED = 4096
EXTENSION = "dashboard_links"
SESSIONS = "dashboard_sessions"

log = logging.getLogger(__name__)

api = Api("dashboard_links")


class LinkAnswer(Answer):
    """A one-time link that signs in a browser."""

    url: str
    expires_in_s: int


class Links:
    """Codes of one-time links, stored as hashes in memory."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._made: dict[bytes, tuple[float, Holder]] = {}

    def make(self, holder: Holder) -> str:
        """Return a new code that signs in as the holder."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_expired()
            while len(self._made) >= MOST_LINKS:
                del self._made[next(iter(self._made))]
            self._made[_hash(code)] = self._now() + LINK_LIFETIME_S, holder
        return code

    def redeem(self, code: str) -> Holder | None:
        """Redeem a code and return its holder, None for an unknown, used or expired code."""
        with self._lock:
            self._drop_expired()
            link = self._made.pop(_hash(code), None)
            return None if link is None else link[1]

    def _drop_expired(self) -> None:
        for known in [known for known, (until, _) in self._made.items() if until <= self._now()]:
            del self._made[known]


class Sessions:
    """Sessions of signed-in browsers: hashes of their names with expiry times, stored in a file."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._now = now
        self._lock = threading.Lock()
        self._read_at: FileState | None = None
        self._ends: dict[str, float] = {}

    def begin(self) -> str:
        """Start a session and return its name."""
        name = secrets.token_urlsafe(32)
        with self._lock:
            newest = sorted(self._valid().items(), key=lambda entry: entry[1])[-(MOST_SESSIONS - 1) :]
            self._save({**dict(newest), _hash(name).hex(): self._now() + SESSION_LIFETIME.total_seconds()})
        return name

    def end(self, name: str) -> None:
        """End a session, so that its cookie is rejected."""
        with self._lock:
            self._save({known: ends for known, ends in self._valid().items() if known != _hash(name).hex()})

    def is_valid(self, name: object) -> bool:
        """Return whether a session with this name exists and has not expired."""
        with self._lock:
            return isinstance(name, str) and _hash(name).hex() in self._valid()

    def _valid(self) -> dict[str, float]:
        self._read()
        return {name: ends for name, ends in self._ends.items() if ends > self._now()}

    def _read(self) -> None:
        """Read the file if it changed; without a readable file, all browsers are signed out."""
        try:
            state = file_state(self._file)
            if state == self._read_at:
                return
            read = json.loads(self._file.read_bytes())
            self._ends = {str(name): float(ends) for name, ends in read.items()}
        except FileNotFoundError:
            state, self._ends = None, {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            log.warning("cannot read %s, so all browsers are signed out: %s", self._file, error)
            state, self._ends = None, {}
        self._read_at = state

    def _save(self, ends: dict[str, float]) -> None:
        write_atomically(self._file, json.dumps(ends).encode(), mode=PRIVATE)
        self._ends = ends


class TokenSessions(SecureCookieSessionInterface):
    """Sign cookies with the current token; cookies set over TLS are only sent over TLS."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token
        self._signed_for = ""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the session in the cookie, or an empty session without a cookie."""
        self._follow_token(app)
        # Most requests come from programs, without cookies.
        return super().open_session(app, request) if "Cookie" in request.headers else self.session_class()

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Sign a changed session with the current token, which the request may have replaced."""
        if session.modified:
            self._follow_token(app)
        super().save_session(app, session, response)

    def get_cookie_secure(self, app: Flask) -> bool:  # noqa: ARG002 - Flask's signature
        """Return whether the browser must send the cookie only over TLS."""
        return request.is_secure

    def _follow_token(self, app: Flask) -> None:
        token = self._token()
        if token != self._signed_for:
            sign_sessions_with(app, token)
            self._signed_for = token


class SharedTokenSessions(TokenSessions):
    """Sign cookies with a secret shared by all web servers, read at the first request with a cookie."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the session in the cookie; do not read the store for requests without a cookie."""
        return super().open_session(app, request) if "Cookie" in request.headers else self.session_class()

    def _follow_token(self, app: Flask) -> None:
        # The shared secret never changes.
        if not self._signed_for:
            super()._follow_token(app)


def register_sessions(app: Flask, token: Callable[[], str], settings: Settings) -> None:
    """Set up signed cookies; their name contains the port, since browsers send cookies to all ports of a host."""
    app.session_interface = TokenSessions(token)
    app.extensions[SESSIONS] = Sessions(settings.paths.sessions)
    app.config.update(
        SESSION_COOKIE_NAME=f"reverie-{settings.port}",
        SESSION_COOKIE_HTTPONLY=True,
        # A browser that returns from a provider comes from another site.
        SESSION_COOKIE_SAMESITE="Lax" if settings.oidc_issuer else "Strict",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=SESSION_LIFETIME,
    )
    sign_sessions_with(app, token())


def share_sessions(app: Flask, values: HomeValues) -> None:
    """Share sign-ins between all web servers: one secret, one cookie name, one list of sessions."""
    app.session_interface = SharedTokenSessions(partial(read_secret, values, "browsers"))
    app.config.update(SESSION_COOKIE_NAME="reverie")
    app.extensions[SESSIONS] = SharedSessions(values, SESSION_LIFETIME.total_seconds(), MOST_SHARED)
    app.extensions[EXTENSION] = SharedLinks(values, LINK_LIFETIME_S)


def sign_sessions_with(app: Flask, token: str) -> None:
    """Bind cookies and links to a token, so that a new token signs out all browsers."""
    if not isinstance(app.extensions.get(EXTENSION), SharedLinks):
        app.extensions[EXTENSION] = Links()
    bound_to = f"dashboard sessions {app.config['SESSION_COOKIE_NAME']}"
    # Without a token, use a random key: a key derived from an empty token could be computed by an attacker.
    app.secret_key = hmac.digest(token.encode() or secrets.token_bytes(32), bound_to.encode(), "sha256")


def new_link(workspace_id: str | None = None) -> str:
    """Return the path of a one-time link that signs in as the caller, and opens a workspace if one is given."""
    links: Links | SharedLinks = current_app.extensions[EXTENSION]
    code = links.make(Holder(g.caller.person_id, g.caller.token_id))
    return url_for("dashboard.sign_in", code=code, workspace=workspace_id)


@api.route(Endpoint("POST", "/v1/dashboard/links", answer=LinkAnswer, status=201, needs=Right.ANYBODY))
def make_link(call: Call) -> LinkAnswer:
    """Create a one-time link that opens the dashboard, in the workspace that the request names."""
    # A client at the Unix socket does not know the address.
    base_url = call.container.settings.url if request.environ.get(BY_SOCKET) else request.host_url
    return LinkAnswer(
        url=urljoin(base_url, new_link(call.named_workspace)),
        expires_in_s=LINK_LIFETIME_S,
    )


def open_door() -> AnyResponse | None:
    """Accept signed-in browsers and open endpoints; return the sign-in page for all other requests."""
    caller = _find_signed_in()
    if caller is not None:
        g.caller = caller
        vouch_for(request.environ)
        return None
    if request.endpoint in OPEN:
        return None
    return refusal("This browser is not signed in.")


def _find_signed_in() -> Caller | None:
    """Return the caller that this browser is signed in as, None if it is not."""
    if not _sessions().is_valid(session.get("id")):
        return None
    person_id = session.get("person")
    if person_id is None:
        # Signed in with the token of the data directory, which is valid only on this machine.
        return HOME_OWNER if find_listener().is_local() else None
    return _find_person(container().people, Holder(person_id, session.get("token")), session["at"])


def _find_person(people: People, holder: Holder, since: str) -> Caller | None:
    """Return the person who signed in at a time, None if the person or token was revoked since."""
    assert holder.person_id is not None
    person = people.find_signed_in(holder.person_id, since)
    if person is None or holder.token_id is None:
        return person
    return people.find_holder(holder.token_id, utc_now())


def watch_caller(workspace_id: str) -> Callable[[], bool]:
    """Return a function that checks whether the caller still has access, for long responses."""
    services, caller, sessions = container(), g.caller, _sessions()
    token, name, since = services.token, session.get("id"), session.get("at", "")
    is_bearer = bool(g.get("bearer"))

    def has_access() -> bool:
        if not is_bearer and not sessions.is_valid(name):
            return False
        if caller.person is None:
            return services.token == token
        if is_bearer:
            person = services.people.find_holder(caller.token_id or "", utc_now())
        else:
            person = _find_person(services.people, Holder(caller.person_id, caller.token_id), since)
        return person is not None and may_enter(person, workspace_id, services.people)

    return has_access


def sign_in() -> AnyResponse:
    """Redeem a one-time code and set a cookie. A HEAD request redeems nothing: mail programs look links up with it."""
    if request.method == "HEAD":
        return Response()
    links: Links | SharedLinks = current_app.extensions[EXTENSION]
    holder = links.redeem(request.args.get("code", ""))
    if holder is None:
        return refusal("This link has expired or was already used.")
    return begin_session(holder, request.args.get("workspace", ""))


def begin_session(holder: Holder, workspace_id: str = "") -> AnyResponse:
    """Sign this browser in and redirect it to a workspace, or to the one that it viewed last."""
    _end_session()
    session.permanent = True
    session["id"] = _sessions().begin()
    session["csrf"] = secrets.token_urlsafe(32)
    if holder.person_id is not None:
        session.update(person=holder.person_id, token=holder.token_id, at=utc_now())
    if is_workspace_id(workspace_id):
        return redirect(url_for("dashboard.overview_home", workspace=workspace_id), 303)
    return redirect(url_for("dashboard.home"), 303)


def sign_out() -> AnyResponse:
    """End the session of this browser on the server and in its cookie."""
    if is_forged(request.form.get("csrf", "")):
        abort(HTTPStatus.FORBIDDEN, "This form has expired. Reload the page and try again.")
    _end_session()
    return refusal("This browser is signed out.", 200)


def _sessions() -> Sessions | SharedSessions:
    return cast(Sessions | SharedSessions, current_app.extensions[SESSIONS])


def _end_session() -> None:
    if "id" in session:
        _sessions().end(session["id"])
    session.clear()


def refusal(reason: str, status: int = 401, *, advice: str = "") -> Response:
    """Return the sign-in page with a reason and advice."""
    settings = container().settings
    values = {"reason": reason, "home": settings.home, "provider": urlsplit(settings.oidc_issuer).netloc}
    page = Response(render("sign_in.html", **values, advice=advice), status, mimetype="text/html")
    if status == 401:
        page.headers["WWW-Authenticate"] = "Bearer"
    return page


def csrf_token() -> str:
    """Return the CSRF token that all forms of this browser must send."""
    return cast(str, session.get("csrf", ""))


def is_forged(submitted: str) -> bool:
    """Return whether the CSRF token is wrong; requests with the bearer token need none."""
    if g.get("bearer"):
        return False
    expected = csrf_token()
    return not expected or not hmac.compare_digest(expected.encode(), submitted.encode("utf-8", "surrogateescape"))


def _hash(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).digest()


class SignInFailed(ReverieError):
    """A failed sign-in; `is_fault` if the provider or the settings are the cause."""

    def __init__(self, message: str, *, is_fault: bool = False) -> None:
        super().__init__(message)
        self.is_fault = is_fault
