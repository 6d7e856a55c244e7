"""The dashboard blueprint: sections, navigation, error pages, headers, and the sign-in with OpenID Connect."""

import hashlib
import logging
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from flask import Blueprint, Response, abort, current_app, g, redirect, request, session, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

from pipeline.kernel.errors import InvalidField, LimitReached, NotFound, ReverieError
from pipeline.kernel.extras import require_extra
from pipeline.kernel.http.problems import STATUS_OF_ERROR
from pipeline.kernel.records.people import Role
from pipeline.kernel.registry import arrange, features, load
from web.dashboard.filters import FILTERS, zone_name
from web.dashboard.shared_sessions import Holder
from web.dashboard.sign_in import SignInFailed, begin_session, csrf_token, refusal, sign_in, sign_out
from web.dashboard.view import Link, Section, error_page, undos
from web.features.changes import page as timeline
from web.features.configuration import page as settings
from web.features.maintenance import page as administration
from web.features.memories import page as memory
from web.features.prompt import page as agents
from web.features.recall import page as recall
from web.features.today import page as overview
from web.http.access import may_enter
from web.http.endpoint import container

if TYPE_CHECKING:
    from web.dashboard.oidc import Provider

log = logging.getLogger(__name__)

# The pages that belong to no feature. Those with a link are in the order of the navigation.
_OWN_SECTIONS: tuple[Section, ...] = (
    overview.section,
    timeline.section,
    recall.section,
    agents.sessions_section,
    agents.hooks_section,
    administration.workers_section,
    administration.sync_section,
    settings.section,
    administration.access_section,
    administration.claims_section,
    memory.section,
)
_MODULES = load(module for feature in features() for module in feature.pages)
_OF_FEATURES = [section for module in _MODULES for section in vars(module).values() if isinstance(section, Section)]
_LINKS = arrange(*([section.link for section in part if section.link] for part in (_OWN_SECTIONS, _OF_FEATURES)))
NAVIGATION = tuple(link for link in _LINKS if not link.with_people)

# Scripts, styles and images are local files; inline code and other origins are forbidden.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # `no-referrer` would make browsers send `Origin: null` with the forms of the dashboard.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def dashboard() -> Blueprint:
    """Return the blueprint with all pages."""
    blueprint = Blueprint(
        "dashboard", __name__, template_folder="templates", static_folder="static", static_url_path="/assets"
    )
    blueprint.url_value_preprocessor(_note_workspace)
    blueprint.url_defaults(_stay_in_workspace)
    blueprint.after_request(_add_headers)
    blueprint.register_error_handler(ReverieError, _show_error)
    blueprint.register_error_handler(HTTPException, _show_http_error)
    blueprint.register_error_handler(Exception, _show_unexpected_error)
    blueprint.app_context_processor(_layout_values)
    blueprint.add_url_rule("/", "home", home)
    blueprint.add_url_rule("/sign-in", "sign_in", sign_in)
    blueprint.add_url_rule("/sign-in/provider", "begin_provider_sign_in", begin_provider_sign_in)
    blueprint.add_url_rule("/sign-in/done", "end_provider_sign_in", end_provider_sign_in)
    blueprint.add_url_rule("/sign-out", "sign_out", sign_out, methods=["POST"])
    for section in (*_OWN_SECTIONS, *_OF_FEATURES):
        section.enter(blueprint)
    # Flask's redirect to the trailing slash belongs to no blueprint and would require the bearer token.
    blueprint.add_url_rule("/w/<workspace>", "workspace", workspace_home)
    # Otherwise a mistyped address would return the error for a missing token.
    blueprint.add_url_rule("/w/<workspace>/<path:rest>", "no_such_page", no_such_page)
    blueprint.record_once(lambda state: state.app.jinja_env.filters.update(FILTERS))
    return blueprint


def home() -> AnyResponse:
    """Show the overview of the last viewed workspace, else of the last changed workspace."""
    g.workspace = _usual_workspace()
    answer = current_app.view_functions["dashboard.overview_home"](workspace=g.workspace)
    assert isinstance(answer, AnyResponse)
    return answer


def workspace_home(workspace: str) -> AnyResponse:
    """Redirect to the overview of a workspace."""
    return redirect(url_for("dashboard.overview_home", workspace=workspace), 303)


def no_such_page(**_path: str) -> AnyResponse:
    """Raise NotFound for an unknown page."""
    raise NotFound("There is no such page. Check the address.")


def _usual_workspace() -> str:
    usual, known = container().settings.workspace, _list_workspaces()
    for name in (session.get("workspace"), usual):
        if name in known:
            return str(name)
    # Choose the workspace with the latest change.
    states = container().databases.states()
    return max(known, key=lambda name: max(changed for _, changed, _ in states[name]), default=usual)


