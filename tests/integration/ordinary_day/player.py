"""Play the steps on a machine, and wait after each until the background work is finished."""

import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pipeline.prompt.history import LATE
from tests.integration.ordinary_day.machine import DEADLINE_S, ZONE, Machine
from tests.integration.ordinary_day.steps import Step
from tests.integration.ordinary_day.stored import ACTIVE, CANDIDATE, is_personal
from tests.integration.ordinary_day.transcript import Transcript, transcript_path
from tests.support.stack import wait_until
from web.hooks.client import WITHIN_S

# A Monday: she speaks of a new week.
FIRST_DAY = datetime(2026, 11, 23, tzinfo=ZoneInfo(ZONE))
# What a step may wait for work that an earlier step has already waited for in vain.
STUCK_S = 3.0
# The events that a host answers to, and where the reason of an empty answer is noted.
ANSWERED = frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse"})
NOTE = "note"
# On a busy machine, the answer to an event may come too late; nothing of it is recorded as shown.
TRIES = 3
# What the server may still need for an answer after its client has stopped waiting.
UNANSWERED_S = 10.0
_ID = re.compile(r"\{id:([^}]*)\}")
# The line of a memory in the answers of tools, and in those of the command line.
_TOOL_HIT = re.compile(r"^- \[[^\]\n]* · [^\]\n]*\] ", re.MULTILINE)
_CLI_HIT = re.compile(r"^ *\d+  \d\.\d{3}  .*$", re.MULTILINE)
# Fields of an answer that are no texts of memories.
_NO_TEXT = re.compile(r"(^|_)(id|ids|at|hash|hlc|from|to|cursor|seq)$|^valid_|^took_|score|relevance")


