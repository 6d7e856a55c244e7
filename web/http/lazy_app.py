"""The app during the start: a small app with the routes that are used first, then the app of hooks, then the full app.

Importing the full app takes as long as everything that recall needs. It is loaded after that, or at the first request
for one of its routes. The app of hooks is loaded as soon as the server listens, so that a hook does not wait for the
full app.
"""

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from flask import Flask, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from pipeline.bootstrap.web import WebContainer
from pipeline.features.people.usecases import find_caller
from web.features.diagnostics import http as health
from web.features.memories import http as memories
from web.features.recall import http as recall
from web.http.access_log import register_access_log
from web.http.connections import is_too_large
from web.http.endpoint import Api
from web.http.limits import register_limits
from web.http.listener import Listener
from web.http.metrics import Metrics, register_metrics
from web.http.problems import register_problems, register_request_ids
from web.http.security import Door, register_security

MAX_BODY_BYTES = 8 * 1024 * 1024

FIRST_APIS = (health.api, memories.api, recall.api)
HOOK_ROUTES = "/hooks/"

CreateApp = Callable[[Metrics], Flask]


class _SyncApp(Flask):
    """An app without coroutines: Flask otherwise inspects each function that it calls for a request."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function unchanged."""
        return func


def prepare_app(container: WebContainer, metrics: Metrics, doors: dict[str, Door] | None = None) -> Flask:
    """Return an app without routes, with metrics, access checks, limits, access log and error handling."""
    app = _SyncApp("reverie", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.extensions["container"] = container
    register_request_ids(app)
    register_metrics(app, container, metrics)
    register_security(
        app,
        lambda: container.token,
        Listener.of(container.settings),
        doors or {},
        partial(_note_refusal, container),
        container.restore_token,
        partial(_is_member, container),
        partial(find_caller, container.people, container.operations),
    )
    app.before_request(_refuse_large_body)
    register_limits(app, container.settings, partial(container.operations.record_error, "limits"))
    register_access_log(app, container.access_log)
    register_problems(app)
    return app


def _refuse_large_body() -> None:
    # After the check of the token: a request without a token gets that error instead.
    if is_too_large(request.environ):
        says = f"The body is too large. Send at most {MAX_BODY_BYTES} bytes, for example as several batches."
        raise RequestEntityTooLarge(says)


def _is_member(container: WebContainer, shown: str, path: str) -> bool:
    # Rarely needed, so loaded on demand. A device with an old key may ask for the new one.
    return container.sync.is_member(shown, of_old=path == "/v1/devices")


def _note_refusal(container: WebContainer, route: str) -> None:
    # Hosts do not show such errors to their user, and the agent works without memory.
    if route.startswith("/hooks/"):
        says = (
            f"A hook event at {route} was rejected: its token is neither the token of this data directory nor a valid"
            " token of a person. Update the hooks with `reverie setup`."
        )
        container.operations.record_error("hooks", says)


def enter_apis(app: Flask, apis: Iterable[Api]) -> None:
    """Register the routes of APIs with an app."""
    for api in apis:
        app.register_blueprint(api.blueprint)


class _Stage:
    """An app that is created once, at the first use or before."""

    def __init__(self, create: Callable[[], Flask]) -> None:
        self._create = create
        self._lock = threading.Lock()
        self.app: Flask | None = None

    def load(self) -> Flask:
        """Return the app; threads that need it at the same time wait for the first of them to create it."""
        with self._lock:
            if self.app is None:
                self.app = self._create()
            return self.app


class LazyApp:
    """Answer with the smallest app that has the route, or with the full app as soon as it is loaded."""

    def __init__(self, container: WebContainer, create_hooks: CreateApp, create_whole: CreateApp) -> None:
        metrics = Metrics(container)
        self._first = prepare_app(container, metrics)
        enter_apis(self._first, FIRST_APIS)
        self._hooks = _Stage(partial(create_hooks, metrics))
        self._whole = _Stage(partial(create_whole, metrics))

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request."""
        app = self._whole.app or self._find_app(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return app(environ, start_response)

    def load_hooks(self) -> Flask:
        """Load the app of hooks once."""
        return self._hooks.load()

    def load_rest(self) -> Flask:
        """Load the full app once."""
        # A hook that comes during this then waits for the smaller app only.
        self.load_hooks()
        return self._whole.load()

    def _find_app(self, method: str, path: str) -> Flask:
        if _has_route(self._first, method, path):
            return self._first
        if path.startswith(HOOK_ROUTES):
            hooks = self.load_hooks()
            if _has_route(hooks, method, path):
                return hooks
        return self.load_rest()


def _has_route(app: Flask, method: str, path: str) -> bool:
    try:
        app.url_map.bind("").match(path, method)
    except HTTPException:
        return False
    return True
