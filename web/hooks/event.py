"""A hook event as Reverie reads it. An invalid field is repaired or dropped; the rest of the event is kept."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pipeline.kernel.records import MAX_FOLDER_CHARS, MAX_SESSION_ID_CHARS, OWNED
from pipeline.kernel.records.hooks import SpooledMark
from pipeline.kernel.store.turns import Role
from pipeline.sessions.events import MAX_SAID_CHARS, MID_TURN, TAKEN_BACK
from pipeline.sessions.readers.reader import Said, SessionHead, SessionPart
from pipeline.write.tool_actions import Outcome
from web.hooks.event_fields import READ_ONLY_MODES, Fields

MOST_ROOTS = 20
MOST_SAID = 200
_ROLES = frozenset(Role) - {Role.TAKEN_BACK}
# Programs write their errors to the first of these that hosts report; a command may print them to its output.
_OUTPUTS = ("error", "stderr", "output", "llmContent", "stdout")
# The first lines of an output, in the words of Claude Code, Codex and Gemini CLI.
_EXIT_CODE = re.compile(r"(?im)\A(?:.*\n){0,4}?.*\b(?:exited with code|exit code:?) (-?\d+)|^Exit Code: (-?\d+)$")


@dataclass(frozen=True, slots=True)
class HookEvent:
    """The fields of an event that Reverie reads. Hosts may send other fields.

    A field that is null or missing is empty. `roots` are the folders that the person opened and added, in this order.
    `agent_type` is the role of a subagent, `report` the last message of an agent, `turn_id` and `call_id` the host's
    ids of the prompt and of a tool call. `dropped` are the names of the fields that could not be read. `can_ask` is
    whether the host can ask its user before a tool runs; `host` decides how a transcript is read. `spooled` marks an
    event that waited for the server, `held` an event that waits until it is read, and `sent` are the host's own fields.
    """

    name: str = ""
    cwd: str = ""
    roots: tuple[str, ...] = ()
    session_id: str = ""
    agent_id: str = ""
    agent_type: str = ""
    turn_id: str = ""
    call_id: str = ""
    report: str = ""
    prompt: str = ""
    source: str = ""
    tool_name: str = ""
    tool_input: Mapping[str, Any] = field(default_factory=dict)
    tool_response: Any = None
    error: str = ""
    transcript_path: str = ""
    said: tuple[dict[str, str], ...] = ()
    dropped: frozenset[str] = frozenset()
    can_ask: bool = True
    spooled: SpooledMark | None = None
    held: SpooledMark | None = None
    sent: Mapping[str, Any] = field(default_factory=dict)
    host: str = ""
    mode: str = ""

    @property
    def known_at(self) -> str | None:
        """Return the time of an event that is delivered again after a crash; None if it is not."""
        mark = self.spooled or self.held
        return None if mark is None else mark.at

    @property
    def spooled_at(self) -> str | None:
        """Return the time of an event that waited for the server; None if it did not."""
        return None if self.spooled is None else self.spooled.at

    @property
    def is_read_only(self) -> bool:
        """Return whether the host lets its agent only read and plan: nothing of the session is then stored."""
        return self.mode.lower() in READ_ONLY_MODES


def read_said(event: HookEvent) -> SessionPart:
    """Return the messages in an event as the part of a session.

    With a time, a message is stored once, also if the event is delivered again after a crash.
    """
    said = [(_make_said(message, event.known_at), TAKEN_BACK in message) for message in event.said]
    entries = tuple(entry for entry, is_taken_back in said if not is_taken_back)
    removed = tuple(entry for entry, is_taken_back in said if is_taken_back)
    return SessionPart(SessionHead(event.host, event.session_id, event.cwd), entries, "", taken_back=removed)


def _make_said(message: Mapping[str, str], at: str | None) -> Said:
    role, folder = Role(message["role"]), message.get("cwd", "")
    is_mid_turn = MID_TURN in message
    return Said(role, message["content"], message.get("at") or at, message.get("id"), folder, is_mid_turn)


def read_event(fields: Fields, *, can_ask: bool, host: str = "") -> HookEvent:
    """Return the event of these fields. A field of the wrong type or length is dropped."""
    reader = _FieldReader(fields)
    return HookEvent(
        name=reader.read_text("hook_event_name"),
        cwd=reader.read_text("cwd", MAX_FOLDER_CHARS),
        roots=reader.read_folders("workspace_roots"),
        session_id=reader.read_id("session_id"),
        agent_id=reader.read_id("agent_id"),
        agent_type=reader.read_text("agent_type"),
        turn_id=reader.read_id("prompt_id"),
        call_id=reader.read_id("tool_use_id"),
        report=reader.read_text("last_assistant_message", None),
        prompt=reader.read_text("prompt", None),
        source=reader.read_text("source"),
        tool_name=reader.read_text("tool_name"),
        tool_input=reader.read_object("tool_input"),
        tool_response=fields.get("tool_response"),
        error=reader.read_text("error", None),
        transcript_path=reader.read_text("transcript_path", MAX_FOLDER_CHARS),
        said=reader.read_said("said"),
        dropped=frozenset(reader.dropped),
        can_ask=can_ask,
        host=host,
        mode=reader.read_text("permission_mode"),
    )


class _FieldReader:
    """Reads the fields of an event, and collects the names of those that it drops."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self.dropped: set[str] = set()

    def read_text(self, name: str, most: int | None = MAX_SESSION_ID_CHARS) -> str:
        """Return a text of limited length, empty if there is none."""
        value = self._fields.get(name)
        if isinstance(value, str) and (most is None or len(value) <= most):
            return value
        self._drop(name, value)
        return ""

    def read_id(self, name: str) -> str:
        """Return the id of a session or an agent. It is never cut, because two cut ids could be equal."""
        value = self._fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and OWNED in value:
            self._drop(name, value)
            return ""
        return self.read_text(name)

    def read_object(self, name: str) -> Mapping[str, Any]:
        """Return an object, empty if there is none."""
        value = self._fields.get(name)
        if isinstance(value, Mapping):
            return value
        self._drop(name, value)
        return {}

    def read_folders(self, name: str) -> tuple[str, ...]:
        """Return the folders of a list."""
        value = self._fields.get(name)
        folders = value[:MOST_ROOTS] if isinstance(value, list) else []
        return tuple(item for item in folders if isinstance(item, str) and len(item) <= MAX_FOLDER_CHARS)

    def read_said(self, name: str) -> tuple[dict[str, str], ...]:
        """Return the readable messages of a turn; only the last ones if there are too many."""
        value = self._fields.get(name)
        if not isinstance(value, list):
            self._drop(name, value)
            return ()
        last = value[-MOST_SAID:]
        messages = tuple(message for item in last if (message := _read_message(item)) is not None)
        if len(messages) < len(last):
            self._drop(name, last)
        return messages

    def _drop(self, name: str, value: Any) -> None:
        if value is not None:
            self.dropped.add(name)


