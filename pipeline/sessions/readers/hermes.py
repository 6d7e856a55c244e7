"""Read the sessions of Hermes Agent: a database for each of its profiles."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.foreign_database import ForeignDatabase
from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.database_rounds import Round, read_rounds
from pipeline.sessions.readers.documents import describe_database, list_folder
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, list_blocks, parse_json
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_DATABASE = "state.db"
_SESSION = (
    *("id", "source", "chat_type", "model_config", "parent_session_id"),
    *("started_at", "cwd", "git_branch", "title"),
)
_MESSAGE = ("id", "role", "content", "tool_call_id", "tool_calls", "timestamp", "observed", "active", "compacted")
_JSON_CONTENT = "\0json:"
_WITHOUT_A_PERSON = frozenset({"cron", "webhook", "msgraph_webhook", "api_server", "kanban", "batch"})
# The chats in which only the owner and the agent write; at the command line there is none.
_PRIVATE_CHATS = frozenset({"", "dm", "private", "c2c"})
_SUMMARY = re.compile(r"\[CONTEXT (?:COMPACTION|SUMMARY)\b")
# What the program says in the role of the person: results of subagents, notices, orders to go on.
_INJECTED = re.compile(
    r"\[(?:System(?: note)?:|IMPORTANT:|ASYNC DELEGATION |Background process |"
    r"Your active task list |Continuing toward )"
)
# A notice above the person's own words.
_NOTICE = re.compile(r"\A\[(?:Note:|The user (?:attached|sent) )[^\n]*\]\n+")
_NO_ANSWER = "The user did not provide a response"


class Reader:
    """Reads Hermes Agent."""

    agent: ClassVar[str] = "hermes"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the databases of the default profile and of the others."""
        root = _find_home(places)
        profiles = (Path(entry.path) for entry in list_folder(root / "profiles"))
        for folder in (root, *sorted(profiles)):
            yield from describe_database(self.agent, folder / _DATABASE)

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return read_rounds(file, mark, ("messages", "id"), _read_session)


def _find_home(places: Places) -> Path:
    if home := places.environment.get("HERMES_HOME", "").strip():
        # A profile's folder is set while the profile runs.
        return Path(home).parents[1] if Path(home).parent.name == "profiles" else Path(home)
    if places.platform == "win32":
        return Path(places.environment.get("LOCALAPPDATA") or places.home / "AppData/Local") / "hermes"
    return places.home / ".hermes"


def _read_session(db: ForeignDatabase, session_id: str, round_: Round) -> Iterator[SessionPart]:
    row = next(db.rows("sessions", _SESSION, [("id", "=", session_id)]), None)
    if row is None:
        return
    head = SessionHead(
        Reader.agent,
        session_id,
        cwd=as_text(row["cwd"]),
        branch=as_text(row["git_branch"]) or None,
        title=as_text(row["title"]) or None,
        started_at=as_time(row["started_at"]),
        parent=as_text(row["parent_session_id"]) or None,
    )
    log = _HermesLog(head, {})
    if reason := _find_reason(row):
        log.left_out[reason] += 1
    else:
        # All rows: they show which new ones are copies, and a result may be in this round, its call in the last.
        for message in db.rows("messages", _MESSAGE, [("session_id", "=", session_id)], order="id"):
            if message["id"] > round_.until:
                break
            log.take_message(message, is_new=message["id"] > round_.since)
            if log.is_full:
                yield log.part(round_.mark)
    yield log.part(round_.after(session_id))


def _find_reason(session: Mapping[str, Any]) -> str:
    """Return why a session is not imported, or nothing."""
    if "_delegate_from" in as_mapping(parse_json(session["model_config"])):
        return LeftOut.SUBAGENT
    if as_text(session["source"]) in _WITHOUT_A_PERSON:
        return LeftOut.UNATTENDED
    return "" if as_text(session["chat_type"]) in _PRIVATE_CHATS else "chat with other people"


class _HermesLog(SessionLog):
    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        super().__init__(head, state)
        self._seen: set[tuple[Any, ...]] = set()
        self._is_copying = False
        # Whether the last message was said before a compaction.
        self._is_compacted = False

    def take_message(self, message: Mapping[str, Any], *, is_new: bool) -> None:
        """Read a message; of one that is not new, only the calls that wait for results."""
        reason = self._find_reason(message)
        if reason is not None:
            self.left_out[reason] += is_new
            return
        role, at, key = as_text(message["role"]), message["timestamp"], str(message["id"])
        if role == "tool":
            self._take_result(message, at, key, is_new=is_new)
            return
        if is_new and role == "user":
            self.say_prompt(_NOTICE.sub("", _read_text(message["content"])), at, key)
        elif is_new and role == "assistant":
            self.say(Role.ASSISTANT, _read_text(message["content"]), at, key)
        for call in map(as_mapping, as_list(parse_json(message["tool_calls"]))):
            function = as_mapping(call.get("function"))
            self.record_call(as_text(call.get("id")), function.get("name"), function.get("arguments"), at)
        if not is_new and role == "user":
            # The last reading added the calls that had no result by then.
            self.calls.clear()

    def _find_reason(self, message: Mapping[str, Any]) -> str | None:
        """Return why a message is left out.

        A compaction marks all messages, and stores the first ones, a summary and the last ones once more behind them.
        """
        content = _read_text(message["content"])
        row = (message["role"], content, message["tool_calls"], message["tool_call_id"])
        is_summary = _SUMMARY.match(content) is not None
        if is_summary or (self._is_compacted and not message["compacted"]):
            self._is_copying = True
        if row not in self._seen and not is_summary:
            self._is_copying = False
        self._is_compacted = bool(message["compacted"])
        self._seen.add(row)
        if is_summary:
            return LeftOut.SUMMARY
        if self._is_copying:
            return LeftOut.COPY
        if message["active"] == 0 and not message["compacted"]:
            return LeftOut.TAKEN_BACK
        is_of_program = message["role"] == "user" and _INJECTED.match(content)
        return LeftOut.INJECTED if is_of_program or message["observed"] else None

    def _take_result(self, message: Mapping[str, Any], at: Any, key: str, *, is_new: bool) -> None:
        call, content = as_text(message["tool_call_id"]), as_text(message["content"])
        if not is_new:
            self.calls.pop(call, None)
            return
        result = as_mapping(parse_json(content))
        error, output = as_text(result.get("error")), as_text(result.get("output"))
        failed = bool(error) or result.get("success") is False
        answer = as_text(result.get("user_response"))
        self.record_result(call, ok=not failed, output=error or output or content, exit_code=result.get("exit_code"))
        if answer and not answer.startswith(_NO_ANSWER):
            self.say(Role.USER, answer, at, f"{key}#answer")


def _read_text(content: Any) -> str:
    """Return the text of a message, which may consist of blocks."""
    if isinstance(content, str) and content.startswith(_JSON_CONTENT):
        content = parse_json(content.removeprefix(_JSON_CONTENT))
    return "\n".join(as_text(block.get("text")) for block in list_blocks(content))
