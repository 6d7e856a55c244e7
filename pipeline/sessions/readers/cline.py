"""Read the sessions of Cline, and the tasks of its extension for VS Code and of those made from it."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.documents import (
    EDITORS,
    build_problem,
    continue_session,
    describe_file,
    find_files,
    list_folder,
    list_user_folders,
    load_document,
)
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, list_blocks, output_text, parse_json
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog

_AGENT = "cline"
_MESSAGES = "api_conversation_history.json"

# The person's words are in a tag at the start of a text, after one sentence of the program.
_PERSON = re.compile(r"[^<]{0,2000}+<(?P<tag>task|feedback|user_message|answer|user_input)(?: [^<>]*+)?>")
# Files, folders and pages that the person mentioned, in full.
_MENTIONED = re.compile(
    r"<(file_content|folder_content|url_content|file_attachments|workspace_diagnostics|git_commit|git_working_state"
    r"|terminal_output|files|explicit_instructions)(?: [^<>]*+)?>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_ENVIRONMENT = re.compile(r"\s*<environment_details>")
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.{1,1000}?)\) Files")
_RESULT = re.compile(r"\s*\[(?P<tool>\w+)(?: for '.*?')?\] Result:\s*(?P<output>.*)", re.DOTALL)
# The results of these tools start with words of the program or of the person. Those of all other tools may start with
# the text of a file, a page or a server, which may imitate both.
_ANSWERED = frozenset(("ask_followup_question", "attempt_completion", "plan_mode_respond", "new_task", "switch_mode"))
_REJECTABLE = frozenset(
    (
        *("execute_command", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace"),
        *("edit_file", "update_todo_list"),
    )
)
_REJECTED = re.compile(r"\s*The user (?:denied|approved) this operation and provided the following ")
_XML_KEY = "xml#"
_HEAD_CHARS = 300
# Names of elements without an end that are looked for in a text.
MOST_NAMES = 50
_OUTPUT = re.compile(r"\ACommand (?:executed|failed)")

# Before models called tools with JSON, the call was XML in the answer.
_XML_TOOLS = (
    "execute_command|write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace|edit_file|read_file"
    "|search_files|list_files|list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|new_task"
    "|attempt_completion|ask_followup_question|plan_mode_respond|switch_mode|update_todo_list"
)
_XML_CALL = re.compile(rf"<({_XML_TOOLS})>")
_XML_ARGUMENT = re.compile(r"<(\w{1,100})>")
_XML_THINKING = re.compile(r"<(thinking)>")
# Tools whose argument is said to the person.
_SPOKEN = {"attempt_completion": "result", "ask_followup_question": "question", "plan_mode_respond": "response"}


class Reader:
    """Reads Cline."""

    agent: ClassVar[str] = _AGENT

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the messages of sessions; those of subagents are other files in the same folders."""
        sessions = _find_sessions(places)
        for entry in list_folder(sessions):
            yield from describe_file(_AGENT, sessions / entry.name / f"{entry.name}.messages.json")
        yield from _list_tasks(_AGENT, places, ("saoudrizwan.claude-dev",))

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return _read_document(file, mark)


class RooReader(Reader):
    """Reads Roo Code and Kilo Code's extension, which were made from Cline."""

    agent: ClassVar[str] = "roo-code"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the tasks."""
        return _list_tasks(self.agent, places, ("rooveterinaryinc.roo-cline", "kilocode.kilo-code"))


def _find_sessions(places: Places) -> Path:
    data = places.folder("CLINE_DATA_DIR", str(places.folder("CLINE_DIR", ".cline") / "data"))
    return places.folder("CLINE_SESSION_DATA_DIR", str(data / "sessions"))


def _read_document(file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    """Yield what was said and done in a session or a task since a mark."""
    document, problem = load_document(file.path)
    if problem:
        yield build_problem(file, mark, problem, file.path.parent.name)
        return
    log, messages = _open_task(file, document) if file.path.name == _MESSAGES else _open_session(file, document)
    if messages is None:
        log.left_out[LeftOut.SUBAGENT] += 1
    else:
        log.take_messages(messages)
    yield from continue_session(log, mark)


def _open_session(file: TranscriptFile, document: Any) -> tuple["ClineLog", Any]:
    """Return a session and its messages; None for those of a subagent."""
    session_id, content = file.path.parent.name, as_mapping(document)
    manifest = as_mapping(load_document(file.path.with_name(f"{session_id}.json"))[0])
    metadata = as_mapping(manifest.get("metadata"))
    head = SessionHead(
        _AGENT,
        session_id,
        cwd=as_text(manifest.get("cwd")) or as_text(manifest.get("workspace_root")),
        title=as_text(metadata.get("title")) or None,
        started_at=as_time(manifest.get("started_at") or manifest.get("created_at")),
        parent=as_text(as_mapping(metadata.get("fork")).get("forkedFromSessionId")) or None,
    )
    is_subagent = content.get("agent") in ("subagent", "teammate")
    return ClineLog(head, {}), None if is_subagent else as_list(content.get("messages"))


def _open_task(file: TranscriptFile, messages: Any) -> tuple["ClineLog", Any]:
    """Return a task and its messages; None for those of a subtask, whose prompts another task wrote."""
    task_id, item = file.path.parent.name, _find_item(file.path.parent)
    is_subtask = bool(item.get("parentTaskId"))
    head = SessionHead(
        file.agent,
        task_id,
        cwd=as_text(item.get("workspace")) or as_text(item.get("cwdOnTaskInitialization")),
        title=None if is_subtask else as_text(item.get("task"))[:200] or None,
        # The id of a task is the time at which it was created.
        started_at=as_time(int(task_id)) if task_id.isdigit() else as_time(item.get("ts")),
    )
    return _TaskLog(head, {}), None if is_subtask else as_list(messages)


def _list_tasks(agent: str, places: Places, extensions: tuple[str, ...]) -> Iterator[TranscriptFile]:
    """Yield the tasks of extensions in all editors."""
    for user in list_user_folders(places, EDITORS):
        for extension in extensions:
            yield from find_files(agent, user / "globalStorage" / extension, f"tasks/*/{_MESSAGES}")


def _find_item(folder: Path) -> Mapping[str, Any]:
    """Return what the extension's list of tasks says of a task."""
    document, _ = load_document(folder / "history_item.json")
    if isinstance(document, dict):
        return document
    listed = folder.parents[1] / "state/taskHistory.json"
    return _load_items(listed, listed.stat().st_mtime_ns).get(folder.name, {}) if listed.is_file() else {}


