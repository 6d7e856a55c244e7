"""Collect the entries of one session from its records, in parts, and the state that the next reading needs."""

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any, ClassVar

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.fields import (
    as_mapping,
    as_text,
    as_time,
    error_head,
    find_exit_code,
    find_stated_code,
    keep_arguments,
)
from pipeline.sessions.readers.log_lines import parse_records
from pipeline.sessions.readers.reader import Entry, Said, SessionHead, SessionPart, ToolUse
from pipeline.sessions.readers.tool_calls import translate
from pipeline.text.normalize import drop_embedded_data, normalize_text
from pipeline.text.own_words import drop_host_text, is_host_text

# A part ends after so many entries, or characters in them.
PART_ENTRIES = 2000
PART_CHARS = 2_000_000
# The rest of a longer message is not read.
LONGEST_MESSAGE = 200_000
# Calls that wait for their result: an agent runs a few at a time.
MOST_CALLS = 100
MOST_PROBLEMS = 20


class LeftOut(StrEnum):
    """Why a record is not imported."""

    NOTICE = "host notice"
    INJECTED = "injected context"
    META = "program record"
    SUMMARY = "summary"
    SUBAGENT = "subagent"
    THINKING = "thinking"
    OUTPUT = "tool output"
    NOT_RUN = "rejected call"
    TAKEN_BACK = "withdrawn prompt"
    FAILED = "failed answer"
    COPY = "copy"
    UNATTENDED = "session without a person"
    PLAN = "plan"
    REPOSITORY = "chat that came with its repository"
    UNKNOWN = "unknown record"
    UNREADABLE = "unreadable record"


