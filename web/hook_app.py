"""The app of hooks, loaded as soon as the server listens."""

from flask import Flask

from pipeline.bootstrap.web import WebContainer
from web.hooks import antigravity, claude_code, cline, codex, copilot, cursor, gemini, opencode, pi, qwen_code
from web.lazy_app import enter_apis, prepare_app
from web.metrics import Metrics

_MODULES = (antigravity, claude_code, cline, codex, copilot, cursor, gemini, opencode, pi, qwen_code)
HOOK_APIS = tuple(module.api for module in _MODULES)


def create_hook_app(container: WebContainer, metrics: Metrics) -> Flask:
    """Build the app of hooks, with the services that they use: a prompt's hook has little time."""
    container.load_agents()
    app = prepare_app(container, metrics)
    enter_apis(app, HOOK_APIS)
    return app
