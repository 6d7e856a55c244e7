"""Routes of the sign-in with OpenID Connect: redirect to the provider, and return from it."""

from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from flask import abort, current_app, url_for
from werkzeug.wrappers import Response as AnyResponse

from pipeline.kernel.extras import require_extra
from web.dashboard.shared_sessions import Holder
from web.dashboard.sign_in import SignInFailed, begin_session, refusal
from web.http.endpoint import container

if TYPE_CHECKING:
    from web.dashboard.oidc import Provider

EXTENSION = "oidc_provider"


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
    if EXTENSION not in current_app.extensions:
        # Import on first use: few servers have a provider.
        require_extra("team")
        from web.dashboard.oidc import Provider

        current_app.extensions[EXTENSION] = Provider(current_app, settings)
    return cast("Provider", current_app.extensions[EXTENSION])
