"""Claude Code's hook events: context in, or silence; the agent is never disturbed."""

import json
from typing import Any

from flask import Response, request
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.context.prepare import PrepareLimits, prepare
from pipeline.errors import NotFound, ReverieError
from pipeline.records import Viewer
from pipeline.write.normalize import normalize_id
from web.endpoint import Api, Call, Endpoint, json_response
from web.folders import workspace_of_folder

api = Api("claude_code")

LONGEST_PROMPT = 4000


class HookEvent(BaseModel):
    """The fields of an event that Reverie reads; hosts add others freely."""

    model_config = ConfigDict(extra="ignore")

    hook_event_name: str
    cwd: str = ""
    session_id: str = ""
    prompt: str = ""


@api.route(
    Endpoint("POST", "/hooks/claude-code", "Take a Claude Code hook event; answer with context or an empty body")
)
def claude_code(call: Call) -> Response:
    """Answer one event; whatever is wrong with it goes to the error log and the answer stays empty."""
    try:
        event = HookEvent.model_validate_json(request.get_data(cache=False))
        context = _context(call, event)
    except ValidationError as error:
        _note(call, f"unreadable event: {error.error_count()} fields, first {error.errors()[0]['type']}")
        return _silence()
    except ReverieError as error:
        _note(call, f"{type(error).__name__}: {error}")
        return _silence()
    if context is None:
        return _silence()
    answer: dict[str, Any] = {
        "hookSpecificOutput": {"hookEventName": event.hook_event_name, "additionalContext": context}
    }
    return json_response(answer)


def _context(call: Call, event: HookEvent) -> str | None:
    if event.hook_event_name != "UserPromptSubmit":
        _note(call, f"event {json.dumps(event.hook_event_name)[:60]} is not handled")
        return None
    prompt = event.prompt.strip()[:LONGEST_PROMPT]
    if not prompt:
        return None
    workspace = workspace_of_folder(call, event.cwd)
    settings = call.front.workspace_settings(workspace)
    session = normalize_id(event.session_id) or None
    try:
        told = prepare(
            call.front.reader(workspace),
            prompt,
            Viewer(session=session),
            PrepareLimits(settings.hook_budget_ms, settings.hook_max_chars),
            lambda shown: call.front.learning.surface(workspace, session, shown),
        )
    except NotFound:
        # Nothing was ever written for this project: nothing to say, and nothing wrong.
        return None
    return told.text or None


def _note(call: Call, message: str) -> None:
    call.front.operations.record_error("hooks.claude-code", message)


def _silence() -> Response:
    return Response(status=200)