@dataclass(slots=True)
class Session:
    """An agent's session, with all that it was shown so far."""

    id: str
    project: str
    transcript: Transcript
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step showed, without what it was asked; `results` are the memories that a search found, if it was one."""

    text: str = ""
    results: tuple[str, ...] | None = None
    is_empty: bool = False
    is_blocked: bool = False
    is_refused: bool = False
    shown_before: str = ""
    note: str = ""


@dataclass(slots=True)
class Player:
    """The developer and the hosts."""

    machine: Machine
    sessions: dict[str, Session] = field(default_factory=dict)
    stuck: tuple[Mapping[str, int], list[str]] = field(default_factory=lambda: ({}, []))
    monotonic: Callable[[], float] = time.monotonic

    def begin(self, step: Step) -> None:
        """Start the stack at the time of the first step."""
        self.machine.clock.set_forward(self._moment(step))
        self.machine.up()

    def play(self, step: Step) -> Outcome:
        """Do what a step says, and return what it showed when all work is finished."""
        self.machine.clock.set_forward(self._moment(step))
        before = self.sessions[step.session].shown if step.session in self.sessions else ""
        outcome = getattr(self, f"_{step.action}")(step)
        if step.session is not None:
            self.sessions[step.session].shown += f"\n{outcome.text}"
        problem = self._wait_until_finished()
        note = "; ".join(filter(None, [outcome.note, problem]))
        return replace(outcome, shown_before=before, note=note)

    def now_text(self) -> str:
        """Return the time of day of this machine as stores write it."""
        return self.machine.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _moment(self, step: Step) -> datetime:
        hour, minute = map(int, step.at.split(":"))
        day = FIRST_DAY + timedelta(days=step.day - 1)
        return day.replace(hour=hour, minute=minute).astimezone(UTC)

    def _start(self, step: Step) -> Outcome:
        session = self.sessions.get(step.session) or self._open_session(step)
        if step.start == "compact":
            self._send(session, "PreCompact", trigger="auto", custom_instructions="")
            session.transcript.add_compaction()
        source = "fork" if step.forked_from else step.start
        output = self._send(session, "SessionStart", source=source, model="claude-sonnet-4-5")
        return self._context(session, "SessionStart", output)

    def _open_session(self, step: Step) -> Session:
        session_id = str(uuid.uuid4())
        folder = self.machine.path(step.project)
        file = transcript_path(self.machine.hosts_folder, folder, session_id)
        transcript = Transcript(file, folder, session_id, self.machine.clock.now)
        if step.forked_from:
            original = self.sessions[step.forked_from]
            transcript.copy(original.transcript.file, original.id)
        self.sessions[step.session] = session = Session(session_id, step.project, transcript)
        return session

    def _say(self, step: Step) -> Outcome:
        session = self.sessions[step.session]
        output = self._send(session, "UserPromptSubmit", prompt=step.say)
        session.transcript.add_prompt(step.say)
        outcome = self._context(session, "UserPromptSubmit", output)
        if not self.machine.is_up:
            self.machine.wait_until_up()
        if step.interrupted:
            # Claude Code sends no event when its user stops it.
            session.transcript.add_interruption()
            return outcome
        (session.transcript.add_error if step.failed else session.transcript.add_reply)(step.reply)
        self._send(session, "Stop", stop_hook_active=False, last_assistant_message=step.reply)
        return outcome

    def _tool(self, step: Step) -> Outcome:
        session = self.sessions[step.session]
        name, use_id = step.tool["name"], f"toolu_01{uuid.uuid4().hex[:22]}"
        arguments = _change_texts(
            step.tool["input"], lambda text: text.replace("$PROJECT", str(session.transcript.folder))
        )
        session.transcript.add_tool_use(use_id, name, arguments)
        call = {"tool_name": name, "tool_input": arguments, "tool_use_id": use_id}
        output = self._send(session, "PreToolUse", **call)
        text = "\n".join(filter(None, [output.get("permissionDecisionReason"), output.get("additionalContext")]))
        if output.get("permissionDecision") in ("deny", "ask"):
            refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected."
            session.transcript.add_tool_result(use_id, refusal, f"Error: {refusal}", is_error=True)
            return Outcome(text, is_blocked=True)
        result = {"stdout": "", "stderr": "", "interrupted": False} if name == "Bash" else {"filePath": "", **arguments}
        session.transcript.add_tool_result(use_id, "", result)
        after = self._send(session, "PostToolUse", **call, tool_response=result)
        text = "\n".join(filter(None, [text, after.get("additionalContext")]))
        return Outcome(text, is_empty=not text, note=output.get(NOTE, ""))

    def _end(self, step: Step) -> Outcome:
        output = self._send(self.sessions[step.session], "SessionEnd", reason="other")
        return Outcome(str(output), is_empty=not output)

    def _mcp(self, step: Step) -> Outcome:
        tool, arguments = step.mcp["tool"], self._fill(step, step.mcp["arguments"])
        answer = self.machine.call_tool(step.project, tool, arguments)
        text = answer.text.replace(str(arguments.get("query") or arguments.get("message") or "\0"), "")
        results = _split(_TOOL_HIT, answer.text)
        return Outcome(text, results, is_empty=not results, is_refused=answer.is_error)

    def _cli(self, step: Step) -> Outcome:
        words = self._fill(step, list(step.cli))
        answer = self.machine.run(step.project, words)
        if words == ["down"]:
            self.machine.is_up = False
        text = answer.text.replace(" ".join(words[1:]) or "\0", "") if words[0] == "recall" else answer.text
        results = _split(_CLI_HIT, answer.text)
        return Outcome(
            text, results, is_empty=not results, is_refused=answer.code != 0, note=f"exit code {answer.code}"
        )

    def _http(self, step: Step) -> Outcome:
        path, body = self._fill(step, step.http["path"]), self._fill(step, step.http["body"])
        answer = self.machine.request(step.project, step.http["method"], path, body)
        found = answer.body.get("results") if isinstance(answer.body, dict) else None
        results = None if found is None else tuple("\n".join(_texts(hit)) for hit in found)
        text = "\n".join(_texts(answer.body))
        return Outcome(text, results, is_empty=not results, is_refused=answer.status >= 400, note=f"{answer.status}")

    def _send(self, session: Session, name: str, **fields: Any) -> dict[str, Any]:
        """Send an event of a session; return what the host is answered."""
        was_up, began = self.machine.is_up, self.now_text()
        event = {
            "session_id": session.id,
            "transcript_path": str(session.transcript.file),
            "cwd": str(self.machine.path(session.project)),
            "permission_mode": "default",
            "hook_event_name": name,
        }
        answer: dict[str, Any] = {}
        for _ in range(TRIES):
            sent = self.monotonic()
            output = self.machine.send_hook(session.project, event | fields)
            if output or not was_up or name not in ANSWERED:
                return output
            has_left = self.monotonic() - sent >= WITHIN_S
            answer = self._await_answer(session, name, began) if has_left else self._find_answer(session, name, began)
            if not answer.get(NOTE, "").startswith(LATE):
                break
        return answer

    def _await_answer(self, session: Session, name: str, began: str) -> dict[str, Any]:
        """Return what the server answers to an event whose client has left: it notes that only when it is done."""
        try:
            noted = wait_until("the event is noted", lambda: self._find_answer(session, name, began), UNANSWERED_S)
        except AssertionError as error:
            return {NOTE: f"{LATE}: {error}"}
        return dict(noted)

    def _find_answer(self, session: Session, name: str, began: str) -> dict[str, Any]:
        """Return what the server answered to an event that got nothing: on a busy machine hosts do not wait so long."""
        self.machine.wait_for_notes()
        for run in self.machine.list_hook_runs(5):
            if (run["session_id"], run["event"]) == (session.id, name) and run["at"] >= began:
                note = f"{run['outcome']} in {run['took_ms']:.0f} ms: {run['reason']}"
                text = self.machine.read_hook_run(run["id"]) if run["outcome"] == "told" else ""
                if text and name == "PreToolUse":
                    return {"permissionDecision": run["reason"], "permissionDecisionReason": text, NOTE: note}
                return {"additionalContext": text, NOTE: note} if text else {NOTE: note}
        return {}

    @staticmethod
    def _context(session: Session, name: str, output: Mapping[str, Any]) -> Outcome:
        context = output.get("additionalContext", "")
        if context:
            session.transcript.add_hook_context(name, context)
        return Outcome(context, is_empty=not context, note=output.get(NOTE, ""))

    def _fill(self, step: Step, value: Any) -> Any:
        """Return arguments with the real ids of sessions and memories."""
        if isinstance(value, dict) and value.get("session_id") in self.sessions:
            value = value | {"session_id": self.sessions[value["session_id"]].id}
        return _change_texts(value, lambda text: _ID.sub(lambda match: self._find_id(step, match[1]), text))

    def _find_id(self, step: Step, text: str) -> str:
        found = [
            memory.id
            for memory in self.machine.data.list_memories(self.now_text())
            if text in memory.text
            and memory.status in (ACTIVE, CANDIDATE)
            and (is_personal(memory) or memory.workspace == self.machine.workspace(step.project))
        ]
        # Ids of memories begin with their times. Without a memory the step goes on, and what it asks for fails.
        return max(found, default="0" * 26)

    def _wait_until_finished(self) -> str:
        """Wait until nothing is left to do; return what prevents it."""
        if not self.machine.is_up:
            return ""
        self.machine.wait_for_notes()
        stuck, dead_before = self.stuck
        began = time.monotonic()

        def is_finished() -> bool:
            pending = self.machine.data.count_pending()
            if pending and pending == stuck and time.monotonic() - began > STUCK_S:
                return True
            return not pending

        try:
            wait_until("all work is done", is_finished, DEADLINE_S)
        except AssertionError:
            self.stuck = self.machine.data.count_pending(), dead_before
        pending, dead = self.machine.data.count_pending(), self.machine.data.list_dead()
        self.stuck = pending or {}, dead
        new = [letter for letter in dead if letter not in dead_before]
        return "; ".join([*([f"still pending: {dict(pending)}"] * bool(pending)), *(f"failed: {one}" for one in new)])


def _split(head: re.Pattern[str], text: str) -> tuple[str, ...]:
    """Return the parts of a text that begin with a match."""
    starts = [match.start() for match in head.finditer(text)]
    return tuple(text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=False))


def _change_texts(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _change_texts(item, change) for name, item in value.items()}
    return [_change_texts(item, change) for item in value] if isinstance(value, list) else value


def _texts(value: Any, name: str = "") -> list[str]:
    """List the texts in an answer, without ids and times."""
    if isinstance(value, dict):
        return [text for key, item in value.items() if not _NO_TEXT.search(key) for text in _texts(item, key)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item, name)]
    return [value] if isinstance(value, str) else []