def _read_message(message: Any) -> dict[str, str] | None:
    fields = message if isinstance(message, Mapping) else {}
    role, content, at = (fields.get(name) for name in ("role", "content", "at"))
    if not (isinstance(role, str) and role in _ROLES and isinstance(content, str)):
        return None
    known = {"role": role, "content": content[:MAX_SAID_CHARS]}
    # The host's id of the record, and the folder of the message.
    known |= {name: value for name in ("id", "cwd") if isinstance(value := fields.get(name), str)}
    known |= {name: name for name in (MID_TURN, TAKEN_BACK) if fields.get(name)}
    return known | {"at": at} if isinstance(at, str) and _is_time(at) else known


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def read_outcome(event: HookEvent, *, failed: bool) -> Outcome:
    """Return the outcome of a tool call.

    Hosts without PostToolUseFailure report failures in PostToolUse.
    """
    response = event.tool_response if isinstance(event.tool_response, Mapping) else {}
    code = response.get("exit_code", response.get("exitCode"))
    is_reported = response.get("is_error") is True or response.get("interrupted") is True or code not in (0, None)
    if not (failed or is_reported):
        replaced = event.tool_input.get("old_string")
        return Outcome(ok=True, exit_code=_number(code), replaced=replaced if isinstance(replaced, str) else "")
    output = _read_output(event, response)
    match = _EXIT_CODE.search(output) if code is None else None
    return Outcome(ok=False, exit_code=_number(code) if match is None else int(match[1] or match[2]), output=output)


def _read_output(event: HookEvent, response: Mapping[str, Any]) -> str:
    texts = [event.error, *(response.get(name) for name in _OUTPUTS), event.tool_response]
    error = response.get("error")
    if isinstance(error, Mapping):
        texts.append(error.get("message"))
    return "\n".join(dict.fromkeys(text for text in texts if isinstance(text, str) and text.strip()))


def _number(code: Any) -> int | None:
    return code if isinstance(code, int) and not isinstance(code, bool) else None
