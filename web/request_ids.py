"""Request ids: one name for a request in its answer, in the logs, in its problem document and in the access log."""

import logging
import re

from flask import Flask, Response, g, has_request_context, request
from ulid import ULID

from web.listener import is_by_proxy

HEADER = "X-Request-Id"
# What proxies make: hexadecimal digits, UUIDs, ULIDs.
WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{8,64}")


def register_request_ids(app: Flask) -> None:
    """Name every request of the app, before anything else sees it: as the proxy that is believed does, else anew."""

    @app.before_request
    def name_request() -> None:
        given = request.headers.get(HEADER, "") if is_by_proxy() else ""
        g.request_id = given if WELL_FORMED.fullmatch(given) else str(ULID())

    @app.after_request
    def tell(response: Response) -> Response:
        response.headers[HEADER] = g.request_id
        return response


def request_id() -> str | None:
    """Return the id of the request that is answered, None outside of one."""
    found: str | None = g.get("request_id") if has_request_context() else None
    return found


class RequestIdFilter(logging.Filter):
    """Let every record of a request end with its id."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id; no record is left out."""
        named = request_id()
        if named is not None:
            record.msg, record.args = f"{record.getMessage()} (request {named})", None
        return True
