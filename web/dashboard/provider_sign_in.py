"""The pages of a sign-in by OpenID Connect: to the provider, and back as a person whom this home knows."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from flask import abort, current_app, url_for
from werkzeug.wrappers import Response as AnyResponse

from pipeline.errors import ReverieError
from web.dashboard.holder import Holder
from web.dashboard.sign_in import begin_session, refusal
from web.endpoint import container

if TYPE_CHECKING:
    from web.dashboard.oidc import Provider

EXTENSION = "oidc_provider"


class SignInFailed(ReverieError):
    """Say why the provider signed nobody in; `is_fault` where that is the provider's or the settings' doing."""

    def __init__(self, message: str, *, is_fault: bool = False) -> None:
        super().__init__(message)
        self.is_fault = is_fault


def begin_provider_sign_in() -> AnyResponse:
    """Lead a browser to the provider."""
    provider = _find_provider()
    try:
        return provider.begin(url_for("dashboard.end_provider_sign_in", _external=True))
    except SignInFailed as error:
        return _show_failure(error)


def end_provider_sign_in() -> AnyResponse:
    """Sign a browser in that comes back from the provider, as whom this home knows by what the provider says."""
    provider = _find_provider()
    try:
        known_by = provider.finish()
    except SignInFailed as error:
        return _show_failure(error)
    people = container().people
    for name in known_by:
        person = people.find_by_email(name)
        if person is not None:
            return begin_session(Holder(person.id))
    return refusal(
        "You have no account on this server.",
        HTTPStatus.FORBIDDEN,
        advice=f"The provider identifies you as {known_by[0]}. Ask the administrator of this server to add you: "
        f"reverie user add NAME --email {known_by[0]}",
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
        # Loaded by the first who asks: few homes have a provider.
        from web.dashboard.oidc import Provider

        current_app.extensions[EXTENSION] = Provider(current_app, settings)
    found: Provider = current_app.extensions[EXTENSION]
    return found
