"""Read the sessions of Codex, whose rollouts are logs; cold ones may be compressed.

A rollout contains most messages and calls twice: as an item, and as an event.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pipeline.kernel.store.turns import Role, hash_text
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, output_text, parse_json
from pipeline.sessions.readers.log_lines import parse_records
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, Said, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog
from pipeline.sessions.readers.tool_calls import read_command, read_patch
from pipeline.sessions.readers.zstd import open_decompressed
from pipeline.text.normalize import normalize_text

# Records that begin with their kind and contain nothing to import.
_HEAD_BYTES = 200
_SKIPPED = {
    b'"type":"compacted"': LeftOut.SUMMARY,
    b'"type":"world_state"': LeftOut.META,
    b'"payload":{"type":"reasoning"': LeftOut.THINKING,
    b'"payload":{"type":"ghost_snapshot"': LeftOut.META,
    b'"payload":{"type":"token_count"': LeftOut.META,
    b'"payload":{"type":"agent_reasoning': LeftOut.THINKING,
}
_SHELLS = frozenset(("exec_command", "shell", "shell_command", "local_shell", "container.exec", "exec"))
_QUESTION = "AskUserQuestion"
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_IDE_CONTEXT = re.compile(
    r"\A\s*# (?:Context from my IDE setup|Files mentioned by the user):.*?## My request for Codex:", re.DOTALL
)
_SHELL_COMMAND = re.compile(
    r"\s*<user_shell_command>\s*<command>(?P<command>.*?)</command>\s*(?:<result>)?(?P<output>.*?)(?:</result>|\Z)",
    re.DOTALL,
)
_CWD = re.compile(r"<cwd>(?P<tag>[^<]+)</cwd>|^Current working directory: (?P<line>.+)$", re.MULTILINE)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_EXIT_CODE = re.compile(r"\A[^\n]*\n?(?:.*\n){0,4}?.*\b(?:exited with code|exit code:?) (-?\d+)", re.IGNORECASE)
# Codex writes one of these instead of an output if a call did not run.
_NOT_RUN = re.compile(
    r"\A(?:unsupported (?:custom tool )?call|patch rejected|approval policy is|failed to parse"
    r"|(?:exec )?command rejected|rejected by user|aborted by user)",
    re.IGNORECASE,
)
_PATCHED_WELL = re.compile(r"\bSuccess\. Updated|\ADone!", re.IGNORECASE)
# The texts of the agent that may be written a second time are the latest.
MOST_TEXTS = 10

Payload = Mapping[str, Any]


class CodexSession(SessionLog):
    """The entries of a rollout."""

    # `held` is the prompt of the conversation, until an event repeats it; later prompts are read from events only.
    START: ClassVar[Mapping[str, Any]] = dict.fromkeys(("is_known", "replays", "has_events", "has_items"), False) | {
        "skips": "",
        "held": {},
        "texts": [],
    }
    STATE_KEY: ClassVar[str] = "codex"

    def __init__(self, head: SessionHead, state: Mapping[str, Any], titles: Mapping[str, str]) -> None:
        """Start with the state of an earlier reading."""
        super().__init__(head, state)
        self._titles = titles
        self._starts: list[int] = []  # The number of entries before each prompt.

    def settle(self) -> None:
        """Take the prompt that was held back."""
        self._release_prompt()
        super().settle()

    def take(self, line: bytes) -> None:
        """Read a line."""
        head = line[:_HEAD_BYTES]
        for start, reason in _SKIPPED.items():
            if start in head:
                self.left_out[reason] += 1
                return
        super().take(line)

    def take_record(self, record: Mapping[str, Any]) -> None:
        """Read a record."""
        kind, payload, at = record.get("type"), as_mapping(record.get("payload")), record.get("timestamp")
        if kind is None and not payload and isinstance(record.get("id"), str):
            # Rollouts of 2025 start with a bare header, and their items have no envelope.
            kind, payload = "session_meta", record
        elif "payload" not in record:
            kind, payload = "response_item", record
        if kind == "session_meta":
            self._take_meta(payload, at)
            return
        self._notice_turn(payload, is_start=kind == "turn_context" or payload.get("type") == "task_started")
        if self.saved["skips"] or self.saved["replays"]:
            self.left_out[self.saved["skips"] or LeftOut.COPY] += 1
            if self.saved["skips"] == LeftOut.UNATTENDED and kind == "event_msg":
                self._leave_out_prompt(payload, at)
        elif kind == "turn_context":
            self.learn_record(cwd=payload.get("cwd"), branch=self.head.branch, at=at)
        elif kind == "compacted" or (
            kind == "response_item" and as_mapping(record.get("metadata")).get("compaction_output")
        ):
            self.left_out[LeftOut.SUMMARY] += 1
        elif kind == "event_msg":
            self._take_event(payload, at)
        elif kind == "response_item":
            self._take_response(payload, at)
        else:
            self.left_out[LeftOut.META if kind == "token_usage_record" else LeftOut.UNKNOWN] += 1

    def _take_meta(self, payload: Payload, at: Any) -> None:
        session_id = as_text(payload.get("id")) or as_text(payload.get("session_id"))
        if self.saved["is_known"]:
            # A fork continues with the header of the session that it copies.
            self.saved["replays"] |= session_id != self.head.id and _UUID7.fullmatch(self.head.id) is not None
            self.left_out[LeftOut.META] += 1
            return
        self.saved["is_known"] = True
        parent = as_text(payload.get("forked_from_id"))
        self.head = replace(self.head, id=session_id or self.head.id, parent=parent or None)
        self.learn(
            cwd=as_text(payload.get("cwd")),
            branch=as_text(as_mapping(payload.get("git")).get("branch")),
            title=self._titles.get(self.head.id),
        )
        self.learn_record(cwd=self.head.cwd, branch=self.head.branch, at=payload.get("timestamp") or at)
        self.saved["replays"] = bool(parent) and _UUID7.fullmatch(self.head.id) is not None
        self.saved["skips"] = _reason_to_skip(payload)

    def _notice_turn(self, payload: Payload, *, is_start: bool) -> None:
        """Note where the copied turns of a fork end: ids are ordered by time, and a fork is younger than its copies."""
        turn_id = as_text(payload.get("turn_id"))
        if self.saved["replays"] and (turn_id or is_start):
            self.saved["replays"] = _UUID7.fullmatch(turn_id) is not None and turn_id < self.head.id

    def _take_event(self, payload: Payload, at: Any) -> None:
        kind, item = payload.get("type"), _read_item(payload)
        if kind == "user_message":
            self._say_prompt(payload.get("message"), at, payload.get("turn_id"))
        elif kind == "agent_message":
            self._say_answer("event", payload.get("message"), at, payload.get("turn_id"))
        elif kind == "thread_name_updated":
            self.learn(title=as_text(payload.get("thread_name") or payload.get("name")))
        elif item.get("type") == "UserMessage":
            self._say_prompt(_read_spoken_text(item), at, item.get("id"))
        elif item.get("type") == "AgentMessage":
            self._say_answer("event", _read_spoken_text(item), at, item.get("id"))
        elif item:
            self._take_item(item, at)
        else:
            self.left_out[LeftOut.META] += 1
            if kind == "thread_rolled_back":
                self._roll_back(payload.get("num_turns"))
            elif kind in ("task_started", "task_complete", "turn_aborted"):
                self._release_prompt()
                if kind == "turn_aborted":
                    self.leave_unanswered()

    def _leave_out_prompt(self, payload: Payload, at: Any) -> None:
        item = _read_item(payload)
        if payload.get("type") == "user_message" or item.get("type") == "UserMessage":
            self.leave_out_prompt(payload.get("message") or _read_spoken_text(item), at, item.get("id"))

    def _roll_back(self, count: Any) -> None:
        """Take back the last turns: each starts with a prompt."""
        self._release_prompt()
        turns = min(count, len(self._starts)) if isinstance(count, int) else 0
        kept = len(self._starts) - max(turns, 0)
        start = [*self._starts, len(self.entries)][kept]
        self.may_be_rewound = True
        self.rolled_back += [each for each in self.entries[start:] if isinstance(each, Said)]
        self._starts = self._starts[:kept]

    def _say_prompt(self, text: Any, at: Any, record_id: Any) -> None:
        self.saved["has_events"], self.saved["held"] = True, {}
        self._start_turn(text, at, record_id)

    def _start_turn(self, text: Any, at: Any, record_id: Any) -> None:
        self.drop_open_calls()
        self._starts.append(len(self.entries))
        self.say(Role.USER, _IDE_CONTEXT.sub("", as_text(text)), at, record_id)

    def _release_prompt(self) -> None:
        """Add the prompt that no event repeated."""
        held, self.saved["held"] = self.saved["held"], {}
        if held and not self.saved["has_events"]:
            self._start_turn(held.get("text"), held.get("at"), held.get("id"))

    def _say_answer(self, channel: str, text: Any, at: Any, record_id: Any) -> None:
        self._release_prompt()
        content = normalize_text(as_text(text))
        # A mark is stored: it must not keep what was said.
        digest = format(hash_text(Role.ASSISTANT, content), "x")
        twin = next((pair for pair in self.saved["texts"] if pair[1:] == [digest] and pair[0] != channel), None)
        if twin is not None:
            self.saved["texts"].remove(twin)
        elif self.say(Role.ASSISTANT, content, at, record_id):
            self.saved["texts"] = [*self.saved["texts"], [channel, digest]][-MOST_TEXTS:]

    def _take_response(self, payload: Payload, at: Any) -> None:
        kind = as_text(payload.get("type"))
        if kind == "message" or (not kind and payload.get("role")):
            self._take_message(payload, at)
        elif kind in _CALLS:
            self._release_prompt()
            self._take_call(payload, at)
        elif kind.removesuffix("_output") in _CALLS:
            self._take_output(payload, at)
        else:
            self.left_out[LeftOut.THINKING if kind == "reasoning" else LeftOut.META] += 1

    def _take_message(self, payload: Payload, at: Any) -> None:
        text, role = _read_spoken_text(payload), payload.get("role")
        command = _SHELL_COMMAND.match(text)
        if role == "assistant":
            self._say_answer("response", text, at, payload.get("id"))
        elif role != "user":
            self.left_out[LeftOut.INJECTED] += 1
        elif command and not self.saved["has_items"]:
            key = as_text(payload.get("id")) or f"!{at}"
            self.call(key, "Bash", {"command": command["command"].strip()}, at)
            code = _read_exit_code(command["output"])
            ok = None if code is None else code == 0
            self.finish(key, ok=ok, output=_read_text(command["output"]), exit_code=code)
        elif command or _is_harness(payload):
            self.left_out[LeftOut.INJECTED] += 1
        else:
            self._release_prompt()
            folder = None if self.head.cwd else _CWD.search(text)
            if folder:
                self.learn(cwd=folder["tag"] or folder["line"])
            if self.saved["has_events"]:
                self.left_out[LeftOut.COPY] += 1
            elif text.strip():
                self.saved["held"] = {"text": as_text(text), "at": as_text(at), "id": as_text(payload.get("id"))}

    def _take_call(self, payload: Payload, at: Any) -> None:
        key = as_text(payload.get("call_id")) or as_text(payload.get("id"))
        name, arguments = as_text(payload.get("name")) or "local_shell", _read_arguments(payload)
        if (namespace := as_text(payload.get("namespace"))) or name == _QUESTION:
            # A tool of a server, which may have the name of a tool of Codex.
            self.call(key, f"{namespace}__{name}", arguments, at)
            return
        patch = as_text(arguments.get("patch") or arguments.get("input")) if name == "apply_patch" else ""
        if patch:
            for number, change in enumerate(read_patch(patch)):
                tool = "Write" if change.is_new else "Edit"
                self.call(f"{key}/{number}", tool, {"file_path": change.file}, at, change.removed)
        elif name in _SHELLS:
            command = read_command(arguments.get("command") or arguments.get("cmd") or arguments.get("input"))
            self.call(key, "Bash", {"command": command}, at)
        elif name == "request_user_input":
            self.call(key, _QUESTION, {}, at)
            for question in as_list(arguments.get("questions")):
                self.say(Role.ASSISTANT, as_mapping(question).get("question"), at, payload.get("id"))
        else:
            self.call(key, name, arguments, at)

    def _take_output(self, payload: Payload, at: Any) -> None:
        raw = payload.get("output")
        output = raw if isinstance(raw, str) else output_text(raw)
        calls = self.list_calls(payload.get("call_id"))
        if not calls:
            self.left_out[LeftOut.OUTPUT] += 1
        ok = _read_success(raw if isinstance(raw, dict) else output)
        for key in calls:
            call = self.calls[key]
            if ok is None:
                self.drop_call(key)
                continue
            is_patch, code = key != as_text(payload.get("call_id")), _read_exit_code(output)
            is_applied = code == 0 or _PATCHED_WELL.search(output) is not None
            succeeded = is_applied if is_patch else None if "aborted by user" in output[:100] else ok
            self.finish(key, ok=succeeded, output=_read_text(output), exit_code=code)
            self._answer(call.tool, output, at, key)

    def _answer(self, tool: str, output: str, at: Any, key: str) -> None:
        """Add what the person answered to questions."""
        answers = as_mapping(as_mapping(parse_json(output)).get("answers")) if tool == _QUESTION else {}
        for answer in answers.values():
            texts = as_list(as_mapping(answer).get("answers")) or [answer]
            self.say(Role.USER, ", ".join(filter(None, map(as_text, texts))), at, f"{key} answer")

    def _take_item(self, item: Payload, at: Any) -> None:
        read: Callable[[Payload, Any, str], None] | None = {
            "CommandExecution": self._take_command,
            "FileChange": self._take_change,
            "McpToolCall": self._take_mcp_call,
        }.get(as_text(item.get("type")))
        if read is None:
            self.left_out[LeftOut.META] += 1
            return
        self._release_prompt()
        self.saved["has_items"] = True
        key = as_text(item.get("id"))
        self._drop_twin(key, as_text(item.get("source")))
        if _read_item_status(item) is None:
            self.left_out[LeftOut.NOT_RUN] += 1
        else:
            read(item, at, key or f"item {at}")

    def _drop_twin(self, key: str, source: str) -> None:
        """Forget the call that an item repeats: the call with its id, or the latest call that runs something."""
        own = self.list_calls(key) if key else []
        latest = [call for call, use in self.calls.items() if use.tool in ("Bash", "Edit", "Write")][-1:]
        for call in own or ([] if source == "user_shell" else latest):
            del self.calls[call]

    def _take_command(self, item: Payload, at: Any, key: str) -> None:
        code = item.get("exit_code")
        self.call(key, "Bash", {"command": read_command(item.get("command"))}, at)
        output = as_text(item.get("aggregated_output")) or output_text(item)
        self.finish(key, ok=_read_item_status(item), output=output, exit_code=code if isinstance(code, int) else None)

    def _take_change(self, item: Payload, at: Any, key: str) -> None:
        for number, (file, change) in enumerate(as_mapping(item.get("changes")).items()):
            fields = as_mapping(change)
            diff = as_text(fields.get("unified_diff")).splitlines()
            removed = [line[1:] for line in diff if line.startswith("-") and not line.startswith("---")]
            tool = "Write" if fields.get("type") == "add" else "Edit"
            self.call(f"{key}/{number}", tool, {"file_path": file}, at, "\n".join(removed))
            self.finish(f"{key}/{number}", ok=_read_item_status(item))

    def _take_mcp_call(self, item: Payload, at: Any, key: str) -> None:
        tool = f"mcp__{as_text(item.get('server'))}__{as_text(item.get('tool'))}"
        self.call(key, tool, item.get("arguments"), at)
        self.finish(key, ok=_read_item_status(item), output=output_text(item.get("error") or item.get("result")))


def _reason_to_skip(payload: Payload) -> str:
    """Return why no person drove a session; empty if a person did."""
    source, thread_source = payload.get("source"), as_text(payload.get("thread_source"))
    if isinstance(source, dict) or thread_source == "subagent":
        is_spawned = thread_source in ("", "subagent") and "thread_spawn" in str(source)
        return LeftOut.SUBAGENT if is_spawned or thread_source == "subagent" else LeftOut.UNATTENDED
    return LeftOut.UNATTENDED if thread_source not in ("", "user") or source in ("mcp", "exec") else ""


def _is_harness(payload: Payload) -> bool:
    """Return whether Codex says that it wrote a message of the user."""
    passed = as_mapping(payload.get("internal_chat_message_metadata_passthrough"))
    kinds = [
        as_mapping(as_mapping(item).get("provenance")).get("type")
        for item in as_list(passed.get("content_item_metadata"))
    ]
    return bool(kinds) and "user" not in kinds


def _read_text(output: str) -> str:
    """Return an output without the lines about it."""
    text = as_text(as_mapping(parse_json(output)).get("output")) or output
    return text.partition("\nOutput:\n")[2] or text


def _read_item(payload: Payload) -> Payload:
    """Return the item of a record that completes an item; empty for other records."""
    return as_mapping(payload.get("item")) if payload.get("type") == "item_completed" else {}


def _read_item_status(item: Payload) -> bool | None:
    """Return whether an item succeeded; None if it did not run."""
    if item.get("status") not in ("completed", "failed"):
        return None
    return item["status"] == "completed" and item.get("exit_code") in (None, 0)


def _read_spoken_text(item: Payload) -> str:
    """Return the text of a message."""
    parts = map(as_mapping, as_list(item.get("content")))
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return "\n".join(texts) or str(item.get("text") or "")


def _read_arguments(call: Payload) -> Payload:
    """Return the arguments of a call, which may be a JSON text."""
    if isinstance(call.get("action"), dict):
        return as_mapping(call["action"])
    arguments = call.get("arguments", call.get("input"))
    parsed = parse_json(arguments)
    return parsed if isinstance(parsed, dict) else {"input": arguments}


def _read_success(output: Any) -> bool | None:
    """Return whether a call succeeded, by its output; None if it did not run."""
    if isinstance(output, str) and _NOT_RUN.match(output):
        return None
    return as_mapping(parse_json(output)).get("success") is not False and _read_exit_code(output) in (None, 0)


def _read_exit_code(output: Any) -> int | None:
    """Return the exit code that an output states."""
    fields = as_mapping(parse_json(output))
    metadata = fields.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else fields.get("exit_code")
    if isinstance(code, int):
        return code
    match = _EXIT_CODE.search(output[:2000]) if isinstance(output, str) else None
    return None if match is None else int(match[1])


PLAIN, COMPRESSED = ".jsonl", ".jsonl.zst"
FOLDERS = ("sessions", "archived_sessions")
# The names of sessions are read from the end of a file.
INDEX_BYTES = 4 << 20
_ID = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(?P<id>[^_]+)")


class Reader(LogReader):
    """Reader of Codex' rollouts."""

    agent: ClassVar[str] = "codex"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the rollouts, archived ones too; of a compressed one and its original only the original."""
        home = places.folder("CODEX_HOME", ".codex")
        for folder in FOLDERS:
            yield from list_files(self.agent, home / folder, _is_rollout)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> CodexSession:
        """Return the session of a file."""
        match = _ID.match(file.path.name)
        session_id = match["id"].partition(".")[0] if match else file.path.name.partition(".")[0]
        return CodexSession(SessionHead(self.agent, session_id), state, _find_titles(file.path))

    def open_log(self, file: TranscriptFile) -> BinaryIO:
        """Open a rollout, decompressed."""
        return open_decompressed(file.path) if file.path.name.endswith(COMPRESSED) else super().open_log(file)


def _is_rollout(path: Path) -> bool:
    if path.name.endswith(COMPRESSED):
        return not path.with_suffix("").exists()
    return path.suffix == PLAIN


def _find_titles(rollout: Path) -> Mapping[str, str]:
    """Return the titles of sessions by id, from the index in Codex' folder."""
    home = next((parent.parent for parent in rollout.parents if parent.name in FOLDERS), None)
    if home is None:
        return {}
    index = home / "session_index.jsonl"
    try:
        status = index.stat()
        return _read_titles(index, status.st_mtime_ns, status.st_size)
    except OSError:
        return {}


@lru_cache(maxsize=2)
def _read_titles(index: Path, _modified: int, size: int) -> Mapping[str, str]:
    with index.open("rb") as file:
        file.seek(max(0, size - INDEX_BYTES))
        lines = file.read(INDEX_BYTES).splitlines()
    records = (record for line in lines for record in parse_records(line) or ())
    titles = {as_text(record.get("id")): as_text(record.get("thread_name")) for record in records}
    return {session_id: title for session_id, title in titles.items() if title}
