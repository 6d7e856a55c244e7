"""What a request is noted as in the access log: who, where, what, about which memories, and how it ended.

Requests of people are noted, and of the owner of the data directory what changes who may enter it.
"""

from collections.abc import Iterable, Iterator
from http import HTTPStatus

from flask import Flask, Response, g, request
from pydantic import BaseModel

from config.paths import WORKSPACE_HEADER, is_workspace_id
from pipeline.services.access_log import OWNER, AccessLog
from pipeline.store.access_log import KEPT_IDS, AccessEntry
from pipeline.times import utc_now

# Whose changes are noted of everybody.
OF_PEOPLE = "/v1/people"
# What reads nothing that is remembered.
UNNOTED = frozenset({"/healthz", "/metrics", "/assets/<path:filename>", "/w/<workspace>/workers/now"})


def register_access_log(app: Flask, log: AccessLog) -> None:
    """Note every request of a person, by token or signed-in browser; a change is on the disk before its answer."""

    @app.after_request
    def note(response: Response) -> Response:
        caller = g.get("caller")
        action = "unknown" if request.url_rule is None else request.url_rule.rule
        is_done = response.status_code < HTTPStatus.BAD_REQUEST
        acted = request.method != "GET" and is_done and g.get("acts", True)
        if caller is None or action in UNNOTED or not (caller.person or (acted and action.startswith(OF_PEOPLE))):
            return response
        ids = list(dict.fromkeys(g.get("memory_ids", ())))
        entry = AccessEntry(
            utc_now(),
            g.request_id,
            OWNER if caller.person is None else caller.person.id,
            caller.token_id,
            _find_workspace(),
            f"{request.method} {action}",
            response.status_code,
            tuple(ids[:KEPT_IDS]),
            len(ids),
        )
        (log.write if acted else log.note)(entry)
        return response


def _find_workspace() -> str | None:
    """Return where a request was answered, else where it was meant to be; no name is kept that can be none."""
    path = request.view_args or {}
    meant = g.get("answered_in") or path.get("workspace") or request.headers.get(WORKSPACE_HEADER, "")
    return meant if is_workspace_id(meant) else None


def note_workspace(workspace_id: str, *, acts: bool) -> None:
    """Note where a request is answered, and whether it changes anything."""
    g.answered_in, g.acts = workspace_id, acts


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