@lru_cache(maxsize=4)
def _load_items(path: Path, _modified: int) -> Mapping[str, Mapping[str, Any]]:
    document, _ = load_document(path)
    return {as_text(item.get("id")): item for item in map(as_mapping, as_list(document))}


class ClineLog(SessionLog):
    """A session's entries. `is_tagged`: the person's words are always in tags, all other text is the program's."""

    is_tagged = False

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        """Start without calls."""
        super().__init__(head, state)
        # The tools of calls by id, and the tool whose output is the next text.
        self._tools: dict[str, str] = {}
        self._awaited = ""

    def take_messages(self, messages: Any) -> None:
        """Read the messages of a session."""
        for number, message in enumerate(map(as_mapping, as_list(messages))):
            metadata = as_mapping(message.get("metadata"))
            is_summary = message.get("isSummary") or message.get("isTruncationMarker")
            if is_summary or as_text(metadata.get("kind")).startswith("compaction"):
                self.left_out[LeftOut.SUMMARY] += 1
                continue
            if metadata.get("displayRole") == "system":
                # The text of a hook.
                self.left_out[LeftOut.INJECTED] += 1
                continue
            key = as_text(message.get("id")) or f"{message.get('ts') or ''}#{number}"
            for position, block in enumerate(list_blocks(message.get("content"))):
                name = f"{key}.{position}" if position else key
                if message.get("role") == "user":
                    self._take_input(block, message.get("ts"), name)
                elif message.get("role") == "assistant":
                    self._take_answer(block, message.get("ts"), name)
        self.drop_open_calls()

    def _take_input(self, block: Mapping[str, Any], at: Any, key: str) -> None:
        text = as_text(block.get("text"))
        if block.get("type") == "tool_result":
            self._take_result(as_text(block.get("tool_use_id")), block, at, key)
        elif block.get("type") != "text":
            self.left_out[LeftOut.INJECTED] += 1
        elif result := _RESULT.match(text):
            self._awaited = result["tool"]
            if result["output"].strip():
                self._take_xml_result(result["output"], at, key)
        elif self._awaited:
            # Without output, the next block is the output.
            self._take_xml_result(text, at, key)
        else:
            self._take_text(text, at, key)

    def _take_xml_result(self, output: str, at: Any, key: str) -> None:
        tool, self._awaited = self._awaited, ""
        self._finish_xml(output)
        if not self._take_answer_to(tool, output, at, key):
            self.left_out[LeftOut.OUTPUT] += 1

    def _take_text(self, text: str, at: Any, key: str) -> None:
        if folder := _FOLDER.search(text):
            # The format has no other field for it in old tasks.
            self.learn(cwd=folder[1])
        if (words := _read_tagged(text, has_lead=self.is_tagged)) is not None:
            self.say(Role.USER, words, at, key)
        elif self.is_tagged or _ENVIRONMENT.match(text):
            self.left_out[LeftOut.INJECTED] += 1
        else:
            self.say(Role.USER, text, at, key)

    def _take_answer_to(self, tool: str, output: str, at: Any, key: str) -> bool:
        """Add what the person answered to a tool, or said when it was rejected; return whether there was something."""
        is_person = tool in _ANSWERED or (tool in _REJECTABLE and _REJECTED.match(output) is not None)
        words = _read_tagged(output, has_lead=True) if is_person else None
        return words is not None and self.say(Role.USER, words, at, key)

    def _take_result(self, call: str, block: Mapping[str, Any], at: Any, key: str) -> None:
        content = parse_json(block.get("content")) if _is_json(block.get("content")) else block.get("content")
        results = [as_mapping(result) for result in as_list(content) or [content]]
        for number, result in enumerate(results):
            if not isinstance(result.get("success"), bool):
                continue
            one = f"{call}.{number}" if number else call
            output = as_text(result.get("result")) or as_text(result.get("error"))
            self.record_result(one, ok=result["success"], output=output)
        if call in self.calls:
            output = output_text(content)
            self._finish(call, output, failed=True if block.get("is_error") else bool(_find_failure(output)))
        self._take_answer_to(self._tools.pop(call, ""), output_text(content), at, key)

    def _take_answer(self, block: Mapping[str, Any], at: Any, key: str) -> None:
        kind = block.get("type")
        if kind == "text":
            self._take_answer_text(as_text(block.get("text")), at, key)
        elif kind == "tool_use":
            name, arguments = as_text(block.get("name")), as_mapping(block.get("input"))
            self._tools[as_text(block.get("id"))] = name
            if name in _SPOKEN:
                self.say(Role.ASSISTANT, arguments.get(_SPOKEN[name]), at, key)
            else:
                self._record(as_text(block.get("id")) or key, name, arguments, at)
        else:
            self.left_out[LeftOut.THINKING] += 1

    def _record(self, key: str, name: str, arguments: Mapping[str, Any], at: Any) -> None:
        commands = as_list(arguments.get("commands"))
        if len(commands) < 2:
            self.record_call(key, name, arguments, at)
            return
        # Each command has a result.
        for number, command in enumerate(commands):
            self.record_call(f"{key}.{number}" if number else key, name, {"commands": [command]}, at)

    def _take_answer_text(self, text: str, at: Any, key: str) -> None:
        rest, calls = _take_tagged(text, _XML_CALL)
        words = [_take_tagged(rest, _XML_THINKING)[0].strip()]
        arguments = [
            {tag: inner.strip("\n") for tag, inner in _take_tagged(call, _XML_ARGUMENT)[1]} for _, call in calls
        ]
        spoken = (
            given.get(_SPOKEN[tool], "") for (tool, _), given in zip(calls, arguments, strict=True) if tool in _SPOKEN
        )
        self.say(Role.ASSISTANT, "\n\n".join(filter(None, [*words, *spoken])), at, key)
        for number, ((tool, _), given) in enumerate(zip(calls, arguments, strict=True)):
            if tool not in _SPOKEN:
                # The id says that the call waits for a result in a text.
                self.record_call(f"{_XML_KEY}{key}.{number}", tool, given, at)

    def _finish_xml(self, output: str) -> None:
        """Add the oldest open call of an answer's text with its output."""
        key = next((key for key in self.calls if key.startswith(_XML_KEY)), None)
        if key is not None:
            self._finish(key, output, failed=_find_failure(output))

    def _finish(self, key: str, output: str, *, failed: bool | None) -> None:
        if "user denied" in output[:_HEAD_CHARS]:
            self.drop_call(key)
        else:
            self.record_result(key, ok=None if failed is None else not failed, output=output)


