"""The full app."""

from functools import cache
from typing import Any

from flask import Flask, Response

from pipeline.bootstrap.web import WebContainer
from pipeline.kernel.registry import arrange, features, load
from web.dashboard import blueprint, sign_in
from web.features.maintenance import http as operations
from web.features.prompt import hook_runs, http as prepare
from web.features.sessions import history, http as sessions
from web.http.endpoint import Api, json_response
from web.http.hook_app import HOOK_APIS
from web.http.lazy_app import FIRST_APIS, enter_apis, prepare_app
from web.http.metrics import Metrics
from web.http.openapi import document
from web.mcp import route as mcp

_OWN_APIS = (
    *FIRST_APIS,
    *HOOK_APIS,
    prepare.api,
    sessions.incognito_api,
    history.api,
    sessions.journal_api,
    sessions.session_import_api,
    sessions.api,
    hook_runs.api,
    operations.api,
    sign_in.api,
    mcp.api,
)
_MODULES = load(module for feature in features() for module in feature.endpoints)
APIS = tuple(arrange(_OWN_APIS, (api for module in _MODULES for api in vars(module).values() if isinstance(api, Api))))


def create_app(container: WebContainer, metrics: Metrics | None = None) -> Flask:
    """Build the WSGI app over a web server's services."""
    app = prepare_app(container, metrics or Metrics(container), {"dashboard": sign_in.open_door})
    settings = container.settings
    sign_in.register_sessions(app, lambda: container.token, settings)
    if container.stores.values is not None:
        sign_in.share_sessions(app, container.stores.values)
    enter_apis(app, APIS)
    mcp.register_servers(app, APIS)
    app.register_blueprint(blueprint.dashboard())

    # Created on demand: the schemas of all models take longer than everything else here.
    @cache
    def describe() -> Any:
        return document(endpoint for api in APIS for endpoint in api.endpoints)

    @app.get("/openapi.json")
    def openapi() -> Response:
        return json_response(describe())

    return app
