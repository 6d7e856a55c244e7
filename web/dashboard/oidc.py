"""Signing in by OpenID Connect: the provider says who somebody is, and this home says whom it knows by that.

Authlib speaks the protocol: authorization code with PKCE, state and nonce, which wait in the browser's signed cookie.
What the protocol leaves to us stands here: the provider must call itself what the settings call it, tokens must be
signed with a key of its own, and an e-mail address counts once it is verified.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import OAuthError
from authlib.integrations.flask_client import OAuth
from flask import Flask, session
from joserfc.errors import JoseError
from requests import RequestException
from werkzeug.wrappers import Response as AnyResponse

from config.settings import Settings
from pipeline.services.people import normalize_email
from web.dashboard.provider_sign_in import SignInFailed

NAME = "reverie"
DISCOVERY = "/.well-known/openid-configuration"
# A provider that takes longer is none: a thread waits for it.
TIMEOUT_S = 5
# Signatures of keys that the provider alone has: neither none, nor by a secret that both know.
SIGNATURES = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
# Where Authlib keeps a sign-in that has begun.
STATE_PREFIX = f"_state_{NAME}_"


class Provider:
    """The provider that the settings name."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        self._issuer = settings.oidc_issuer
        self._client_id = settings.oidc_client_id
        self._client: Any = OAuth(app).register(
            NAME,
            client_id=settings.oidc_client_id,
            client_secret=settings.oidc_client_secret.reveal() or None,
            server_metadata_url=self._issuer.rstrip("/") + DISCOVERY,
            client_kwargs={
                "scope": "openid email profile",
                "code_challenge_method": "S256",
                "default_timeout": TIMEOUT_S,
                # A client without a secret is a public one, which PKCE alone protects.
                **({} if settings.oidc_client_secret.reveal() else {"token_endpoint_auth_method": "none"}),
            },
        )

    def begin(self, callback: str) -> AnyResponse:
        """Send a browser to the provider; raise SignInFailed where it cannot be asked."""
        # One at a time: a cookie has room for little.
        for known in [name for name in session if name.startswith(STATE_PREFIX)]:
            del session[known]
        with self._typed_errors():
            self._discover()
            redirected: AnyResponse = self._client.authorize_redirect(callback)
            return redirected

    def finish(self) -> list[str]:
        """Return what a browser that came back is known by, the e-mail address first; raise SignInFailed."""
        with self._typed_errors():
            self._discover()
            told = self._client.authorize_access_token(
                claims_options={
                    "iss": {"essential": True, "value": self._issuer},
                    "aud": {"essential": True, "value": self._client_id},
                }
            )
        # Without an ID token the provider has not said who that is.
        if not (claims := told.get("userinfo")):
            raise SignInFailed(
                "The provider sent no ID token. Check that the client may request the scope openid", is_fault=True
            )
        is_verified = claims.get("email_verified") in (True, "true")
        found = [claims.get("email") if is_verified else None, claims["sub"]]
        return [normalize_email(one) for one in found if isinstance(one, str) and one]

    def _discover(self) -> None:
        """Read what the provider says of itself, once; raise SignInFailed where it is another one."""
        metadata = self._client.load_server_metadata()
        if metadata.get("issuer") != self._issuer:
            raise SignInFailed(
                f"The provider does not identify itself as {self._issuer}. Set oidc_issuer to the issuer in its metadata",
                is_fault=True,
            )
        offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
        known = sorted(SIGNATURES.intersection(offered))
        if not known:
            raise SignInFailed(
                "The provider offers no supported signature algorithm. Configure it to sign ID tokens with RS256 or ES256",
                is_fault=True,
            )
        metadata["id_token_signing_alg_values_supported"] = known

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except OAuthError as error:
            # The state is not this browser's, somebody said no at the provider, or the code is worth nothing.
            raise SignInFailed(f"The provider rejected the sign-in ({error.error})") from error
        except JoseError as error:
            raise SignInFailed(f"The provider's ID token is not valid ({error.error})") from error
        except RequestException as error:
            raise SignInFailed(
                f"Cannot reach the provider ({type(error).__name__}). Try again later", is_fault=True
            ) from error
        except (AuthlibBaseError, ValueError, KeyError, TypeError, RuntimeError) as error:
            # What it sent is not what the protocol says.
            raise SignInFailed(
                f"The provider's response is not valid OpenID Connect ({type(error).__name__}). Check oidc_issuer",
                is_fault=True,
            ) from error
