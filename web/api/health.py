"""Whether the server answers."""

import time
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import PlainSerializer

from web.access import Access
from web.api.answers import Answer
from web.endpoint import Api, Call, Endpoint
from web.version import VERSION

api = Api("health")


class EncoderState(StrEnum):
    """Whether questions can be encoded yet."""

    READY = "ready"
    LOADING = "loading"


Milliseconds = Annotated[float, PlainSerializer(lambda seconds: round(seconds, 3))]


class HealthAnswer(Answer):
    """That the server answers, whether it can encode queries yet, and how long nobody has asked it for anything."""

    status: Literal["ok"] = "ok"
    version: str = VERSION
    encoder: EncoderState
    uptime_s: Milliseconds
    idle_s: Milliseconds


@api.route(Endpoint("GET", "/healthz", answer=HealthAnswer, needs=Access.ANYBODY))
def check_health(call: Call) -> HealthAnswer:
    """Tell that the server answers; open without a token."""
    now = time.monotonic()
    container = call.container
    state = EncoderState(container.encoders.state)
    return HealthAnswer(encoder=state, uptime_s=now - container.started, idle_s=now - container.requested)