def _list_workspaces() -> list[str]:
    """List the workspaces that the caller may read."""
    return [name for name in container().databases.ids() if may_enter(g.caller, name, container().people)]


def _note_workspace(_endpoint: str | None, values: dict[str, Any] | None) -> None:
    g.workspace = (values or {}).get("workspace")


def _stay_in_workspace(endpoint: str, values: dict[str, Any]) -> None:
    if g.get("workspace") and current_app.url_map.is_endpoint_expecting(endpoint, "workspace"):
        values.setdefault("workspace", g.workspace)


def _add_headers(response: Response) -> Response:
    response.headers.update(HEADERS)
    if request.endpoint == "dashboard.static":
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    else:
        response.headers["Cache-Control"] = "no-store"
    return response


def _layout_values() -> dict[str, Any]:
    return {
        "navigation": _navigation(),
        "workspaces": _list_workspaces,
        "csrf_token": csrf_token,
        "asset": _asset,
        "here": _here,
        "undo_fields": undos().peek,
        "zone_name": zone_name,
    }


def _navigation() -> Sequence[Link]:
    is_owner = g.get("workspace") and g.caller.may(g.workspace, Role.OWNER)
    return _LINKS if is_owner and container().people.exists else NAVIGATION


def _here() -> str:
    """Return the list endpoint of the current page, which exists in every workspace."""
    section = (request.endpoint or "").removeprefix("dashboard.").partition("_")[0]
    lists = {entry.endpoint.partition("_")[0]: entry.endpoint for entry in _LINKS}
    return f"dashboard.{lists.get(section, 'overview_home')}"


@lru_cache(maxsize=64)
def _asset(name: str) -> str:
    """Return the address of a static file; it contains a hash, so that browsers can cache it permanently."""
    content = (Path(__file__).with_name("static") / name).read_bytes()
    return url_for("dashboard.static", filename=name, v=hashlib.sha256(content).hexdigest()[:8])


def _show_error(error: ReverieError) -> Response:
    status = next((code for kind, code in STATUS_OF_ERROR if isinstance(error, kind)), None)
    if status is None:
        raise error
    message = "; ".join(f"{e.loc}: {e.msg}" for e in error.errors) if isinstance(error, InvalidField) else str(error)
    page = error_page(status, message)
    if isinstance(error, LimitReached):
        page.headers["Retry-After"] = str(error.retry_after_s)
    return page


def _show_http_error(error: HTTPException) -> Response:
    return error_page(error.code or HTTPStatus.INTERNAL_SERVER_ERROR, error.description or "")


def _show_unexpected_error(error: Exception) -> Response:
    log.error("unexpected error", exc_info=error)
    container().operations.record_error("dashboard", f"{type(error).__name__}: {error}")
    return error_page(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "An unexpected error occurred. See the list of errors on the Workers page or run `reverie logs errors`.",
    )


PROVIDER = "oidc_provider"


def begin_provider_sign_in() -> AnyResponse:
    """Redirect a browser to the provider."""
    provider = _find_provider()
    try:
        return provider.begin(url_for("dashboard.end_provider_sign_in", _external=True))
    except SignInFailed as error:
        return _show_failure(error)


def end_provider_sign_in() -> AnyResponse:
    """Sign in a browser that returns from the provider, if its user is registered here."""
    provider = _find_provider()
    try:
        user = provider.finish()
    except SignInFailed as error:
        return _show_failure(error)
    person = user.find_person(container().people)
    if person is not None:
        return begin_session(Holder(person.id))
    option, name = ("--email", user.email) if user.email else ("--subject", user.subject)
    return refusal(
        "You have no account on this server.",
        HTTPStatus.FORBIDDEN,
        advice=f"The provider identifies you as {name}. Ask the administrator of this server to add you: "
        f"reverie user add NAME {option} {name}",
    )


def _show_failure(error: SignInFailed) -> AnyResponse:
    if not error.is_fault:
        return refusal("Sign-in failed.", advice=f"{error}. Try again on this page.")
    container().operations.record_error("sign-in", str(error))
    return refusal("Sign-in is not available.", HTTPStatus.BAD_GATEWAY, advice=f"{error}.")


def _find_provider() -> "Provider":
    settings = container().settings
    if not settings.oidc_issuer:
        abort(
            HTTPStatus.NOT_FOUND,
            "This server has no sign-in provider. Set oidc_issuer, or run `reverie dashboard` to sign in.",
        )
    if PROVIDER not in current_app.extensions:
        # Import on first use: few servers have a provider.
        require_extra("team")
        from web.dashboard.oidc import Provider

        current_app.extensions[PROVIDER] = Provider(current_app, settings)
    return cast("Provider", current_app.extensions[PROVIDER])
