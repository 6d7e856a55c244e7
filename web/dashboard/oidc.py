"""Sign-in with OpenID Connect: the provider identifies a user, who must be registered on this server.

Authlib implements the protocol: authorization code with PKCE, state and nonce, stored in the signed cookie. This module
adds three checks: the issuer must match the settings, ID tokens must be signed with the provider's private key, and an
e-mail address must be verified. A subject is compared with subjects of the same issuer only, never with addresses.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import OAuthError
from authlib.integrations.flask_client import OAuth
from flask import Flask, session
from joserfc.errors import JoseError
from requests import RequestException
from werkzeug.wrappers import Response as AnyResponse

from config.settings import Settings
from pipeline.features.people.usecases import is_address, normalize_email
from pipeline.kernel.records.people import Person
from pipeline.kernel.store.people import People
from web.dashboard.sign_in import SignInFailed

NAME = "reverie"
DISCOVERY = "/.well-known/openid-configuration"
# A server thread waits for the provider, so slow providers are treated as unreachable.
TIMEOUT_S = 5
# Asymmetric algorithms only: neither unsigned tokens nor tokens signed with the shared client secret.
SIGNATURES = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
# Session key prefix under which Authlib stores a started sign-in.
STATE_PREFIX = f"_state_{NAME}_"


@dataclass(frozen=True, slots=True)
class ProviderUser:
    """A user as the provider identifies them; `email` is None unless the provider verified it."""

    email: str | None
    issuer: str
    subject: str

    def find_person(self, people: People) -> Person | None:
        """Return the person of this server with the user's address or subject."""
        person = None if self.email is None else people.find_by_email(self.email)
        if person is None and self.subject:
            person = people.find_by_subject(self.issuer, self.subject)
        return person


class Provider:
    """The OpenID Connect provider in the settings."""

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
                # A client without a secret is public; only PKCE protects it.
                **({} if settings.oidc_client_secret.reveal() else {"token_endpoint_auth_method": "none"}),
            },
        )

    def begin(self, callback: str) -> AnyResponse:
        """Redirect a browser to the provider; raise SignInFailed if the provider is unreachable."""
        # Keep one started sign-in only: a cookie has little room.
        for known in [name for name in session if name.startswith(STATE_PREFIX)]:
            del session[known]
        with self._typed_errors():
            self._discover()
            return cast(AnyResponse, self._client.authorize_redirect(callback))

    def finish(self) -> ProviderUser:
        """Return the signed-in user; raise SignInFailed."""
        with self._typed_errors():
            self._discover()
            response = self._client.authorize_access_token(
                claims_options={
                    "iss": {"essential": True, "value": self._issuer},
                    "aud": {"essential": True, "value": self._client_id},
                }
            )
        # Only the ID token identifies the user.
        if not (claims := response.get("userinfo")):
            raise SignInFailed(
                "The provider sent no ID token. Check that the client may request the scope openid", is_fault=True
            )
        is_verified = claims.get("email_verified") in (True, "true")
        address, subject = (str(claims.get(name) or "").strip() for name in ("email", "sub"))
        email = normalize_email(address) if is_verified and is_address(address) else None
        return ProviderUser(email, self._issuer, subject)

    def _discover(self) -> None:
        """Load the provider metadata once; raise SignInFailed if it names another issuer."""
        metadata = self._client.load_server_metadata()
        if metadata.get("issuer") != self._issuer:
            raise SignInFailed(
                f"The provider has another issuer than {self._issuer}. Set oidc_issuer to the issuer in its metadata",
                is_fault=True,
            )
        offered = metadata.get("id_token_signing_alg_values_supported", ["RS256"])
        known = sorted(SIGNATURES.intersection(offered))
        if not known:
            raise SignInFailed(
                "The provider offers no supported signature algorithm. Let it sign ID tokens with RS256 or ES256",
                is_fault=True,
            )
        metadata["id_token_signing_alg_values_supported"] = known

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except OAuthError as error:
            # The state belongs to another browser, the user declined, or the code is invalid.
            raise SignInFailed(f"The provider rejected the sign-in ({error.error})") from error
        except JoseError as error:
            raise SignInFailed(f"The provider's ID token is not valid ({error.error})") from error
        except RequestException as error:
            raise SignInFailed(
                f"Cannot reach the provider ({type(error).__name__}). Try again later", is_fault=True
            ) from error
        except (AuthlibBaseError, ValueError, KeyError, TypeError, RuntimeError) as error:
            # The response does not follow the protocol.
            raise SignInFailed(
                f"The provider's response is not valid OpenID Connect ({type(error).__name__}). Check oidc_issuer",
                is_fault=True,
            ) from error
