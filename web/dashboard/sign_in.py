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
from functools import partial
from http import HTTPStatus
from pathlib import Path
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

from config.paths import FileState, file_state
from config.settings import Settings
from pipeline.records.people import HOME_OWNER, Caller
from pipeline.services.people import People
from pipeline.services.shared import HomeValues, read_secret
from pipeline.times import utc_now
from web.access import Access, may_enter
from web.api.answers import Answer
from web.connections import vouch_for
from web.dashboard.holder import Holder
from web.dashboard.shared_sessions import SharedLinks, SharedSessions
from web.endpoint import Api, Call, Endpoint, container
from web.hosts.files import PRIVATE, write_atomically
from web.listener import find_listener

LINK_LIFETIME_S = 120
SESSION_LIFETIME = timedelta(days=30)
# Whoever may make links holds the token; more than this are only forgotten tabs.
MOST_LINKS = 16
# The oldest end where more browsers than these are signed in.
MOST_SESSIONS = 256
# What a browser may ask that is not signed in.
OPEN = frozenset(
    {"dashboard.sign_in", "dashboard.static", "dashboard.begin_provider_sign_in", "dashboard.end_provider_sign_in"}
)
# Of a team's.
MOST_SHARED = 4096
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
        self._made: dict[bytes, tuple[float, Holder]] = {}

    def make(self, holder: Holder) -> str:
        """Return a new code for somebody."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_expired()
            while len(self._made) >= MOST_LINKS:
                del self._made[next(iter(self._made))]
            self._made[_hash(code)] = self._now() + LINK_LIFETIME_S, holder
        return code

    def redeem(self, code: str) -> Holder | None:
        """Use a code up; return whom it is for, None where it is worth nothing."""
        with self._lock:
            self._drop_expired()
            found = self._made.pop(_hash(code), None)
            return None if found is None else found[1]

    def _drop_expired(self) -> None:
        for known in [known for known, (until, _) in self._made.items() if until <= self._now()]:
            del self._made[known]


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
            log.warning("cannot read %s, so all browsers are signed out: %s", self._file, error)
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


class SharedTokenSessions(TokenSessions):
    """Sign cookies with what every web server of the home knows, which is read when the first browser comes."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the session that a cookie holds; whoever brings none waits for no store."""
        return super().open_session(app, request) if "Cookie" in request.headers else self.session_class()

    def _follow_token(self, app: Flask) -> None:
        # It never changes.
        if not self._signed_for:
            super()._follow_token(app)


def register_sessions(app: Flask, token: Callable[[], str], settings: Settings) -> None:
    """Let the app sign its cookies; a port has its own, since browsers send a host's cookies to every port."""
    app.session_interface = TokenSessions(token)
    app.extensions[SESSIONS] = Sessions(settings.paths.sessions)
    app.config.update(
        SESSION_COOKIE_NAME=f"reverie-{settings.port}",
        SESSION_COOKIE_HTTPONLY=True,
        # Who comes back from a provider comes from another site.
        SESSION_COOKIE_SAMESITE="Lax" if settings.oidc_issuer else "Strict",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=SESSION_LIFETIME,
    )
    sign_sessions_with(app, token())


def share_sessions(app: Flask, values: HomeValues) -> None:
    """Let every web server of the home know who is signed in: by one secret, under one name, with one list."""
    app.session_interface = SharedTokenSessions(partial(read_secret, values, "browsers"))
    app.config.update(SESSION_COOKIE_NAME="reverie")
    app.extensions[SESSIONS] = SharedSessions(values, SESSION_LIFETIME.total_seconds(), MOST_SHARED)
    app.extensions[EXTENSION] = SharedLinks(values, LINK_LIFETIME_S)


def sign_sessions_with(app: Flask, token: str) -> None:
    """Bind every cookie and link to a token and every cookie to its name: with another one nobody is signed in."""
    if not isinstance(app.extensions.get(EXTENSION), SharedLinks):
        app.extensions[EXTENSION] = Links()
    bound_to = f"dashboard sessions {app.config['SESSION_COOKIE_NAME']}"
    # Without a token nobody can sign in; a key that anybody could compute would let everybody.
    app.secret_key = hmac.digest(token.encode() or secrets.token_bytes(32), bound_to.encode(), "sha256")


