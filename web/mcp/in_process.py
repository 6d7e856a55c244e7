"""The way from a tool to the app that took its request: in this process, as whoever sent it.

What the app asks of a caller it asks here too: the token, the role, the limits. The caller's own headers come along.
"""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes, urlencode

from werkzeug.wrappers import Response

from pipeline.http.connections import HttpAnswer
from pipeline.http.problems import read_answer
from web.connections import Wsgi
from web.contract import CALLER_HEADER, MCP, WITHIN

# What says how the caller sent its own request, and nothing of who it is.
OF_THE_BODY = ("HTTP_TRANSFER_ENCODING", "HTTP_CONTENT_ENCODING", "HTTP_EXPECT", "REQUEST_URI", "RAW_URI")
OF_THE_SERVER = ("werkzeug.", "flask.", "waitress.")


class InProcess:
    """Calls an app for the sender of a request."""

    def __init__(self, app: Wsgi, environ: Mapping[str, Any]) -> None:
        self._app = app
        self._caller = {
            name: value
            for name, value in environ.items()
            if name not in OF_THE_BODY and not name.startswith(OF_THE_SERVER)
        }

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send one request and return the answer's JSON; raise ReverieError for anything but success."""
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        environ = self._caller | {
            "REQUEST_METHOD": method,
            # As PEP 3333 has it: bytes, each as the sign of its number.
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": urlencode(query or {}),
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(data)),
            "wsgi.input": BytesIO(data),
            f"HTTP_{CALLER_HEADER.upper().replace('-', '_')}": MCP,
            WITHIN: True,
        }
        answer = Response.from_app(self._app, environ, buffered=True)
        return read_answer(HttpAnswer(answer.status_code, answer.content_type or "", answer.get_data()), "/mcp")
