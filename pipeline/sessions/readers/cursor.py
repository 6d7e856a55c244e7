"""Read Cursor's sessions: the logs of its agents, and the database of its editor."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from config.places import find_folders
from pipeline.kernel.errors import ForeignDatabaseUnreadable
from pipeline.kernel.store.foreign_database import Condition, ForeignDatabase, open_foreign_database
from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.database_rounds import Round, end_round, report_unreadable
from pipeline.sessions.readers.documents import (
    describe_database,
    describe_file,
    find_workspace_folder,
    list_folder,
    list_user_folders,
    read_file_uri,
)
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, list_blocks, parse_json
from pipeline.sessions.readers.log_reader import LogReader
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_AGENT = "cursor"
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_TEXT_LINE = re.compile(r"(user|assistant):\s*(.*)")
_TEXT_TOOL = re.compile(r"\[(?:Tool call|Tool result|Thinking)\]")
_NOT_IN_SLUGS = re.compile(r"[^A-Za-z0-9]+")


class Reader(LogReader):
    """Reads Cursor."""

    agent: ClassVar[str] = _AGENT

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the logs of sessions, without those of subagents, and the editor's database."""
        databases = list(list_databases(_AGENT, places))
        # The editor also writes logs of its conversations, which say less.
        in_editor = {key for file in databases for key in list_conversations(file.path)}
        projects = places.folder("CURSOR_CONFIG_DIR", ".cursor") / "projects"
        for project in list_folder(projects):
            folder = projects / project.name / "agent-transcripts"
            for entry in list_folder(folder):
                path = folder / entry.name
                if path.stem in in_editor:
                    continue
                yield from describe_file(_AGENT, path if path.suffix else path / f"{entry.name}.jsonl")
        yield from databases

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return read_database(file, mark) if file.path.suffix == ".vscdb" else super().read(file, mark)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> SessionLog:
        """Return the session of a file."""
        folder = next((path for path in file.path.parents if path.name == "agent-transcripts"), file.path.parent)
        # The log names no folder and no times. The caller has the file's times, the best estimate.
        cwd = "" if as_mapping(state.get("head")).get("cwd") else find_folder(folder.parent.name)
        head = SessionHead(_AGENT, file.path.stem, cwd=cwd)
        kind = _CursorText if file.path.suffix == ".txt" else _CursorLog
        return kind(head, state)


def find_folder(slug: str) -> str:
    """Return the only existing folder whose path has this name; empty if there is none, or more than one."""
    name = slug.strip("-").lower()
    # The path is as the person opened it: `/home` is a link on some systems.
    found = find_folders(Path("/"), name, _shorten, follows_links=True)
    if slug[1:2] == "-":
        # A drive of Windows.
        found += find_folders(Path(f"{slug[0]}:/"), name[2:], _shorten, follows_links=True)
    return str(found[0]) if len(found) == 1 else ""


def _shorten(name: str) -> str:
    return _NOT_IN_SLUGS.sub("-", name).strip("-").lower()


class _CursorLog(SessionLog):
    """The entries of a log. Its records have no ids: their numbers are the ids."""

    START: ClassVar[Mapping[str, Any]] = {"number": 0}

    def take_record(self, record: Mapping[str, Any]) -> None:
        # Other records do not count: some versions write none.
        self.saved["number"] += record.get("role") in ("user", "assistant")
        number, content = self.saved["number"], as_mapping(record.get("message")).get("content")
        for position, block in enumerate(list_blocks(content)):
            self._take_block(as_text(record.get("role")), block, f"{number}.{position}")

    def _take_block(self, role: str, block: Mapping[str, Any], key: str) -> None:
        kind = as_text(block.get("type"))
        text = as_text(block.get("text"))
        if kind == "text" and role == "user":
            self._take_prompt(text, key)
        elif kind == "text" and text.strip() != "[REDACTED]":
            self.say(Role.ASSISTANT, text, None, key)
        elif kind in ("tool_use", "tool_call"):
            # The log has no results.
            self.record_call(key, as_text(block.get("name")), block.get("input"), None)
            self.record_result(key, ok=None)
        else:
            self.left_out[LeftOut.OUTPUT if "result" in kind else LeftOut.THINKING] += 1

    def _take_prompt(self, text: str, key: str) -> None:
        # Attached files come before or after what the person typed, and may contain such a tag too.
        words = text.strip()
        if words.startswith(_QUERY):
            words = words.removeprefix(_QUERY).partition(_QUERY_END)[0]
        elif words.endswith(_QUERY_END):
            words = words.removesuffix(_QUERY_END).rpartition(_QUERY)[2]
        elif _QUERY in words:
            self.left_out[LeftOut.INJECTED] += 1
            return
        self.say(Role.USER, words, None, key)


