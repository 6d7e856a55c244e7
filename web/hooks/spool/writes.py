"""Spool the writes of commands and tools while no server answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from config.paths import WORKSPACE_HEADER
from config.settings import Settings, environment_incognito, environment_read_only
from pipeline.kernel.errors import ReverieError, ServerUnreachable
from pipeline.kernel.times import utc_now
from web.hooks.spool.files import FACTS, SpooledRequest, SpoolFull, add_request
from web.hooks.spool.privacy import may_spool
from web.http.contract import CALLER_HEADER

MEMORIES, BATCH, GOALS = "/v1/memories", "/v1/memories/batch", "/v1/goals"


class Spooled(ReverieError):
    """Report that a write waits in the spool: it is not stored yet."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "Not stored yet: the server does not answer. The request is in the spool, and the server delivers it when "
            "it is back. Do not repeat it."
        )
        self.name = name


class SpoolRefused(ServerUnreachable):
    """Report that a write can neither be sent nor spooled."""


def add_client_ids(method: str, path: str, body: Any) -> Any:
    """Return the body of a write with an id per memory, so that it may be sent again; a team's is unchanged."""
    if method != "POST" or path not in (MEMORIES, BATCH) or not isinstance(body, Mapping) or not _is_for_here(body):
        return body
    # Imported for the first write: reads do not need it.
    from ulid import ULID

    if path == MEMORIES:
        return {"id": str(ULID()), **body}
    items = body.get("items")
    return {**body, "items": [{"id": str(ULID()), **item} for item in items]} if isinstance(items, list) else body


def has_client_ids(method: str, path: str, body: Any) -> bool:
    """Return whether a request may be sent again although its first answer was lost."""
    items = list(list_items(body)) if method == "POST" and path in (MEMORIES, BATCH) else []
    return bool(items) and all("id" in item for item in items)


def spool_write(
    settings: Settings, method: str, path: str, body: Any, workspace: str, caller: str | None = None
) -> Spooled | None:
    """Write a request into the spool; return None if it must not reach this disk or cannot wait.

    Raises SpoolRefused if the spool is full or cannot be written.
    """
    can_wait = (method == "POST" and path in (MEMORIES, BATCH, GOALS)) or (method == "PUT" and path.startswith(FACTS))
    if not (can_wait and isinstance(body, Mapping) and _is_for_here(body)):
        return None
    sessions = [str(item["session_id"]) for item in list_items(body) if item.get("session_id")]
    home = str(settings.paths.root)
    if not may_spool(home, _variables(settings), sessions):
        return None
    from web.hooks.spool.redacted import mask_request

    headers = {WORKSPACE_HEADER: workspace} | ({} if caller is None else {CALLER_HEADER: caller})
    request = SpooledRequest(method, path, headers, _add_time(path, body))
    try:
        return Spooled(add_request(home, mask_request(request)))
    except SpoolFull as error:
        raise SpoolRefused(f"Not stored: no server answers, and the request cannot wait. {error}") from error
    except (OSError, RecursionError) as error:
        raise SpoolRefused(f"Not stored: no server answers, and the spool cannot be written: {error}.") from error


def _add_time(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body that says when it was written: it may arrive much later."""
    now = utc_now()
    if path == BATCH:
        return {**body, "items": [{"occurred_at": now, **item} for item in list_items(body)]}
    if path == MEMORIES:
        return {"occurred_at": now, **body}
    return {"valid_from": now, **body} if path.startswith(FACTS) else dict(body)


def list_items(body: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the memories of a body."""
    if isinstance(body, Mapping):
        items = body.get("items", [body])
        yield from (item for item in items if isinstance(item, Mapping))


def _is_for_here(body: Mapping[str, Any]) -> bool:
    return body.get("to", "local") in (None, "local")


def _variables(settings: Settings) -> dict[str, str]:
    return {
        "REVERIE_INCOGNITO": str(settings.incognito or environment_incognito()),
        "REVERIE_READ_ONLY": str(settings.read_only or environment_read_only()),
        "REVERIE_ENABLED": str(settings.enabled),
        "REVERIE_STORE": str(settings.store or ""),
    }
