"""Signing in: a one-time link, made for whoever holds the token, becomes a cookie.

A cookie ends when the token does, when its time is up, or when its browser signs out.
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
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urljoin

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

from config.paths import FileState, file_state
from pipeline.records.people import HOME_OWNER
from web.access import Access
from web.api.answers import Answer
from web.connections import vouch_for
from web.endpoint import Api, Call, Endpoint, container
from web.hosts.files import PRIVATE, write_atomically
from web.listener import find_listener

LINK_LIFETIME_S = 120
SESSION_LIFETIME = timedelta(days=30)
# Whoever may make links holds the token; more than this are only forgotten tabs.
MOST_LINKS = 16
# The oldest end where more browsers than these are signed in.
MOST_SESSIONS = 64
EXTENSION = "dashboard_links"
SESSIONS = "dashboard_sessions"

log = logging.getLogger(__name__)

api = Api("dashboard_links")


class LinkAnswer(Answer):
    """A link that signs one browser in, once."""

    url: str
    expires_in_s: int


class Links:
    """Keep the codes of one-time links: as hashes, in memory, each for one use."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._expiry: dict[bytes, float] = {}

    def make(self) -> str:
        """Return a new code."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_expired()
            while len(self._expiry) >= MOST_LINKS:
                del self._expiry[next(iter(self._expiry))]
            self._expiry[_hash(code)] = self._now() + LINK_LIFETIME_S
        return code

    def redeem(self, code: str) -> bool:
        """Use a code up; tell whether it was good."""
        with self._lock:
            self._drop_expired()
            return self._expiry.pop(_hash(code), None) is not None

    def _drop_expired(self) -> None:
        for known in [known for known, until in self._expiry.items() if until <= self._now()]:
            del self._expiry[known]


class Sessions:
    """Know which browsers are signed in: the hashes of their sessions' names and when each ends, in a file."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._now = now
        self._lock = threading.Lock()
        self._read_at: FileState | None = None
        self._ends: dict[str, float] = {}

    def begin(self) -> str:
        """Return the name of a new session."""
        name = secrets.token_urlsafe(32)
        with self._lock:
            kept = sorted(self._valid().items(), key=lambda one: one[1])[-(MOST_SESSIONS - 1) :]
            self._save({**dict(kept), _hash(name).hex(): self._now() + SESSION_LIFETIME.total_seconds()})
        return name

    def end(self, name: str) -> None:
        """End a session; its cookie opens nothing any more."""
        with self._lock:
            self._save({known: ends for known, ends in self._valid().items() if known != _hash(name).hex()})

    def is_valid(self, name: object) -> bool:
        """Tell whether a session of this name began and has not ended."""
        with self._lock:
            return isinstance(name, str) and _hash(name).hex() in self._valid()

    def _valid(self) -> dict[str, float]:
        self._read()
        return {name: ends for name, ends in self._ends.items() if ends > self._now()}

    def _read(self) -> None:
        """Read the file where it changed; without a readable one nobody is signed in."""
        try:
            found = file_state(self._file)
            if found == self._read_at:
                return
            read = json.loads(self._file.read_bytes())
            self._ends = {str(name): float(ends) for name, ends in read.items()}
        except FileNotFoundError:
            found, self._ends = None, {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            log.warning("%s: nobody is signed in: %s", self._file, error)
            found, self._ends = None, {}
        self._read_at = found

    def _save(self, ends: dict[str, float]) -> None:
        write_atomically(self._file, json.dumps(ends).encode(), mode=PRIVATE)
        self._ends = ends


class TokenSessions(SecureCookieSessionInterface):
    """Sign cookies with the token as it is now; those of a browser that came by TLS go by nothing else."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token
        self._signed_for = ""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the session that a cookie holds, an empty one without any cookie."""
        self._follow_token(app)
        # Most requests are a program's.
        return super().open_session(app, request) if "Cookie" in request.headers else self.session_class()

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Sign a session that changed, with the token that the request left behind."""
        if session.modified:
            self._follow_token(app)
        super().save_session(app, session, response)

    def get_cookie_secure(self, app: Flask) -> bool:  # noqa: ARG002 - Flask's signature
        """Tell whether a browser may send the cookie over TLS alone."""
        return request.is_secure

    def _follow_token(self, app: Flask) -> None:
        token = self._token()
        if token != self._signed_for:
            sign_sessions_with(app, token)
            self._signed_for = token


def register_sessions(app: Flask, token: Callable[[], str], port: int, file: Path) -> None:
    """Let the app sign its cookies; a port has its own, since browsers send a host's cookies to every port."""
    app.session_interface = TokenSessions(token)
    app.extensions[SESSIONS] = Sessions(file)
    app.config.update(
        SESSION_COOKIE_NAME=f"reverie-{port}",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=SESSION_LIFETIME,
    )
    sign_sessions_with(app, token())


def sign_sessions_with(app: Flask, token: str) -> None:
    """Bind every cookie and link to a token and every cookie to its name: with another one nobody is signed in."""
    app.extensions[EXTENSION] = Links()
    bound_to = f"dashboard sessions {app.config['SESSION_COOKIE_NAME']}"
    # Without a token nobody can sign in; a key that anybody could compute would let everybody.
    app.secret_key = hmac.digest(token.encode() or secrets.token_bytes(32), bound_to.encode(), "sha256")


def new_link() -> str:
    """Return the path of a one-time link."""
    links: Links = current_app.extensions[EXTENSION]
    return url_for("dashboard.sign_in", code=links.make())


@api.route(Endpoint("POST", "/v1/dashboard/links", answer=LinkAnswer, status=201, needs=Access.HOME))
def make_link(call: Call) -> LinkAnswer:  # noqa: ARG001 - every handler takes a call
    """Make a one-time link that opens the dashboard."""
    return LinkAnswer(url=urljoin(request.host_url, new_link()), expires_in_s=LINK_LIFETIME_S)


def open_door() -> AnyResponse | None:
    """Let a signed-in browser pass, and what needs no sign-in; refuse all others with a page that says how."""
    if _sessions().is_valid(session.get("id")) and find_listener().is_local():
        # Whoever followed a link that was made with the home's token.
        g.caller = HOME_OWNER
        vouch_for(request.environ)
        return None
    if request.endpoint in ("dashboard.sign_in", "dashboard.static"):
        return None
    return refusal("This browser is not signed in.")


def sign_in() -> AnyResponse:
    """Turn a one-time code into a cookie."""
    links: Links = current_app.extensions[EXTENSION]
    if not links.redeem(request.args.get("code", "")):
        return refusal("This link was used already, or is too old.")
    _end_session()
    session.permanent = True
    session["id"] = _sessions().begin()
    session["csrf"] = secrets.token_urlsafe(32)
    return redirect(url_for("dashboard.home"), 303)


def sign_out() -> AnyResponse:
    """End this browser's session, here and there."""
    if is_forged(request.form.get("csrf", "")):
        abort(HTTPStatus.FORBIDDEN, "This form is too old; open the page again.")
    _end_session()
    return refusal("This browser is signed out.", 200)


def _sessions() -> Sessions:
    sessions: Sessions = current_app.extensions[SESSIONS]
    return sessions


def _end_session() -> None:
    if "id" in session:
        _sessions().end(session["id"])
    session.clear()


def refusal(reason: str, status: int = 401) -> Response:
    """Return the page that tells how to sign in."""
    page = Response(render("sign_in.html", reason=reason, home=container().settings.home), status, mimetype="text/html")
    if status == 401:
        page.headers["WWW-Authenticate"] = "Bearer"
    return page


def csrf_token() -> str:
    """Return what every form of this browser must bring along."""
    token: str = session.get("csrf", "")
    return token


def is_forged(given: str) -> bool:
    """Tell whether a change comes from elsewhere than a form of ours; one with the bearer token needs no form."""
    if g.get("bearer"):
        return False
    expected = csrf_token()
    return not expected or not hmac.compare_digest(expected.encode(), given.encode("utf-8", "surrogateescape"))


def _hash(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).digest()
