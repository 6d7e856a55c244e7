"""The folder that a hook event belongs to."""

from dataclasses import replace

from web.call import Call
from web.hooks.event import HookEvent

OF_PERSON = frozenset({"SessionStart", "UserPromptSubmit"})
OF_TOOL = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})


def locate_event(call: Call, event: HookEvent, host: str) -> HookEvent:
    """Return an event with its folder: a tool runs in the agent's, all else belongs to that of the person."""
    if not event.session_id or event.agent_id:
        return event
    session = (call.caller.person_id or "", host, event.session_id)
    folder = call.container.person_folders.find(session, event.cwd, event.roots, is_of_person=event.name in OF_PERSON)
    return event if event.name in OF_TOOL else replace(event, cwd=folder)
