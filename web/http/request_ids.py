"""Request ids: the same id in the answer, the logs, the problem document and the access log."""

import logging
import re
from typing import cast

from flask import Flask, Response, g, has_app_context, request
from ulid import ULID

from web.http.listener import is_by_proxy

HEADER = "X-Request-Id"
# Proxies create hexadecimal digits, UUIDs or ULIDs.
WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{8,64}")


def register_request_ids(app: Flask) -> None:
    """Give every request of the app an id before any other check: the trusted proxy's id, or a new one."""

    @app.before_request
    def name_request() -> None:
        proxy_id = request.headers.get(HEADER, "") if is_by_proxy() else ""
        g.request_id = proxy_id if WELL_FORMED.fullmatch(proxy_id) else str(ULID())

    @app.after_request
    def send_id(response: Response) -> Response:
        response.headers[HEADER] = g.request_id
        return response


def request_id() -> str | None:
    """Return the id of the request that is being answered, None outside of a request."""
    return cast(str | None, g.get("request_id") if has_app_context() else None)


class RequestIdFilter(logging.Filter):
    """Append the id of the request to each of its log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id; keep every record."""
        named = request_id()
        if named is not None:
            record.msg, record.args = f"{record.getMessage()} (request {named})", None
        return True
