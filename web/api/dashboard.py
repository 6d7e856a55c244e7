"""The way into the dashboard: one-time links for whoever holds the token."""

from typing import Any
from urllib.parse import urljoin

from flask import request

from web.api.answers import Answer
from web.dashboard.sign_in import LINK_LIFETIME_S, new_link
from web.endpoint import Api, Call, Endpoint

api = Api("dashboard_links")


class LinkAnswer(Answer):
    """A link that signs one browser in, once."""

    url: str
    expires_in_s: int


@api.route(
    Endpoint(
        "POST", "/v1/dashboard/links", "Make a one-time link that opens the dashboard", answer=LinkAnswer, status=201
    )
)
def make_link(call: Call) -> dict[str, Any]:  # noqa: ARG001 - every handler takes a call
    """Make a sign-in link."""
    return {"url": urljoin(request.host_url, new_link()), "expires_in_s": LINK_LIFETIME_S}
