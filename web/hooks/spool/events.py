"""Spool the hook events of this machine that record something.

The hook client imports this module only if no server answers.
"""

from collections.abc import Mapping
from typing import Any

from config.paths import WORKSPACE_HEADER
from web.hooks.event_fields import READ_ONLY_MODES, mark_lost_arguments, unify_fields
from web.hooks.spool.files import SpooledRequest, SpoolFull, add_request
from web.hooks.spool.privacy import may_spool
from web.http.json_text import read_object

# The events that record something, by the names of all hosts.
RECORDING = frozenset(
    (
        *("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionEnd", "PreCompact"),
        *("BeforeAgent", "AfterTool", "AfterAgent", "PreCompress", "BeforeSubmitPrompt"),
    )
)


def spool_event(home: str, path: str, event: bytes, variables: Mapping[str, str]) -> bool:
    """Spool an event that the server surely did not get; return whether it waits."""
    fields = _read_recording(event)
    if fields is None:
        return False
    session = fields.get("session_id")
    if not may_spool(home, variables, () if session is None else (str(session),)):
        return False
    from web.hooks.spool.redacted import mask_request

    workspace = variables.get("REVERIE_WORKSPACE")
    headers = {WORKSPACE_HEADER: workspace} if workspace else {}
    try:
        add_request(home, mask_request(SpooledRequest("POST", path, headers, fields)))
    except (OSError, SpoolFull, RecursionError):
        # The host shows no error of a hook. `reverie status` shows a full spool.
        return False
    return True


def _read_recording(event: bytes) -> dict[str, Any] | None:
    """Return the readable fields of an event that records something, None for any other event."""
    try:
        read = unify_fields(read_object(event))
    except ValueError:
        return None
    # The session decides whether anything may be kept.
    if not read.has_read("session_id"):
        return None
    name, mode = (str(read.fields.get(key, "")) for key in ("hook_event_name", "permission_mode"))
    return mark_lost_arguments(read) if name in RECORDING and mode.lower() not in READ_ONLY_MODES else None
