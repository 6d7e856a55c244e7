"""Remove the secrets of a request before it is written to the disk."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from pipeline.bootstrap import mask, mask_json
from web.hooks.spool.files import FACTS, SpooledRequest
from web.http.json_text import mend_surrogates


def mask_request(request: SpooledRequest) -> SpooledRequest:
    """Return a request without secrets, and with U+FFFD in place of each lone surrogate.

    No field is spared, whatever its name: the server also stores session names and folders without secrets.
    """
    parts = [unquote(part) for part in request.path.split("/")]
    return replace(
        request,
        path="/".join(quote(mask(part), safe="") for part in parts),
        headers={name: mask(value) for name, value in request.headers.items()},
        body=_mask_body(request.path, parts[-1], json.loads(mend_surrogates(json.dumps(request.body)))),
    )


def _mask_body(path: str, attribute: str, body: Any) -> Any:
    if not path.startswith(FACTS):
        return mask_json(body)
    # The value of a fact is a secret if its attribute names one.
    named = mask_json({"name": attribute, **body})
    return {name: value for name, value in named.items() if name != "name"}
