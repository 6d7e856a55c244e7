"""What a person's request is noted as in the access log: who, where, what, about which memories, and how it ended."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus

from flask import Flask, Response, g, request
from pydantic import BaseModel

from config.paths import WORKSPACE_HEADER, is_workspace_id
from pipeline.services.access_log import KEPT_IDS, AccessEntry, AccessLog
from pipeline.times import utc_now

# What reads nothing that is remembered.
UNNOTED = frozenset({"/healthz", "/metrics", "/assets/<path:filename>", "/w/<workspace>/workers/now"})


def register_access_log(app: Flask, log: AccessLog) -> None:
    """Note every request that comes with a person's token, or from a browser where a person is signed in."""

    @app.after_request
    def note(response: Response) -> Response:
        caller = g.get("caller")
        action = "unknown" if request.url_rule is None else request.url_rule.rule
        if caller is None or caller.person is None or action in UNNOTED:
            return response
        ids = list(dict.fromkeys(g.get("memory_ids", ())))
        entry = AccessEntry(
            utc_now(),
            g.request_id,
            caller.person.id,
            caller.token_id,
            _find_workspace(),
            f"{request.method} {action}",
            response.status_code,
            tuple(ids[:KEPT_IDS]),
            len(ids),
        )
        is_written = request.method != "GET" and response.status_code < HTTPStatus.BAD_REQUEST and g.get("writes", True)
        (log.write if is_written else log.note)(entry)
        return response


def _find_workspace() -> str | None:
    """Return where a request was answered, else where it was meant to be; no name is kept that can be none."""
    path = request.view_args or {}
    meant = g.get("answered_in") or path.get("workspace") or request.headers.get(WORKSPACE_HEADER, "")
    return meant if is_workspace_id(meant) else None


def note_workspace(workspace_id: str, *, writes: bool) -> None:
    """Note where a request is answered, and whether it changes anything there."""
    g.answered_in, g.writes = workspace_id, writes


def note_memories(memory_ids: Iterable[str]) -> None:
    """Note which memories an answer tells of, or a request wrote."""
    g.setdefault("memory_ids", []).extend(memory_ids)


def note_answer(answer: BaseModel) -> None:
    """Note the memories that stand in an answer."""
    if g.caller.person is not None:
        note_memories(_list_memory_ids(answer))


def _list_memory_ids(part: object) -> Iterator[str]:
    if isinstance(part, list | tuple):
        for one in part:
            yield from _list_memory_ids(one)
    elif isinstance(part, BaseModel):
        if getattr(part, "names_memory", False):
            yield str(getattr(part, "id"))  # noqa: B009 - not every model has one
        for name in type(part).model_fields:
            yield from _list_memory_ids(getattr(part, name))
