"""The app of hooks, loaded as soon as the server listens."""

from flask import Flask

from pipeline.bootstrap.web import WebContainer
from web.hooks import claude_code, other_hosts
from web.http.lazy_app import enter_apis, prepare_app
from web.http.metrics import Metrics

HOOK_APIS = (claude_code.api, other_hosts.api)


def create_hook_app(container: WebContainer, metrics: Metrics) -> Flask:
    """Build the app of hooks, with the services that they use: a prompt's hook has little time."""
    container.load_agents()
    app = prepare_app(container, metrics)
    enter_apis(app, HOOK_APIS)
    return app
