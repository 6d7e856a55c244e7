"""A provider of OpenID Connect that says whatever a test wants it to, also what none may say."""

import contextlib
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from functools import cache
from typing import Any

from flask import Flask, jsonify, request
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from werkzeug.serving import make_server

CLIENT_ID, CLIENT_SECRET = "reverie", "a secret that both know"


def _encode(part: dict[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


@cache
def _make_key() -> RSAKey:
    """Return one key for all providers: making one takes longer than most tests."""
    return RSAKey.generate_key(2048, parameters={"kid": "one"})


class LyingProvider:
    """Answer as a provider does; `claims`, `header`, `key` and `metadata` are what it says beside or instead."""

    def __init__(self, port: int = 0) -> None:
        self.key = _make_key()
        self.known_keys = [self.key]
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "one"}
        self.claims: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.nonce = ""
        self.id_token: str | None = None
        self.has_id_token = True
        self.asked: list[dict[str, str]] = []
        self._server = make_server("127.0.0.1", port, self._app(), threaded=True)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"

    @contextlib.contextmanager
    def running(self) -> Iterator["LyingProvider"]:
        """Serve during a block."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def sign(self) -> str:
        """Return an ID token."""
        now = int(time.time())
        told = {"iss": self.issuer, "sub": "subject-1", "aud": CLIENT_ID, "iat": now, "exp": now + 300}
        told |= {"nonce": self.nonce, "email": "ada@example.com", "email_verified": True, **self.claims}
        if self.header["alg"] == "none":
            return ".".join([_encode(self.header), _encode(told), ""])
        return jwt.encode(self.header, told, self.key, algorithms=[self.header["alg"]])

    def _app(self) -> Flask:
        app = Flask("provider")

        @app.get("/.well-known/openid-configuration")
        def describe() -> Any:
            return jsonify(
                {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/keys",
                    "id_token_signing_alg_values_supported": ["RS256"],
                    **self.metadata,
                }
            )

        @app.get("/keys")
        def keys() -> Any:
            return jsonify(KeySet(self.known_keys).as_dict(private=False))

        @app.post("/token")
        def token() -> Any:
            self.asked.append(request.form.to_dict())
            told = {"access_token": "opaque", "token_type": "Bearer", "expires_in": 300}
            return jsonify({**told, "id_token": self.id_token or self.sign()} if self.has_id_token else told)

        return app