class _CursorText(_CursorLog):
    """The entries of a log as older versions wrote it: text after the name of the speaker."""

    START: ClassVar[Mapping[str, Any]] = {"number": 0, "role": "", "text": ""}

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        super().__init__(head, state)
        self._lines: list[str] = [self.saved["text"]]

    def save(self) -> dict[str, Any]:
        self.saved["text"] = "\n".join(self._lines)
        return super().save()

    def take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if speaker := _TEXT_LINE.fullmatch(text):
            self.settle()
            self.saved["role"], self._lines = speaker[1], [speaker[2]]
        elif self.saved["role"] and text.strip():
            self._lines.append(text)

    def settle(self) -> None:
        role, message = self.saved["role"], "\n".join(self._lines)
        tool = _TEXT_TOOL.search(message)
        self.saved["number"] += bool(role)
        if role == "user":
            self._take_prompt(message, str(self.saved["number"]))
        elif role:
            self.say(Role.ASSISTANT, message[: tool.start()] if tool else message, None, str(self.saved["number"]))
        self.saved["role"], self._lines = "", []


_TABLE = "cursorDiskKV"
_CONVERSATION = "composerData:"
_MESSAGE = "bubbleId:"
_PERSON, _MODEL = 1, 2


def list_databases(agent: str, places: Places) -> Iterator[TranscriptFile]:
    """Yield the database of Cursor's editor."""
    for user in list_user_folders(places, ("Cursor",)):
        yield from describe_database(agent, user / "globalStorage/state.vscdb")


def list_conversations(path: Path) -> set[str]:
    """Return the ids of the conversations in a database, none if it cannot be read now."""
    try:
        with open_foreign_database(path) as db:
            rows = db.rows(_TABLE, ("key",), _keys_with(_CONVERSATION), order="key")
            return {as_text(row["key"]).removeprefix(_CONVERSATION) for row in rows}
    except ForeignDatabaseUnreadable:
        return set()