def new_link() -> str:
    """Return the path of a one-time link, for whose token this request holds."""
    links: Links | SharedLinks = current_app.extensions[EXTENSION]
    return url_for("dashboard.sign_in", code=links.make(Holder(g.caller.person_id, g.caller.token_id)))


@api.route(Endpoint("POST", "/v1/dashboard/links", answer=LinkAnswer, status=201, needs=Access.ANYBODY))
def make_link(call: Call) -> LinkAnswer:  # noqa: ARG001 - every handler takes a call
    """Make a one-time link that opens the dashboard."""
    return LinkAnswer(url=urljoin(request.host_url, new_link()), expires_in_s=LINK_LIFETIME_S)


def open_door() -> AnyResponse | None:
    """Let a signed-in browser pass, and what needs no sign-in; refuse all others with a page that says how."""
    caller = _find_signed_in()
    if caller is not None:
        g.caller = caller
        vouch_for(request.environ)
        return None
    if request.endpoint in OPEN:
        return None
    return refusal("This browser is not signed in.")


def _find_signed_in() -> Caller | None:
    """Return whom this browser is signed in as."""
    if not _sessions().is_valid(session.get("id")):
        return None
    person_id = session.get("person")
    if person_id is None:
        # Whoever followed a link that was made with the home's token, which counts on this machine alone.
        return HOME_OWNER if find_listener().is_local() else None
    return _find_person(container().people, Holder(person_id, session.get("token")), session["at"])


def _find_person(people: People, holder: Holder, since: str) -> Caller | None:
    """Return who was signed in at a moment, None where they, or the token that they came by, were sent away since."""
    assert holder.person_id is not None
    found = people.find_signed_in(holder.person_id, since)
    if found is None or holder.token_id is None:
        return found
    return people.find_holder(holder.token_id, utc_now())


def watch_caller(workspace_id: str) -> Callable[[], bool]:
    """Return what tells whether this request would still be let in: an answer may outlive its token or session."""
    services, caller, sessions = container(), g.caller, _sessions()
    token, name, since = services.token, session.get("id"), session.get("at", "")
    is_bearer = bool(g.get("bearer"))

    def is_let_in() -> bool:
        if not is_bearer and not sessions.is_valid(name):
            return False
        if caller.person is None:
            return services.token == token
        if is_bearer:
            found = services.people.find_holder(caller.token_id or "", utc_now())
        else:
            found = _find_person(services.people, Holder(caller.person_id, caller.token_id), since)
        return found is not None and may_enter(found, workspace_id, services.people)

    return is_let_in


def sign_in() -> AnyResponse:
    """Turn a one-time code into a cookie."""
    links: Links | SharedLinks = current_app.extensions[EXTENSION]
    holder = links.redeem(request.args.get("code", ""))
    if holder is None:
        return refusal("This link has expired or was already used.")
    return begin_session(holder)


def begin_session(holder: Holder) -> AnyResponse:
    """Sign this browser in, and lead it to the dashboard."""
    _end_session()
    session.permanent = True
    session["id"] = _sessions().begin()
    session["csrf"] = secrets.token_urlsafe(32)
    if holder.person_id is not None:
        session.update(person=holder.person_id, token=holder.token_id, at=utc_now())
    return redirect(url_for("dashboard.home"), 303)


def sign_out() -> AnyResponse:
    """End this browser's session, here and there."""
    if is_forged(request.form.get("csrf", "")):
        abort(HTTPStatus.FORBIDDEN, "This form has expired. Reload the page and try again.")
    _end_session()
    return refusal("This browser is signed out.", 200)


def _sessions() -> Sessions | SharedSessions:
    sessions: Sessions | SharedSessions = current_app.extensions[SESSIONS]
    return sessions


def _end_session() -> None:
    if "id" in session:
        _sessions().end(session["id"])
    session.clear()


def refusal(reason: str, status: int = 401, *, advice: str = "") -> Response:
    """Return the page that tells how to sign in, or what else helps."""
    settings = container().settings
    values = {"reason": reason, "home": settings.home, "provider": urlsplit(settings.oidc_issuer).netloc}
    page = Response(render("sign_in.html", **values, advice=advice), status, mimetype="text/html")
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
