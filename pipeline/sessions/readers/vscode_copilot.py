"""Read the sessions of Copilot Chat in VS Code."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.documents import (
    MAX_DOCUMENT_BYTES,
    VS_CODE,
    build_problem,
    continue_session,
    describe_file,
    find_workspace_folder,
    list_folder,
    list_user_folders,
    load_document,
    read_file_uri,
)
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, as_time, output_text
from pipeline.sessions.readers.log_lines import parse_records
from pipeline.sessions.readers.log_reader import SETTLED_S
from pipeline.sessions.readers.reader import Places, SessionHead, SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog
from pipeline.sessions.readers.tool_calls import EDITING_TOOLS

# The result of the question whether a tool may run.
_DENIED = 0
# The kinds of changes to an object.
_WHOLE, _SET, _APPEND, _DELETE = 0, 1, 2, 3


class Reader:
    """Reads Copilot Chat: a JSON document per session, in newer versions a log of its changes."""

    agent: ClassVar[str] = "vscode-copilot"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the sessions of all workspaces and of windows without one."""
        for user in list_user_folders(places, VS_CODE):
            storage = user / "workspaceStorage"
            folders = [storage / entry.name / "chatSessions" for entry in list_folder(storage)]
            for folder in [*folders, user / "globalStorage/emptyWindowChatSessions"]:
                paths = {entry.name: folder / entry.name for entry in list_folder(folder)}
                for name, path in paths.items():
                    # A document stays after it was converted to a log.
                    if path.suffix == ".jsonl" or (path.suffix == ".json" and f"{name}l" not in paths):
                        yield from describe_file(self.agent, path)

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        document, problem = _replay(file.path) if file.path.suffix == ".jsonl" else load_document(file.path)
        session = as_mapping(document)
        if not session:
            if problem or file.size:
                yield build_problem(file, mark, problem or f"{file.path.name} contains no session", file.path.stem)
            return
        head = SessionHead(
            self.agent,
            as_text(session.get("sessionId")) or file.path.stem,
            cwd=find_workspace_folder(file.path.parents[1]) if file.path.parent.name == "chatSessions" else "",
            title=as_text(session.get("customTitle")) or None,
            started_at=as_time(session.get("creationDate")),
        )
        log = _ChatLog(head, {})
        if problem:
            log.report(problem)
        is_settled = time.time() - file.modified > SETTLED_S
        for request in map(as_mapping, as_list(session.get("requests"))):
            log.take_request(request, is_over=is_settled or bool(request.get("result")))
        yield from continue_session(log, mark)


def _replay(path: Path) -> tuple[Any, str]:
    """Return the object that VS Code's log of its changes describes, and a problem if a change could not be read.

    A change names its kind, its path of names and positions, and its value. An append may cut the list first.
    """
    state: Any = None
    broken = 0
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            return None, f"{path.name} is larger than {MAX_DOCUMENT_BYTES >> 20} MiB"
        with path.open("rb") as lines:
            for line in lines:
                # The last line may be torn.
                for change in parse_records(line) or ():
                    if _read_kind(change) == _WHOLE:
                        state = change.get("v")
                    else:
                        broken += not _apply(state, change)
    except OSError as error:
        return None, f"{path.name} cannot be read: {error.strerror}"
    return state, f"{path.name} has {broken} unreadable changes" if broken else ""


def _read_kind(change: Mapping[str, Any]) -> int:
    kind = change.get("kind")
    return int(kind) if isinstance(kind, int | str) and str(kind).isdigit() else -1


def _apply(state: Any, change: Mapping[str, Any]) -> bool:
    kind, keys, value = _read_kind(change), as_list(change.get("k")), change.get("v")
    if not keys:
        return False
    try:
        parent = state
        for key in keys[:-1]:
            parent = parent[key]
        if kind == _SET and keys[-1] == len(parent) and isinstance(parent, list):
            parent.append(value)
        elif kind == _SET:
            parent[keys[-1]] = value
        elif kind == _APPEND:
            items = parent.setdefault(keys[-1], []) if isinstance(parent, dict) else parent[keys[-1]]
            if isinstance(change.get("i"), int):
                del items[change["i"] :]
            items.extend(as_list(value))
        elif kind == _DELETE:
            del parent[keys[-1]]
    except (KeyError, IndexError, TypeError, AttributeError):
        return False
    return kind in (_SET, _APPEND, _DELETE)


