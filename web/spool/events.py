"""Spool the hook events of this machine that record something.

The hook client imports this module only if no server answers.
"""

import json
from collections.abc import Mapping
from typing import Any

from config.paths import WORKSPACE_HEADER
from web.hooks.modes import READ_ONLY_MODES
from web.spool.files import SpooledRequest, SpoolFull, add_request
from web.spool.privacy import may_spool

# The events that record something, by the names of all hosts.
RECORDING = frozenset(
    (
        *("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd", "PreCompact"),
        *("BeforeAgent", "AfterTool", "AfterAgent", "PreCompress"),
    )
)
# The names of hosts for the mode of a session.
MODE_FIELDS = ("permission_mode", "permissionMode", "composer_mode")


def spool_event(home: str, path: str, event: bytes, variables: Mapping[str, str]) -> bool:
    """Spool an event that the server surely did not get; return whether it waits."""
    fields = _read_recording(event)
    if fields is None:
        return False
    sessions = [str(fields[key]) for key in ("session_id", "sessionId", "conversation_id") if fields.get(key)]
    if not may_spool(home, variables, sessions):
        return False
    from web.spool.redacted import mask_request

    workspace = variables.get("REVERIE_WORKSPACE")
    headers = {WORKSPACE_HEADER: workspace} if workspace else {}
    try:
        add_request(home, SpooledRequest("POST", path, headers, mask_request(fields)))
    except (OSError, SpoolFull):
        # The host shows no error of a hook. `reverie status` shows a full spool.
        return False
    return True


def _read_recording(event: bytes) -> dict[str, Any] | None:
    """Return the fields of an event that records something, None for any other event."""
    try:
        fields = json.loads(event)
    except ValueError:
        return None
    if not isinstance(fields, dict) or any(str(fields.get(key)).lower() in READ_ONLY_MODES for key in MODE_FIELDS):
        return None
    name = str(fields.get("hook_event_name") or fields.get("hookEventName") or "")
    return fields if name[:1].upper() + name[1:] in RECORDING else None
