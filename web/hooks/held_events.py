"""Hold the end of a turn in the spool until it is read: if the server ends before, the next one delivers it again."""

from contextlib import suppress
from dataclasses import replace

from flask import request

from config.paths import WORKSPACE_HEADER
from pipeline.kernel.records.hooks import AgentSession, SpooledMark
from pipeline.kernel.times import utc_text_at
from pipeline.kernel.workspace import Workspace
from web.hooks.event import HookEvent
from web.hooks.spool.files import SpooledRequest, SpoolFull, hold_request, release_request, time_of
from web.hooks.spool.redacted import mask_request
from web.http.call import Call

PATIENCE_S = 2.0


def hold_event(call: Call, workspace: Workspace, session: AgentSession, event: HookEvent) -> tuple[HookEvent, str]:
    """Hold an event before it is answered; return it with its time, and the name of its file, empty without one."""
    settings = call.container.settings
    # Neither an encrypted store nor one on another machine keeps a copy here.
    is_here = call.caller.person is None and not (settings.store_place or settings.paths.store_key.exists())
    is_here = is_here and event.spooled is None and session.id is not None and session.agent_id is None
    stores = workspace.access.is_enabled and not workspace.access.is_read_only
    silent = call.container.agents.sessions.is_off_the_record(workspace, session.id)
    if not (is_here and stores and (event.said or event.transcript_path)) or silent:
        return event, ""
    headers = {WORKSPACE_HEADER: call.workspace_id} if WORKSPACE_HEADER in call.headers else {}
    held = mask_request(SpooledRequest("POST", request.path, headers, dict(event.sent)))
    home = str(settings.paths.root)
    try:
        name = hold_request(home, held)
    except (OSError, SpoolFull) as error:
        call.container.operations.record_error_once("hooks", f"the end of a turn cannot be held: {error}")
        return event, ""
    at_ns = time_of(name)
    return replace(event, held=SpooledMark(utc_text_at(at_ns / 1e9), at_ns)), name


def wait_for_reading(call: Call) -> None:
    """Wait a moment until the end of a turn that cannot be held is read."""
    with suppress(TimeoutError):
        call.container.feedback.submit(lambda: None).result(timeout=PATIENCE_S)


def release(call: Call, name: str) -> None:
    """Remove a held event, which was read."""
    if name:
        release_request(str(call.container.settings.paths.root), name)
