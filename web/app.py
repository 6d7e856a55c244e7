"""The app factory."""

from functools import cache
from typing import Any

from flask import Flask, Response

from pipeline.bootstrap.web import WebContainer
from web.api import (
    facts,
    goals,
    graph,
    incognito,
    lessons,
    memories,
    operations,
    prepare,
    recall,
    review,
    sources,
)
from web.dashboard import blueprint, sign_in
from web.endpoint import json_response
from web.hooks import claude_code
from web.metrics import register_metrics
from web.openapi import document
from web.problems import register_problems
from web.security import register_security

MAX_BODY_BYTES = 8 * 1024 * 1024

APIS = (
    memories.api,
    recall.api,
    prepare.api,
    facts.api,
    goals.api,
    lessons.api,
    review.api,
    incognito.api,
    sources.api,
    graph.api,
    operations.api,
    sign_in.api,
    claude_code.api,
)


def create_app(container: WebContainer) -> Flask:
    """Build the WSGI app over a web server's services."""
    app = Flask("reverie", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.extensions["container"] = container
    register_metrics(app, container)
    settings = container.settings
    sign_in.register_sessions(app, lambda: container.token, settings.port, settings.paths.sessions)
    register_security(app, lambda: container.token, settings.host, {"dashboard": sign_in.open_door})
    register_problems(app)
    for api in APIS:
        app.register_blueprint(api.blueprint)
    app.register_blueprint(blueprint.dashboard())

    # Made when it is asked for: the schemas of all models take longer than everything else here.
    @cache
    def describe() -> Any:
        return document(endpoint for api in APIS for endpoint in api.endpoints)

    @app.get("/openapi.json")
    def openapi() -> Response:
        return json_response(describe())

    return app