def read_database(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    """Yield what was said and done in all conversations since a mark."""
    return report_unreadable(_read_database(file, mark), file, mark)


def _read_database(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    with open_foreign_database(file.path) as db:
        if not db.columns(_TABLE):
            raise ForeignDatabaseUnreadable(file.path, f"has no table {_TABLE}")
        round_ = _start_round(db, mark)
        yield from end_round(_Database(db, file, round_).read_conversations(), round_)


def _start_round(db: ForeignDatabase, mark: str | None) -> Round:
    """Return the round at a mark. A changed row gets a new number, but the number of the last row may be used again."""
    latest = db.largest(_TABLE, "rowid")
    round_ = Round.resume(mark, latest)
    proof = as_mapping(parse_json(mark)).get("proof")
    if proof and proof != _prove(db, round_.since):
        round_ = replace(round_, since=round_.since - 1)
    return replace(round_, proof=_prove(db, round_.until))


def _prove(db: ForeignDatabase, number: int) -> str:
    """Return a digest of a row if it is part of a conversation."""
    digest = hashlib.blake2b(digest_size=8)
    for row in db.rows(_TABLE, ("key",), [("rowid", "=", number)]):
        key = as_text(row["key"])
        digest.update(key.encode())
        if key.startswith((_CONVERSATION, _MESSAGE)):
            digest.update(json.dumps(_load(db, key)).encode())
    return digest.hexdigest()


def _load(db: ForeignDatabase, key: str) -> Mapping[str, Any]:
    values = (row["value"] for row in db.rows(_TABLE, ("value",), [("key", "=", key)]))
    return as_mapping(parse_json(next(values, None)))


def _keys_with(prefix: str) -> list[Condition]:
    return [("key", ">=", prefix), ("key", "<", prefix[:-1] + chr(ord(prefix[-1]) + 1))]


class _Database:
    """The conversations of a database in a round."""

    def __init__(self, db: ForeignDatabase, file: TranscriptFile, round_: Round) -> None:
        self._db = db
        self._file = file
        self._round = round_
        self._folders: Mapping[str, str] | None = None

    def read_conversations(self) -> Iterator[SessionPart]:
        for composer_id in sorted(self._list_changed()):
            if composer_id <= self._round.session:
                continue
            conversation = _load(self._db, f"{_CONVERSATION}{composer_id}")
            if conversation:
                yield from self._read_conversation(composer_id, conversation)

    def _list_changed(self) -> set[str]:
        changed = {key.removeprefix(_CONVERSATION) for key in self._list_numbers(_CONVERSATION)}
        if self._round.since:
            # Cursor writes messages before the conversation that lists them.
            changed |= {key.split(":")[1] for key in self._list_numbers(_MESSAGE)}
        return changed

    def _list_numbers(self, prefix: str, *, only_changes: bool = True) -> dict[str, int]:
        conditions = [*_keys_with(prefix), *(self._round.changes("rowid") if only_changes else ())]
        return {row["key"]: row["rowid"] for row in self._db.rows(_TABLE, ("key",), conditions, order="key")}

    def _read_conversation(self, composer_id: str, conversation: Mapping[str, Any]) -> Iterator[SessionPart]:
        head = SessionHead(
            self._file.agent,
            composer_id,
            cwd=self._find_folder(composer_id, conversation),
            title=as_text(conversation.get("name")) or None,
            started_at=as_time(conversation.get("createdAt")),
        )
        log = _ConversationLog(head, {})
        if conversation.get("subagentInfo"):
            log.left_out[LeftOut.SUBAGENT] += 1
        else:
            for key, message in self._list_messages(composer_id, conversation):
                log.take_message(key, message)
                if log.is_full:
                    yield log.part(self._round.mark)
        if not log.is_empty:
            yield log.part(self._round.after(composer_id))

    def _list_messages(
        self, composer_id: str, conversation: Mapping[str, Any]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the messages that changed in the round."""
        # The first versions kept them in the conversation.
        for message in map(as_mapping, as_list(conversation.get("conversation"))):
            yield as_text(message.get("bubbleId")), message
        prefix = f"{_MESSAGE}{composer_id}:"
        numbers = self._list_numbers(prefix, only_changes=False)
        headers = map(as_mapping, as_list(conversation.get("fullConversationHeadersOnly")))
        listed = [key for header in headers if (key := f"{prefix}{as_text(header.get('bubbleId'))}") in numbers]
        last = numbers[listed[-1]] if listed else 0
        # Newer messages are not listed yet; older ones were replaced by the person.
        newer = sorted((number, key) for key, number in numbers.items() if number > last and key not in listed)
        for key in [*listed, *(key for _, key in newer)]:
            if self._round.since < numbers[key] <= self._round.until:
                yield key.removeprefix(prefix), _load(self._db, key)

    def _find_folder(self, composer_id: str, conversation: Mapping[str, Any]) -> str:
        uri = as_mapping(conversation.get("workspaceIdentifier")).get("uri")
        path = as_text(as_mapping(uri).get("fsPath")) or read_file_uri(uri) or as_text(as_mapping(uri).get("path"))
        if path:
            return path
        if self._folders is None:
            # Before version 3.12 only the workspace knew its conversations.
            storage = self._file.path.parents[1] / "workspaceStorage"
            self._folders = dict(_list_folders(storage))
        return self._folders.get(composer_id, "")


def _list_folders(storage: Path) -> Iterator[tuple[str, str]]:
    """Yield the ids of conversations and the folders of their workspaces."""
    for entry in list_folder(storage):
        folder = find_workspace_folder(storage / entry.name)
        path = storage / entry.name / "state.vscdb"
        if not folder or not path.is_file():
            continue
        try:
            with open_foreign_database(path) as db:
                rows = list(db.rows("ItemTable", ("value",), [("key", "=", "composer.composerData")]))
        except ForeignDatabaseUnreadable:
            # Without it, its conversations have no folder.
            continue
        for row in rows:
            for composer in as_list(as_mapping(parse_json(row["value"])).get("allComposers")):
                yield as_text(as_mapping(composer).get("composerId")), folder


class _ConversationLog(SessionLog):
    def take_message(self, key: str, message: Mapping[str, Any]) -> None:
        """Read a message, which is a text, a thought or a tool call."""
        timing = as_mapping(message.get("timingInfo"))
        at = message.get("createdAt") or timing.get("clientStartTime") or timing.get("clientRpcSendTime")
        call = as_mapping(message.get("toolFormerData"))
        if message.get("type") == _PERSON:
            self.say(Role.USER, message.get("text"), at, key)
        elif message.get("type") != _MODEL:
            self.left_out[LeftOut.UNKNOWN] += 1
        elif call.get("name"):
            self._take_call(key, call, at)
        elif message.get("text"):
            self.say(Role.ASSISTANT, message.get("text"), at, key)
        else:
            self.left_out[LeftOut.THINKING if message.get("thinking") else LeftOut.META] += 1

    def _take_call(self, key: str, call: Mapping[str, Any], at: Any) -> None:
        status, result = as_text(call.get("status")), as_mapping(parse_json(call.get("result")))
        name = as_text(call.get("name"))
        if call.get("userDecision") == "rejected" or status == "cancelled" or result.get("rejected") is True:
            self.left_out[LeftOut.NOT_RUN] += 1
            return
        self.record_call(key, name, parse_json(call.get("rawArgs")) or call.get("params"), at)
        code = next((result[field] for field in ("exitCodeV2", "exitCode") if isinstance(result.get(field), int)), None)
        output = as_text(result.get("output")) or as_text(
            as_mapping(parse_json(call.get("error"))).get("clientVisibleErrorMessage")
        )
        ok = {"completed": True, "error": False}.get(status)
        self.record_result(key, ok=ok, output=output, exit_code=code)
        if name.startswith("ask_question"):
            for answer in map(as_mapping, as_list(result.get("answers"))):
                self.say(Role.USER, answer.get("freeformText"), at, f"{key}#answer")
