"""Read sessions in databases: those of Hermes Agent (one for each profile), and of opencode and Kilo.

Before version 1.2, opencode wrote JSON files.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.foreign_database import ForeignDatabase
from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.database_rounds import Round, read_new_rows, read_rounds
from pipeline.sessions.readers.documents import (
    build_problem,
    continue_session,
    describe_database,
    find_files,
    list_folder,
    load_document,
)
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, list_blocks, parse_json
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_DATABASE = "state.db"
_HERMES_SESSION = (
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


class HermesReader:
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
        return read_rounds(file, mark, ("messages", "id"), _read_hermes_session)


def _find_home(places: Places) -> Path:
    if home := places.environment.get("HERMES_HOME", "").strip():
        # A profile's folder is set while the profile runs.
        return Path(home).parents[1] if Path(home).parent.name == "profiles" else Path(home)
    if places.platform == "win32":
        return Path(places.environment.get("LOCALAPPDATA") or places.home / "AppData/Local") / "hermes"
    return places.home / ".hermes"


def _read_hermes_session(db: ForeignDatabase, session_id: str, round_: Round) -> Iterator[SessionPart]:
    row = next(db.rows("sessions", _HERMES_SESSION, [("id", "=", session_id)]), None)
    if row is None:
        return
    head = SessionHead(
        HermesReader.agent,
        session_id,
        cwd=as_text(row["cwd"]),
        branch=as_text(row["git_branch"]) or None,
        title=as_text(row["title"]) or None,
        started_at=as_time(row["started_at"]),
        parent=as_text(row["parent_session_id"]) or None,
    )
    log = _HermesLog(head, {})
    rows = db.rows("messages", _MESSAGE, [("session_id", "=", session_id)], order="id")
    yield from read_new_rows(log, round_, rows, log.take_message, reason=_find_reason(row))


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


_SESSION = ("id", "parent_id", "directory", "title", "revert", "time_created")
_REJECTION = re.compile(r"\AThe user rejected permission .*? with the following feedback: (.+)", re.DOTALL)
_USUAL_TITLE = re.compile(r"(?:New|Child) session - \d{4}-")
# Their errors contain no text of another origin, so the words of a rejection in them are the person's.
_TOOLS_WITH_OWN_ERRORS = frozenset(("bash", "edit", "multiedit", "write", "patch", "apply_patch"))
_FINISHED = frozenset({"completed", "error", "success"})


class OpencodeReader:
    """Reads opencode. Forks are complete copies under new ids: their entries differ only in the ids."""

    agent: ClassVar[str] = "opencode"
    folder: ClassVar[str] = "opencode"
    database_variable: ClassVar[str] = "OPENCODE_DB"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the databases, one per channel; without one, the sessions in JSON files, which a migration leaves."""
        root = Path(places.environment.get("XDG_DATA_HOME") or places.home / ".local/share") / self.folder
        set_file = places.environment.get(self.database_variable, "")
        if set_file and set_file != ":memory:":
            databases = [root / set_file]
        else:
            names = (entry.name for entry in list_folder(root))
            databases = [root / name for name in names if name.startswith(self.folder) and name.endswith(".db")]
        files = [file for path in databases for file in describe_database(self.agent, path)]
        yield from files or find_files(self.agent, root, "storage/session/*/*.json")

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        if file.path.suffix == ".db":
            return read_rounds(file, mark, ("part", "time_updated"), partial(_read_session, file.agent))
        return _read_tree(file, mark)


class KiloReader(OpencodeReader):
    """Reads the Kilo CLI, which is made from opencode."""

    agent: ClassVar[str] = "kilo"
    folder: ClassVar[str] = "kilo"
    database_variable: ClassVar[str] = "KILO_DB"


def _read_session(agent: str, db: ForeignDatabase, session_id: str, round_: Round) -> Iterator[SessionPart]:
    row = next(db.rows("session", _SESSION, [("id", "=", session_id)]), None)
    if row is None:
        return
    log = _start_log(agent, row)
    if row["parent_id"]:
        log.left_out[LeftOut.SUBAGENT] += 1
        yield log.part(round_.after(session_id))
        return
    columns = ("id", "time_created", "data")
    messages = sorted(
        (
            (_number(message["time_created"]), as_text(message["id"]), as_mapping(parse_json(message["data"])))
            for message in db.rows("message", columns, [("session_id", "=", session_id)])
        ),
        key=lambda message: message[:2],
    )
    for _, message_id, message in messages:
        changes = [("message_id", "=", message_id), *round_.changes("time_updated")]
        parts = db.rows("part", ("id", "data"), changes, order="id")
        for part in parts:
            log.take_part(message_id, message, as_text(part["id"]), as_mapping(parse_json(part["data"])))
        if log.is_full:
            # Without the session: an interrupted reading reads it again.
            yield log.part(round_.mark)
    yield log.part(round_.after(session_id))


