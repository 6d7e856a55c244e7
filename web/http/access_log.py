"""The entry of a request in the access log: person, workspace, route, memories and status.

The log has all requests of people, and the owner's requests that change who has access.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus

from flask import Flask, Response, g, request
from pydantic import BaseModel

from config.paths import WORKSPACE_HEADER, is_workspace_id
from pipeline.features.people.access_log import OWNER, AccessLog
from pipeline.kernel.records.people import Caller
from pipeline.kernel.store.people import MAX_IDS_PER_ENTRY, AccessEntry
from pipeline.kernel.times import utc_now

# Changes here are logged for every caller.
OF_PEOPLE = "/v1/people"
# Routes that read no memories.
UNNOTED = frozenset({"/healthz", "/metrics", "/assets/<path:filename>", "/w/<workspace>/workers/now"})


def register_access_log(app: Flask, log: AccessLog) -> None:
    """Log every request of a person, by token or signed-in browser. A change is on disk before its answer is sent."""

    @app.after_request
    def note(response: Response) -> Response:
        action = "unknown" if request.url_rule is None else request.url_rule.rule
        path = request.view_args or {}
        workspace_id = path.get("workspace") or request.headers.get(WORKSPACE_HEADER, "")
        note_request(log, request.method, action, response.status_code, workspace_id)
        return response


def note_request(log: AccessLog, method: str, action: str, status: int, workspace_id: str) -> None:
    """Log the current request if it belongs there; `workspace_id` is the workspace that the request names."""
    caller = g.get("caller")
    acted = method != "GET" and status < HTTPStatus.BAD_REQUEST and g.get("acts", True)
    if caller is None or action in UNNOTED or not (caller.person or (acted and action.startswith(OF_PEOPLE))):
        return
    workspace_id = g.get("answered_in") or workspace_id
    entry = _make_entry(caller, g.request_id, workspace_id, f"{method} {action}", status, g.get("memory_ids", ()))
    (log.write if acted else log.note)(entry)


def _make_entry(
    caller: Caller, request_id: str, workspace_id: str | None, action: str, status: int, memory_ids: Iterable[str]
) -> AccessEntry:
    ids = list(dict.fromkeys(memory_ids))
    return AccessEntry(
        utc_now(),
        request_id,
        OWNER if caller.person is None else caller.person.id,
        caller.token_id,
        workspace_id if workspace_id and is_workspace_id(workspace_id) else None,
        action,
        status,
        tuple(ids[:MAX_IDS_PER_ENTRY]),
        len(ids),
    )


def note_later(log: AccessLog) -> Callable[[list[str]], None]:
    """Return a function that logs memories which the current request's answer contains after it was started."""
    make = partial(_make_entry, g.caller, g.request_id, g.get("answered_in"), f"{request.method} {request.path}")
    if g.caller.person is None:
        # The owner's reads are not logged.
        return lambda _memory_ids: None
    return lambda memory_ids: log.note(make(HTTPStatus.OK, memory_ids))


def note_workspace(workspace_id: str, *, acts: bool) -> None:
    """Set the workspace that answers the current request, and whether the request changes anything."""
    g.answered_in, g.acts = workspace_id, acts


def note_memories(memory_ids: Iterable[str]) -> None:
    """Add memories that the current request reads or writes."""
    g.setdefault("memory_ids", []).extend(memory_ids)


def note_answer(answer: BaseModel) -> None:
    """Add the memories in an answer of the current request."""
    if g.caller.person is not None:
        note_memories(_list_memory_ids(answer))


def _list_memory_ids(part: object) -> Iterator[str]:
    if isinstance(part, list | tuple):
        for item in part:
            yield from _list_memory_ids(item)
    elif isinstance(part, BaseModel):
        if getattr(part, "names_memory", False):
            yield str(getattr(part, "id"))  # noqa: B009 - not every model has one
        for name in type(part).model_fields:
            yield from _list_memory_ids(getattr(part, name))
