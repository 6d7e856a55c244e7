"""The health of the server."""

import time
from enum import StrEnum
from typing import Annotated, Literal

from flask import request
from pydantic import Field, PlainSerializer

from pipeline.bootstrap.web import WebContainer
from web.http.access import Right
from web.http.answers import Answer
from web.http.bodies import QueryString
from web.http.call import Call
from web.http.connections import LOCAL_ADDRESS
from web.http.endpoint import Api, Endpoint
from web.http.listener import find_listener
from web.http.server_proof import compute_proof, format_address
from web.version import BUILD, VERSION

api = Api("health")


class EncoderState(StrEnum):
    """Whether queries can be encoded yet."""

    READY = "ready"
    LOADING = "loading"


Milliseconds = Annotated[float, PlainSerializer(lambda seconds: round(seconds, 3))]


class HealthQuery(QueryString):
    """A random nonce. A program of this machine asks for the server's proof before it sends its token."""

    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None


class HealthAnswer(Answer):
    """The version of the server, whether it can encode queries yet, and how long it has been idle.

    `build` changes with each installation, also of the same version.
    `proof` answers a `nonce`: the HMAC-SHA256, by the data directory's token, of the nonce, the data directory and the
    address of the connection. It is null for clients of other machines.
    """

    status: Literal["ok"] = "ok"
    version: str = VERSION
    build: str = BUILD
    encoder: EncoderState
    uptime_s: Milliseconds
    idle_s: Milliseconds
    proof: str | None = None


@api.route(Endpoint("GET", "/healthz", answer=HealthAnswer, needs=Right.ANYBODY))
def check_health(call: Call, query: HealthQuery) -> HealthAnswer:
    """Report that the server answers; needs no token. With a nonce, prove that it knows the data directory's token."""
    now = time.monotonic()
    container = call.container
    return HealthAnswer(
        encoder=EncoderState(container.encoders.state),
        uptime_s=now - container.started,
        idle_s=now - container.requested,
        proof=None if query.nonce is None else _prove(container, query.nonce),
    )


def _prove(container: WebContainer, nonce: str) -> str | None:
    """Return the proof for a nonce, None for a client of another machine, which has a different token."""
    local_address = request.environ.get(LOCAL_ADDRESS)
    if local_address is None or not find_listener().is_local():
        return None
    # As for a rejected request: the client reads the token after the answer.
    container.restore_token()
    home = str(container.settings.paths.root)
    return compute_proof(container.token, nonce, home, format_address(local_address()))