def _read_tree(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    document, problem = load_document(file.path)
    session = as_mapping(document)
    if not as_text(session.get("id")):
        yield build_problem(file, mark, problem or f"{file.path.name} names no session")
        return
    times = as_mapping(session.get("time"))
    row = {**session, "parent_id": session.get("parentID"), "time_created": times.get("created")}
    log = _start_log(file.agent, row)
    storage = file.path.parents[2]
    listed = [_load(entry.path, log) for entry in list_folder(storage / "message" / Path(log.head.id).name)]
    messages = [
        (_number(as_mapping(message.get("time")).get("created")), as_text(message.get("id")), message)
        for message in listed
    ]
    if session.get("parentID"):
        messages = []
        log.left_out[LeftOut.SUBAGENT] += 1
    for _, message_id, message in sorted(messages, key=lambda message: message[:2]):
        # The id comes from a file: it must not lead to another folder.
        folder = storage / "part" / Path(message_id).name
        parts = [_load(entry.path, log) for entry in list_folder(folder) if entry.name.endswith(".json")]
        for part in parts or _list_flat_parts(storage / "part").get(message_id, []):
            log.take_part(message_id, message, as_text(part.get("id")), part)
    yield from continue_session(log, mark)


@lru_cache(maxsize=1)
def _list_flat_parts(folder: Path) -> Mapping[str, list[Mapping[str, Any]]]:
    """Return the parts of messages by message, as the first versions stored them: in one folder."""
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for entry in list_folder(folder):
        if entry.name.endswith(".json"):
            part = as_mapping(load_document(Path(entry.path))[0])
            parts.setdefault(as_text(part.get("messageID")), []).append(part)
    return parts


def _load(path: str, log: SessionLog) -> Mapping[str, Any]:
    document, problem = load_document(Path(path))
    if problem:
        log.report(problem)
    return as_mapping(document)


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0


def _start_log(agent: str, row: Mapping[str, Any]) -> "_OpencodeLog":
    title = as_text(row.get("title"))
    head = SessionHead(
        agent,
        as_text(row.get("id")),
        # The project `global` has the folder `/`: the session's own folder is right for all.
        cwd=as_text(row.get("directory")),
        title=None if _USUAL_TITLE.match(title) else title or None,
        started_at=as_time(row.get("time_created")),
    )
    revert = as_mapping(parse_json(row.get("revert")))
    return _OpencodeLog(head, as_text(revert.get("messageID")))


def unquote_prompt(text: str) -> str:
    """Return a message without the quotes that `opencode run` puts around a prompt of several words."""
    inner = text[1:-1]
    return inner if text == f'"{inner}"' and '"' not in inner else text


class _OpencodeLog(SessionLog):
    """A session's entries; messages from `undone_from` on were undone by the person."""

    def __init__(self, head: SessionHead, undone_from: str) -> None:
        super().__init__(head, {})
        self._undone_from = undone_from

    def take_part(self, message_id: str, message: Mapping[str, Any], key: str, part: Mapping[str, Any]) -> None:
        """Read a part of a message."""
        kind = part.get("type")
        is_person = message.get("role") == "user"
        at = as_mapping(part.get("time")).get("start") or as_mapping(message.get("time")).get("created")
        if self._undone_from and message_id >= self._undone_from:
            self.left_out[LeftOut.TAKEN_BACK] += 1
        elif message.get("summary") is True or kind == "compaction":
            self.left_out[LeftOut.SUMMARY] += 1
        elif kind == "text" and (part.get("synthetic") or part.get("ignored")):
            self.left_out[LeftOut.INJECTED] += 1
        elif kind == "text":
            self.say(Role.USER if is_person else Role.ASSISTANT, unquote_prompt(as_text(part.get("text"))), at, key)
        elif kind == "tool":
            self._take_call(key, part, as_mapping(part.get("state")), at)
        elif kind == "reasoning":
            self.left_out[LeftOut.THINKING] += 1
        else:
            self.left_out[LeftOut.META] += 1

    def _take_call(self, key: str, part: Mapping[str, Any], state: Mapping[str, Any], at: Any) -> None:
        status = as_text(state.get("status"))
        if status not in _FINISHED:
            # It is read again when it has ended, which changes the part.
            self.left_out["unfinished call"] += 1
            return
        metadata = as_mapping(state.get("metadata"))
        name, output = as_text(part.get("tool")), as_text(state.get("error")) or as_text(state.get("output"))
        at = as_mapping(state.get("time")).get("start") or at
        if rejection := _REJECTION.match(as_text(state.get("error")) if status == "error" else ""):
            self.left_out[LeftOut.NOT_RUN] += 1
            if name in _TOOLS_WITH_OWN_ERRORS:
                self.say(Role.USER, rejection[1], at, key)
            return
        self.record_call(key, name, state.get("input"), at)
        self.record_result(
            key, ok=status != "error" and name != "invalid", output=output, exit_code=metadata.get("exit")
        )
        if name == "question":
            answers = [", ".join(map(as_text, as_list(answer))) for answer in as_list(metadata.get("answers"))]
            self.say(Role.USER, "\n".join(filter(None, answers)), at, f"{key}#answer")