class _TaskLog(ClineLog):
    """Tasks mark all that the person wrote with tags."""

    is_tagged = True


def unwrap_prompt(text: str) -> str:
    """Return what the person wrote of the text of a prompt, which may be in tags."""
    words = _read_tagged(text, has_lead=False)
    return text if words is None else words


def _read_tagged(text: str, *, has_lead: bool) -> str | None:
    """Return what is in the person's tag at the start of a text; None if it starts with something else."""
    start = _PERSON.match(text if has_lead else text.lstrip())
    if start is None or (not has_lead and not text.lstrip().startswith("<")):
        return None
    words = start.string[start.end() :]
    end = words.find(f"</{start['tag']}>")
    return _MENTIONED.sub("", words if end < 0 else words[:end])


def _take_tagged(text: str, opening: re.Pattern[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return a text without its elements, and the names and contents of these elements.

    An element without an end is text.
    """
    kept, elements, unclosed, position = [], [], set[str](), 0
    while (start := opening.search(text, position)) is not None and len(unclosed) < MOST_NAMES:
        name = start[1]
        end = -1 if name in unclosed else text.find(f"</{name}>", start.end())
        if end < 0:
            # No later element of this name has an end.
            unclosed.add(name)
            kept.append(text[position : start.end()])
            position = start.end()
            continue
        kept.append(text[position : start.start()])
        elements.append((name, text[start.end() : end]))
        position = end + len(name) + 3
    return "".join([*kept, text[position:]]), elements


def _find_failure(output: str) -> bool | None:
    """Return whether an output says that its call failed; None if it does not tell."""
    head = output.lstrip()[:_HEAD_CHARS]
    if head.startswith(("Error", "The tool execution failed", "[ERROR]", "<error>")) or '"status":"error"' in head:
        return True
    return False if _OUTPUT.match(head) or "successfully" in head else None


def _is_json(content: Any) -> bool:
    return isinstance(content, str) and content.lstrip()[:1] in ("{", "[")