class SessionLog:
    """The entries of a session since the last part; subclasses read the records of one agent."""

    # What the next reading needs in addition to the head and the calls: names, and the values at the start. A mark has
    # them under a key, if there is one.
    START: ClassVar[Mapping[str, Any]] = {}
    STATE_KEY: ClassVar[str] = ""

    def __init__(self, head: SessionHead, state: Mapping[str, Any]) -> None:
        """Start with the state that an earlier reading saved, or an empty one."""
        known = as_mapping(state.get("head"))
        fields = ("id", "cwd", "branch", "title", "started_at", "parent")
        self.head = replace(head, **{name: known[name] for name in fields if isinstance(known.get(name), str)})
        # The folder of the last record.
        self.folder = as_text(known.get("folder")) or self.head.cwd
        # The folder that the person opened or moved to: an agent that changes its folder does not move the person.
        self.person_folder = as_text(known.get("person_folder")) or self.folder
        self.calls = {key: _load_call(fields) for key, fields in as_mapping(state.get("calls")).items()}
        self.entries: list[Entry] = []
        self.left_out: Counter[str] = Counter()
        self.problems: list[str] = []
        # Prompts that a program wrote: what was stored of them is taken back.
        self.by_programs: list[Said] = []
        # Whether records are read that contain nothing to import, but have a place in the conversation.
        self.skips_nothing = False
        # Whether the records may show that the person took something back, and what the log says so of.
        self.may_be_rewound = False
        self.rolled_back: list[Said] = []
        self._chars = 0
        saved = as_mapping(state.get(self.STATE_KEY)) if self.STATE_KEY else state
        self.saved: dict[str, Any] = {
            name: saved[name] if isinstance(saved.get(name), type(start)) else deepcopy(start)
            for name, start in self.START.items()
        }

    def take(self, line: bytes) -> None:
        """Read the records of a line."""
        records = parse_records(line)
        if records is None:
            self.report(f"session {self.head.id} has a line that is not valid JSON.")
        for record in records or ():
            self.take_record(record)

    def take_record(self, _record: Mapping[str, Any]) -> None:
        """Read a record; subclasses know those of their agent."""
        self.left_out[LeftOut.UNKNOWN] += 1

    def list_taken_back(self) -> list[Said]:
        """Return the entries that the person took back; the session was read from its start."""
        return self.rolled_back

    def settle(self) -> None:
        """Take what still waits for a later record; the file has not changed for a long time."""
        self.drop_open_calls()

    def save(self) -> dict[str, Any]:
        """Return the state that the next reading needs."""
        names = ("id", "cwd", "branch", "title", "started_at", "parent")
        head = {name: value for name in names if (value := getattr(self.head, name))}
        folders = {"folder": self.folder, "person_folder": self.person_folder}
        head |= folders if {*folders.values()} != {self.head.cwd} else {}
        calls = {key: asdict(call) for key, call in self.calls.items()}
        saved = {name: value for name, value in self.saved.items() if value}
        own = {self.STATE_KEY: saved} if self.STATE_KEY else saved
        return {"head": head} | ({"calls": calls} if calls else {}) | own

    @property
    def is_full(self) -> bool:
        """Whether the part must end."""
        return len(self.entries) >= PART_ENTRIES or self._chars >= PART_CHARS

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to yield."""
        return not (self.entries or self.left_out or self.problems)

    def part(self, mark: str, taken_back: tuple[Said, ...] = ()) -> SessionPart:
        """Return what was collected, and start anew."""
        problems = tuple(self.problems[:MOST_PROBLEMS])
        taken_back = (*taken_back, *self.by_programs)
        part = SessionPart(self.head, tuple(self.entries), mark, self.left_out, problems, taken_back)
        self.forget_entries()
        return part

    def forget_entries(self) -> None:
        """Start anew, with the calls that are open."""
        self.entries, self.left_out, self.problems, self._chars, self.by_programs = [], Counter(), [], 0, []

    def rename(self, session_id: str) -> None:
        """Take the id that the transcript states."""
        self.head = replace(self.head, id=session_id or self.head.id)

    def learn(self, **fields: Any) -> None:
        """Note what a record says of the session: the first folder, start and parent, and the last branch and title."""
        for name in ("cwd", "started_at", "parent"):
            if fields.get(name) and not getattr(self.head, name):
                self.head = replace(self.head, **{name: as_text(fields[name])})
        for name in ("branch", "title"):
            if fields.get(name) and fields[name] != getattr(self.head, name):
                self.head = replace(self.head, **{name: as_text(fields[name])})

    def learn_record(
        self, *, cwd: Any = None, branch: Any = None, at: Any = None, parent: Any = None, is_of_agent: bool = False
    ) -> None:
        """Note what the envelope of a record says; most records repeat the one before."""
        folder = as_text(cwd) or self.folder
        if not self.person_folder or (folder != self.folder and not is_of_agent):
            self.person_folder = folder
        self.folder = folder
        head = self.head
        is_known = head.cwd and head.started_at and (head.parent or not parent)
        if not is_known or (branch and branch != head.branch):
            self.learn(cwd=as_text(cwd), branch=as_text(branch), started_at=as_time(at), parent=as_text(parent))

    def say(
        self,
        role: Role,
        text: Any,
        at: Any,
        record_id: Any,
        reason: str = LeftOut.NOTICE,
        *,
        is_mid_turn: bool = False,
    ) -> bool:
        """Add a message without what a host wrote into it; return whether there are words left."""
        content = normalize_text(drop_embedded_data(as_text(text)[:LONGEST_MESSAGE]))
        if content and role is Role.USER:
            content = drop_host_text(content).strip()
            if not content:
                self.left_out[reason] += 1
                if is_host_text(role, as_text(text)):
                    self.leave_unanswered()
        if not content:
            return False
        folder = self._moved_to(self.person_folder)
        said = Said(role, content, as_time(at), as_text(record_id) or None, folder, is_mid_turn)
        self._add(said, len(content))
        return True

    def leave_unanswered(self) -> None:
        """Note that the last message got no answer: its turn was interrupted or failed."""
        if self.entries and isinstance(last := self.entries[-1], Said) and last.role is Role.USER:
            self.entries[-1] = replace(last, is_unanswered=True)

    def leave_out_prompt(self, text: Any, at: Any, record_id: Any) -> None:
        """Leave out the prompt of a program."""
        content = drop_host_text(normalize_text(as_text(text))).strip()
        if content:
            folder = self._moved_to(self.person_folder)
            said = Said(Role.USER, content, as_time(at), as_text(record_id) or None, folder)
            self.by_programs.append(said)

    def say_prompt(self, text: Any, at: Any, record_id: Any) -> None:
        """Add a prompt that starts a turn; calls without a result were interrupted."""
        if as_text(text).strip():
            self.drop_open_calls()
            self.say(Role.USER, text, at, record_id)

    def call(self, key: Any, tool: Any, arguments: Any, at: Any, replaced: Any = "") -> None:
        """Note a tool call; it is added with its result."""
        call_id = as_text(key)
        while len(self.calls) >= MOST_CALLS:
            self._add_call(self.calls.pop(next(iter(self.calls))))
        self.calls[call_id] = ToolUse(
            as_text(tool),
            keep_arguments(arguments),
            at=as_time(at),
            id=call_id or None,
            replaced=as_text(replaced),
            folder=self._moved_to(self.folder),
        )

    def finish(self, key: Any, *, ok: bool | None, output: str = "", exit_code: int | None = None) -> None:
        """Add a call with its result; a result without its call is left out."""
        use = self.calls.pop(as_text(key), None)
        if use is None:
            self.left_out[LeftOut.OUTPUT] += 1
            return
        code = find_exit_code(output) if exit_code is None and not ok else exit_code
        error = error_head(output) if ok is False else ""
        self._add_call(replace(use, ok=ok, exit_code=code, error=error))

    def record_call(self, key: Any, name: Any, arguments: Any, at: Any) -> None:
        """Note a tool call of this agent; a patch is a call for each of its files."""
        for number, call in enumerate(translate(self.head.agent, name, arguments)):
            self.call(f"{key}#{number}" if number else key, call.tool, call.arguments, at, call.replaced)

    def record_result(self, key: str, *, ok: bool | None, output: str = "", exit_code: Any = None) -> None:
        """Add a call with its result; a command that ends with another code than 0 failed."""
        use = self.calls.get(key)
        code = exit_code if isinstance(exit_code, int) and not isinstance(exit_code, bool) else None
        if code is None and use is not None and use.tool == "Bash":
            code = find_exit_code(output) if (stated := find_stated_code(output)) is None else stated
        if code is not None:
            ok = code == 0 and ok is not False
        for each in (key, *(other for other in list(self.calls) if other.startswith(f"{key}#"))):
            self.finish(each, ok=ok, output=output, exit_code=code)

    def list_calls(self, key: Any) -> list[str]:
        """List the open calls of a record: a patch of several files is several calls."""
        text = as_text(key)
        return [call for call in self.calls if call == text or call.startswith(f"{text}/")]

    def drop_call(self, key: Any) -> None:
        """Leave out a call that did not run."""
        self.calls.pop(as_text(key), None)
        self.left_out[LeftOut.NOT_RUN] += 1

    def drop_open_calls(self) -> None:
        """Add the calls that got no result before the next prompt; it is unknown whether they ran."""
        while self.calls:
            self._add_call(self.calls.pop(next(iter(self.calls))))

    def report(self, problem: str) -> None:
        """Note something that could not be read."""
        self.left_out[LeftOut.UNREADABLE] += 1
        self.problems += [problem] if len(self.problems) < MOST_PROBLEMS else []

    def _add_call(self, use: ToolUse) -> None:
        if use.tool:
            self._add(use, len(use.replaced) + sum(len(str(value)) for value in use.arguments.values()))

    def _moved_to(self, folder: str) -> str:
        """Return a folder if it is not that of the session's start."""
        return folder if folder != self.head.cwd else ""

    def _add(self, entry: Entry, chars: int) -> None:
        self.entries.append(entry)
        self._chars += chars


def _load_call(fields: Any) -> ToolUse:
    known = as_mapping(fields)
    return ToolUse(
        as_text(known.get("tool")),
        as_mapping(known.get("arguments")),
        at=as_text(known.get("at")) or None,
        id=as_text(known.get("id")) or None,
        replaced=as_text(known.get("replaced")),
        folder=as_text(known.get("folder")),
    )