class _ChatLog(SessionLog):
    def take_request(self, request: Mapping[str, Any], *, is_over: bool) -> None:
        """Read a prompt, and its answer if it is over."""
        at, key = request.get("timestamp"), as_text(request.get("requestId"))
        if request.get("shouldBeRemovedOnSend") is not None or request.get("isHidden"):
            self.left_out[LeftOut.TAKEN_BACK] += 1
            return
        result = as_mapping(request.get("result"))
        if as_mapping(result.get("metadata")).get("acceptedConfirmationData") or request.get("isSystemInitiated"):
            # The program wrote it when a button was pressed.
            self.left_out[LeftOut.META] += 1
        else:
            message = request.get("message")
            self.say(Role.USER, message if isinstance(message, str) else as_mapping(message).get("text"), at, key)
        if as_list(as_mapping(request.get("variableData")).get("variables")):
            self.left_out[LeftOut.INJECTED] += 1
        if is_over:
            self._take_response(as_list(request.get("response")), _list_calls(result), at, key)

    def _take_response(self, items: list[Any], calls: Mapping[str, tuple[str, Any]], at: Any, key: str) -> None:
        words: list[str] = []
        edited: set[str] = set()
        for number, item in enumerate(map(as_mapping, items)):
            kind, name = as_text(item.get("kind")), f"{key}.{number}"
            if text := _read_text(kind, item):
                words.append(text)
                continue
            if words and kind in ("toolInvocationSerialized", "textEditGroup", "questionCarousel"):
                self.say(Role.ASSISTANT, "".join(words), at, name)
                words = []
            if kind == "toolInvocationSerialized":
                self._take_call(item, calls, at, edited)
            elif kind == "textEditGroup":
                self._take_edit(item, at, name, edited)
            elif kind == "questionCarousel":
                self._take_answers(item, at, name)
            else:
                self.left_out[LeftOut.THINKING if kind == "thinking" else LeftOut.META] += 1
        self.say(Role.ASSISTANT, "".join(words), at, f"{key}.end")

    def _take_call(
        self, item: Mapping[str, Any], calls: Mapping[str, tuple[str, Any]], at: Any, edited: set[str]
    ) -> None:
        confirmed = item.get("isConfirmed")
        if confirmed is False or as_mapping(confirmed).get("type", confirmed) == _DENIED:
            self.left_out[LeftOut.NOT_RUN] += 1
            return
        key = as_text(item.get("toolCallId"))
        # The editor adds its own suffix to the model's id.
        name, arguments = calls.get(key.split("__vscode")[0], (as_text(item.get("toolId")), {}))
        terminal = as_mapping(item.get("toolSpecificData"))
        if terminal.get("kind") == "terminal":
            line = as_mapping(terminal.get("commandLine"))
            fields = (line.get("userEdited"), line.get("toolEdited"), line.get("original"), terminal.get("command"))
            self.record_call(key, "bash", {"command": next(filter(None, map(as_text, fields)), "")}, at)
            code = as_mapping(terminal.get("terminalCommandState")).get("exitCode")
            output = as_text(as_mapping(terminal.get("terminalCommandOutput")).get("text"))
            self.record_result(key, ok=None, output=output, exit_code=code)
            return
        self.record_call(key, name, arguments, at)
        uses = [use for call, use in self.calls.items() if call.startswith(key) and use.tool in EDITING_TOOLS]
        edited.update(as_text(use.arguments.get("file_path")) for use in uses)
        details = as_mapping(item.get("resultDetails"))
        failed = details.get("isError") is True
        self.record_result(key, ok=not failed, output=output_text(details.get("output")) if failed else "")

    def _take_edit(self, item: Mapping[str, Any], at: Any, key: str, edited: set[str]) -> None:
        uri = as_mapping(item.get("uri"))
        path = as_text(uri.get("fsPath")) or read_file_uri(uri.get("external")) or as_text(uri.get("path"))
        if path and path not in edited:
            edited.add(path)
            self.record_call(key, "edit", {"file_path": path}, at)
            self.record_result(key, ok=True)

    def _take_answers(self, item: Mapping[str, Any], at: Any, key: str) -> None:
        for number, answer in enumerate(as_mapping(item.get("data")).values()):
            given = as_mapping(answer)
            text = as_text(answer) or as_text(given.get("freeformValue")) or as_text(given.get("selectedValue"))
            self.say(Role.USER, text, at, f"{key}.{number}")


def _read_text(kind: str, item: Mapping[str, Any]) -> str:
    """Return an item's part of the answer's text."""
    if kind == "inlineReference":
        reference = as_mapping(item.get("inlineReference"))
        name = as_text(item.get("name")) or as_text(reference.get("name"))
        return f"`{name or Path(as_text(reference.get('path'))).name}`"
    value = item.get("value") if kind in ("", "markdownContent") else None
    return as_text(value) or as_text(as_mapping(value or item.get("content")).get("value"))


def _list_calls(result: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return the calls that the model asked for by their ids."""
    rounds = as_list(as_mapping(result.get("metadata")).get("toolCallRounds"))
    calls = [as_mapping(call) for one in rounds for call in as_list(as_mapping(one).get("toolCalls"))]
    return {as_text(call.get("id")): (as_text(call.get("name")), call.get("arguments")) for call in calls}
