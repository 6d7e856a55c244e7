"""Read the sessions of Claude Code, whose transcripts are logs of messages and events.

A prompt that a person typed while the agent worked is recorded when it is queued, and again by what became of it:
withdrawn (`popAll`), handed to the agent in the middle of its turn (`remove`), or sent as the next prompt (`dequeue`),
which is recorded again as a message.

A fork or a resumed session copies records of another session, with their ids. The session of a copy is that of the
copy, or still that of the original; a copied answer names the session of its request. While the original is still
stored, its records are read there.

Each record names the record before it. After a rewind, the next prompt follows an earlier record, and the records of
the branch that was left stay in the file. Not every branch is a rewind: results of parallel calls and prompts that were
typed while the agent worked have branches too.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pipeline.kernel.store.turns import Role
from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, list_blocks, output_text
from pipeline.sessions.readers.log_reader import LogReader, list_files
from pipeline.sessions.readers.reader import Places, Said, SessionHead, TranscriptFile
from pipeline.sessions.readers.session_log import LeftOut, SessionLog
from pipeline.text.normalize import normalize_text

# Prompts that may be recorded a second time are the latest.
MOST_PROMPTS = 30

Prompt = dict[str, str]


class QueuedPrompts:
    """The queue, the prompts that are expected as messages, and the prompts that were taken from the queue."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        """Start with a saved queue."""
        self._waiting, self._expected = (_load(state.get(name)) for name in ("waiting", "expected"))
        self._taken = [as_text(text) for text in as_list(state.get("taken"))]

    def save(self) -> dict[str, Any]:
        """Return the queue as JSON; empty if there is nothing to remember."""
        lists = {"waiting": self._waiting, "expected": self._expected, "taken": self._taken}
        return {name: prompts for name, prompts in lists.items() if prompts}

    def add(self, text: str, at: str) -> None:
        """Queue a prompt."""
        if text:
            self._waiting = [*self._waiting, {"text": text, "at": at}][-MOST_PROMPTS:]

    def withdraw(self) -> int:
        """Drop all prompts that wait; return their number."""
        count = len(self._waiting)
        self._waiting = []
        return count

    def hand_over(self, text: str) -> list[Prompt]:
        """Take the first prompt that waits, or the prompt with a text."""
        prompts = [prompt for prompt in self._waiting if not text or prompt["text"] == text][:1]
        for prompt in prompts:
            self._waiting.remove(prompt)
            self.remember(prompt["text"])
        return prompts

    def expect(self) -> None:
        """Expect the first prompt that waits as a message."""
        if self._waiting:
            self._expected = [*self._expected, self._waiting.pop(0)][-MOST_PROMPTS:]

    def remember(self, text: str) -> None:
        """Remember a prompt that was taken, to recognize a second record of it."""
        self._taken = [*self._taken, _hash(text)][-MOST_PROMPTS:]

    def take_known(self, text: str) -> bool:
        """Forget a prompt that was taken before; return whether a message is one."""
        digest = _hash(text.strip())
        if digest in self._taken:
            self._taken.remove(digest)
            return True
        return False

    def take_expected(self, text: str) -> list[Prompt]:
        """Take the prompts that a message should repeat, but does not."""
        missing = [prompt for prompt in self._expected if prompt["text"] not in text]
        self._waiting = [prompt for prompt in self._waiting if prompt["text"] != text.strip()]
        self._expected = []
        for prompt in missing:
            self.remember(prompt["text"])
        return missing

    def take_all(self) -> list[Prompt]:
        """Take all prompts that wait or are expected."""
        prompts = self._expected + self._waiting
        self._waiting, self._expected = [], []
        return prompts


def _hash(text: str) -> str:
    # A mark is stored: it must not keep what the person said.
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _load(prompts: Any) -> list[Prompt]:
    return [
        {"text": as_text(prompt.get("text")), "at": as_text(prompt.get("at"))}
        for prompt in as_list(prompts)
        if isinstance(prompt, dict)
    ]


# A session copies another, which may be a copy too.
MOST_ORIGINS = 20
_NAME = re.compile(r"[0-9A-Za-z-]{8,64}")
_ID = re.compile(rb'"uuid":\s?"([0-9A-Za-z-]{8,64})"')


class Origins:
    """The sessions that a session copies, and the ids of their records."""

    def __init__(self, own: str, folder: Path, names: Sequence[str]) -> None:
        """Start with the sessions that an earlier reading noticed."""
        self._own = own
        self._folder = folder
        self.names: list[str] = []
        self._ids: set[str] = set()
        for name in filter(_NAME.fullmatch, names):
            self._add(name)

    def notice(self, record: Mapping[str, Any]) -> bool:
        """Read the session that a record names as its origin; return whether it is new."""
        name = find_origin(record, self._own)
        if name is None or name in self.names or len(self.names) == MOST_ORIGINS:
            return False
        self._add(name)
        return True

    def has(self, record_id: Any) -> bool:
        """Return whether a record is a copy."""
        return record_id in self._ids if isinstance(record_id, str) else False

    def _add(self, name: str) -> None:
        self.names.append(name)
        # A session may be resumed in another folder. If the original was deleted, the copies are all that is left.
        for log in self._folder.parent.glob(f"*/{name}.jsonl"):
            with suppress(OSError), log.open("rb") as lines:
                for line in lines:
                    self._ids.update(found.decode("ascii") for found in _ID.findall(line))


def find_origin(record: Mapping[str, Any], own: str) -> str | None:
    """Return the session that a record was copied from, None if it was not copied."""
    for name in ("requestSessionId", "sessionId"):
        session_id = as_text(record.get(name))
        if session_id and session_id != own and _NAME.fullmatch(session_id):
            return session_id
    return None


# A longer conversation that starts anew in the same file was probably not rewound: its host lost the order.
MOST_AT_START = 3
_NOTICES = ("[Request interrupted by user", "<local-command-")


# What a record is in its conversation; at a boundary, the agent's context was replaced by a summary.
_Kind = Literal["prompt", "answer", "boundary", "program"]


class _Node(NamedTuple):
    parent: str
    number: int
    kind: _Kind


class Conversation:
    """The order of the records of a session; `last` is the record that an earlier reading ended with."""

    def __init__(self, last: str = "") -> None:
        self.last = last
        # Whether a prompt may follow another record than the one before it.
        self.may_be_rewound = False
        self._nodes: dict[str, _Node] = {}
        self._leaf = ""

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record of the main conversation; other records are ignored."""
        name = as_text(record.get("uuid"))
        if not name or record.get("isSidechain") or record.get("agentId"):
            return
        kind = _classify(record)
        parent = as_text(record.get("parentUuid")) or as_text(record.get("logicalParentUuid"))
        if "parentUuid" not in record:
            parent = self.last
        if kind != "answer" and self.last and parent != self.last:
            self.may_be_rewound = True
        # A compaction repeats records that it keeps; the first record has the original order.
        self._nodes.setdefault(name, _Node(parent, len(self._nodes), kind))
        self._leaf = self._leaf if kind == "program" else name
        self.last = name

    def skip(self) -> None:
        """Note that a record was not read: it may be the one that the next record follows."""
        self.last = ""

    def find_rewound(self) -> set[str]:
        """Return the records of the branches that the person left."""
        path = self._list_path()
        if not path:
            return set()
        successors = dict(zip([self._nodes[path[0]].parent, *path], path, strict=False))
        # What follows on the path, without records of programs, decides whether a branch was left.
        following: dict[str, _Kind] = {}
        kind: _Kind = "program"
        for name in reversed(path):
            kind = kind if self._nodes[name].kind == "program" else self._nodes[name].kind
            following[name] = kind
        roots: dict[str, str] = {}
        ends: dict[str, int] = {}
        prompts: Counter[str] = Counter()
        for name, node in self._nodes.items():
            if name not in following:
                root = roots[name] = roots.get(node.parent, name)
                ends[root] = node.number
                prompts[root] += node.kind == "prompt"
        left = {
            root
            for root, end in ends.items()
            if (self._nodes[root].parent in self._nodes or prompts[root] <= MOST_AT_START)
            and self._is_left(root, end, successors, following)
        }
        return {name for name, root in roots.items() if root in left}

    def _list_path(self) -> list[str]:
        """Return the records from the first to the last one."""
        path: dict[str, None] = {}
        name = self._leaf
        while name in self._nodes and name not in path:
            path[name] = None
            name = self._nodes[name].parent
        return list(path)[::-1]

    def _is_left(self, root: str, end: int, successors: Mapping[str, str], following: Mapping[str, _Kind]) -> bool:
        """Return whether a later prompt replaced a branch, given the position of the branch's last record."""
        node, successor = self._nodes[root], successors.get(self._nodes[root].parent)
        if successor is None or node.kind in ("answer", "boundary") or self._nodes[successor].number < end:
            return False
        # A file that was compacted may start twice.
        first = following[successor]
        return first == "prompt" or (first == "boundary" and node.parent in self._nodes)


def _classify(record: Mapping[str, Any]) -> _Kind:
    kind = record.get("type")
    if kind == "assistant" or as_mapping(record.get("attachment")).get("type") == "queued_command":
        return "answer"
    if record.get("isCompactSummary") or record.get("subtype") == "compact_boundary":
        return "boundary"
    if kind != "user" or record.get("isMeta"):
        return "program"
    blocks = list(list_blocks(as_mapping(record.get("message")).get("content")))
    if any(block.get("type") == "tool_result" for block in blocks):
        return "answer"
    text = as_text(blocks[0].get("text")).lstrip() if blocks else ""
    return "program" if text.startswith(_NOTICES) else "prompt"


# Folders with subagents' transcripts, and with outputs and memories.
_OTHER_FOLDERS = frozenset(("subagents", "tool-results", "memory", "workflows"))
# Tools that observe sessions run sessions of their own in these folders.
_OBSERVERS = ("claude-mem-observer-sessions", ".claude-mem/observer-sessions")
# A string of a JSON text contains no bare quotes, so these bytes are a field of a record.
_READ = tuple(
    f'"type":"{kind}"'.encode()
    for kind in ("user", "assistant", "attachment", "queue-operation", "summary", "ai-title", "custom-title")
)
_SKIPPED = tuple(f'"type":"{kind}"'.encode() for kind in ("progress", "file-history-snapshot", "system", "pr-link"))
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
_COMMAND = re.compile(r"<command-name>\s*(?P<name>/?[^<\s]+)\s*</command-name>")
_SHELL_INPUT = re.compile(r"\s*<bash-input>(?P<command>.*?)</bash-input>", re.DOTALL)
_NOT_RUN = re.compile(
    r"\s*(?:<tool_use_error>)?(?:The user doesn't want to|The agent proposed a plan that was rejected"
    r"|Sibling tool call errored|\[Request interrupted by user|Cancelled: parallel tool call"
    r"|Permission (?:to use |for this tool use was denied))"
)
# What Claude Code writes before the words of a rejection, and what it may add after them.
_NOT_WRITTEN = "The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file)."
_REJECTED = f"The user doesn't want to proceed with this tool use. {_NOT_WRITTEN}"
_REJECTION_HEADS = (
    f"{_REJECTED} To tell you how to proceed, the user said:",
    f"{_REJECTED} The user provided the following reason for the rejection:",
    f"Permission for this tool use was denied. {_NOT_WRITTEN} The user said:",
)
_REJECTION_NOTE = "Note: The user's next message"
# Fields of a record that only Claude Code writes, if the user rejected the call.
_DENIAL_KIND, _DENIAL_RESULT = "user-rejected", "User rejected tool use"
# Older versions mark no rejection with words. In these tools, no text of another origin starts an error.
_TOOLS_WITH_OWN_ERRORS = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit", "ExitPlanMode", "AskUserQuestion"))
_ANSWERS = re.compile(r'"(?P<question>[^"\n]{1,500})"="(?P<answer>[^"]+)"')
_PLAN = "Implement the following plan:"
# In this mode the agent only reads.
_PLAN_MODE = "plan"


class Reader(LogReader):
    """Reader of Claude Code's transcripts."""

    agent: ClassVar[str] = "claude-code"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the transcripts of sessions, without those of subagents."""
        yield from list_files(self.agent, places.folder("CLAUDE_CONFIG_DIR", ".claude") / "projects", is_transcript)
        if places.platform == "darwin":
            desktop = places.home / "Library" / "Application Support" / "Claude" / "local-agent-mode-sessions"
            yield from list_files(self.agent, desktop, lambda path: "projects" in path.parts and is_transcript(path))

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "ClaudeSession":
        """Return the session of a file."""
        return ClaudeSession(SessionHead(self.agent, file.path.stem), state, file.path.parent)


def is_transcript(path: Path) -> bool:
    """Return whether a file is the transcript of a session that a person started."""
    is_subagent = path.name.startswith("agent-") or not _OTHER_FOLDERS.isdisjoint(path.parts[-4:-1])
    return path.suffix == ".jsonl" and not is_subagent and not any(name in str(path) for name in _OBSERVERS)


class ClaudeSession(SessionLog):
    """The entries of a session."""

    def __init__(self, head: SessionHead, state: Mapping[str, Any], folder: Path) -> None:
        """Start with the state of an earlier reading; the sessions that this one may copy are in the folder."""
        super().__init__(head, state)
        self._queue = QueuedPrompts(as_mapping(state.get("queue")))
        self._origins = Origins(head.id, folder, [as_text(name) for name in as_list(state.get("origins"))])
        self._conversation = Conversation(as_text(state.get("last")))
        # Whether the agent may only read and plan: nothing of it is stored.
        self._plans = state.get("plans") is True
        # The records that repeat a prompt from the queue, by its text.
        self._copies: dict[str, str] = {}

    def save(self) -> dict[str, Any]:
        """Return the state that the next reading needs."""
        own = {
            "queue": self._queue.save(),
            "origins": self._origins.names,
            "last": self._conversation.last,
            "plans": self._plans,
        }
        return super().save() | {name: value for name, value in own.items() if value}

    def list_taken_back(self) -> list[Said]:
        """Return the messages of branches that the person left."""
        rewound = self._conversation.find_rewound()
        copies = {text for text, record_id in self._copies.items() if record_id in rewound}
        said = [entry for entry in self.entries if isinstance(entry, Said)]
        return [entry for entry in said if entry.id in rewound or (entry.id is None and entry.content in copies)]

    def settle(self) -> None:
        """Take the prompts that were still queued when the session ended."""
        super().settle()
        for prompt in self._queue.take_all():
            self._say_queued(prompt)

    def take(self, line: bytes) -> None:
        """Read a line."""
        is_needed = self.skips_nothing or any(kind in line for kind in _READ)
        if not is_needed and any(kind in line for kind in _SKIPPED):
            self.left_out[LeftOut.META] += 1
            self._conversation.skip()
            return
        super().take(line)

    def take_record(self, record: Mapping[str, Any]) -> None:
        """Read a record."""
        kind = record.get("type")
        self._learn(record, kind)
        self._conversation.add(record)
        self.may_be_rewound = self._conversation.may_be_rewound
        if self._is_copy(record):
            self.left_out[LeftOut.COPY] += 1
            return
        reason = _reason_to_skip(record)
        if reason is not None:
            self._skip(record, reason)
        elif kind == "queue-operation":
            self._take_queue_operation(record)
        elif kind == "attachment":
            self._take_attachment(record)
        elif kind == "user":
            self._take_user(record)
        elif kind == "assistant":
            self._take_assistant(record)
        elif kind in _TITLES or f'"type":"{kind}"'.encode() in _SKIPPED or not record.get("uuid"):
            # Without an id, it is no part of the conversation.
            self.left_out[LeftOut.META] += 1
        else:
            self.left_out[LeftOut.UNKNOWN] += 1

    def _is_copy(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is a copy of another session's, and drop the copies before the first that says so."""
        if self._origins.notice(record):
            before = len(self.entries)
            self.entries = [entry for entry in self.entries if not self._origins.has(entry.id)]
            self.left_out[LeftOut.COPY] += before - len(self.entries)
        return self._origins.has(record.get("uuid"))

    def _skip(self, record: Mapping[str, Any], reason: str) -> None:
        self.left_out[reason] += 1
        if reason == LeftOut.UNATTENDED:
            # The operations of the queue do not say who queued.
            self._queue.take_all()
            if record.get("type") == "user":
                text = _prompt_text(as_mapping(record.get("message")).get("content"))
                self.leave_out_prompt(text, record.get("timestamp"), record.get("uuid"))

    def _learn(self, record: Mapping[str, Any], kind: Any) -> None:
        self.learn_record(
            cwd=record.get("cwd"),
            branch=record.get("gitBranch"),
            at=record.get("timestamp"),
            # Forks and resumed sessions begin with copies of another session's records.
            parent=find_origin(record, self.head.id),
            is_of_agent=_is_of_agent(record),
        )
        # Summaries at the start of a file are those of other sessions.
        if kind in _TITLES and (kind != "summary" or self.head.started_at):
            self.learn(title=as_text(record.get(_TITLES[kind]) or record.get("title")))

    def _take_queue_operation(self, record: Mapping[str, Any]) -> None:
        operation = record.get("operation")
        if operation == "enqueue":
            self._queue.add(_prompt_text(record.get("content")), as_text(record.get("timestamp")))
        elif operation == "popAll":
            self.left_out[LeftOut.TAKEN_BACK] += self._queue.withdraw()
        elif operation == "remove":
            for prompt in self._queue.hand_over(_prompt_text(record.get("content"))):
                self._say_queued(prompt, is_mid_turn=True)
        elif operation == "dequeue":
            self._queue.expect()

    def _take_attachment(self, record: Mapping[str, Any]) -> None:
        attachment = as_mapping(record.get("attachment"))
        if attachment.get("type") != "queued_command":
            self.left_out[LeftOut.INJECTED] += 1
            return
        if attachment.get("commandMode") == "task-notification" or not _is_from_person(attachment):
            self.left_out[LeftOut.NOTICE] += 1
            return
        text = _prompt_text(attachment.get("prompt"))
        if self._queue.take_known(text):
            self._copies[text] = as_text(record.get("uuid"))
            self.left_out[LeftOut.COPY] += 1
        else:
            self._queue.remember(text)
            self._say(text, record.get("timestamp"), record.get("uuid"), is_mid_turn=True)

    def _say_queued(self, prompt: Mapping[str, str], *, is_mid_turn: bool = False) -> None:
        self._say(prompt["text"], prompt["at"], None, is_mid_turn=is_mid_turn)

    def _take_user(self, record: Mapping[str, Any]) -> None:
        texts, has_result = [], False
        for block in list_blocks(as_mapping(record.get("message")).get("content")):
            kind = block.get("type")
            if kind == "tool_result":
                self._take_result(block, record)
                has_result = True
            elif kind == "text":
                texts.append(as_text(block.get("text")))
        text = "\n".join(texts)
        if text.strip():
            self._take_prompt(text, record, has_result=has_result)

    def _take_prompt(self, text: str, record: Mapping[str, Any], *, has_result: bool) -> None:
        if not has_result:
            self.drop_open_calls()
        if self._queue.take_known(text):
            self.left_out[LeftOut.COPY] += 1
            return
        for prompt in self._queue.take_expected(text):
            self._say_queued(prompt)
        if not has_result:
            self._plans = record.get("permissionMode") == _PLAN_MODE
        if text.startswith(_PLAN) and record.get("planContent"):
            self.left_out[LeftOut.PLAN] += 1
            return
        self._say(text, record.get("timestamp"), record.get("uuid"))

    def say(self, role: Role, text: Any, at: Any, record_id: Any, *rest: str, is_mid_turn: bool = False) -> bool:
        """Add a message; nothing that is said in plan mode is stored."""
        if self._plans:
            self.left_out[LeftOut.PLAN] += 1
            return False
        return super().say(role, text, at, record_id, *rest, is_mid_turn=is_mid_turn)

    def _say(self, text: str, at: Any, record_id: Any, *, is_mid_turn: bool = False) -> None:
        """Add a prompt; a command that the person ran is a call."""
        shell = _SHELL_INPUT.match(text)
        if shell:
            key = as_text(record_id) or f"!{at}"
            self.call(key, "Bash", {"command": shell["command"].strip()}, at)
            self.finish(key, ok=None)
            return
        self.say(Role.USER, read_slash_command(text) or text, at, record_id, is_mid_turn=is_mid_turn)

    def _take_result(self, block: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        key, details, at = block.get("tool_use_id"), record.get("toolUseResult"), record.get("timestamp")
        failed = block.get("is_error") is True
        output = output_text(block.get("content"))
        call = self.calls.get(as_text(key))
        is_rejected = failed and _is_rejected(record, output, call.tool if call else "")
        if is_rejected or (failed and _NOT_RUN.match(output)):
            self.drop_call(key)
            words = (as_text(record.get("userFeedback")) or _rejection_words(output)) if is_rejected else ""
            if words.strip():
                self._say(words.strip(), at, record.get("uuid"), is_mid_turn=True)
            return
        self.finish(key, ok=not failed, output=output)
        if call is not None and call.tool == "AskUserQuestion" and not failed:
            self._take_answers(as_mapping(details), output, at, as_text(record.get("uuid")))

    def _take_answers(self, details: Mapping[str, Any], output: str, at: Any, record_id: str) -> None:
        in_output = [(match["question"], match["answer"]) for match in _ANSWERS.finditer(output)]
        answers = list(as_mapping(details.get("answers")).items()) or in_output
        for number, (question, answer) in enumerate(answers):
            if text := as_text(answer) or ", ".join(map(as_text, as_list(answer))):
                self.say(Role.ASSISTANT, question, at, f"{record_id} question {number}")
                self.say(Role.USER, text, at, f"{record_id} answer {number}")

    def _take_assistant(self, record: Mapping[str, Any]) -> None:
        message, at = as_mapping(record.get("message")), record.get("timestamp")
        if record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            self.left_out[LeftOut.FAILED] += 1
            self.leave_unanswered()
            return
        for block in list_blocks(message.get("content")):
            kind = block.get("type")
            if kind == "text":
                self.say(Role.ASSISTANT, block.get("text"), at, record.get("uuid"))
            elif kind == "tool_use":
                self.record_call(block.get("id"), block.get("name"), block.get("input"), at)
            else:
                self.left_out[LeftOut.THINKING if "thinking" in str(kind) else LeftOut.UNKNOWN] += 1


def _reason_to_skip(record: Mapping[str, Any]) -> LeftOut | None:
    """Return why a record is not the person's or the agent's, None if it is."""
    if record.get("isSidechain") or record.get("agentId"):
        return LeftOut.SUBAGENT
    if record.get("isCompactSummary") or record.get("isVisibleInTranscriptOnly"):
        return LeftOut.SUMMARY
    if record.get("isMeta"):
        return LeftOut.META
    is_program = as_text(record.get("entrypoint")).startswith("sdk") or record.get("promptSource") == "sdk"
    if not _is_from_person(record):
        return LeftOut.NOTICE
    is_observer = any(name in as_text(record.get("cwd")) for name in _OBSERVERS)
    return LeftOut.UNATTENDED if is_program or is_observer else None


def _is_of_agent(record: Mapping[str, Any]) -> bool:
    """Return whether the agent or one of its tools wrote a record."""
    if record.get("type") == "assistant" or record.get("isSidechain") or "toolUseResult" in record:
        return True
    blocks = list_blocks(as_mapping(record.get("message")).get("content"))
    return any(block.get("type") == "tool_result" for block in blocks)


def _is_from_person(record: Mapping[str, Any]) -> bool:
    """Return whether a message does not come from a chat channel, another agent or a timer."""
    return as_mapping(record.get("origin")).get("kind") in (None, "human")


def _is_rejected(record: Mapping[str, Any], output: str, tool: str) -> bool:
    """Return whether Claude Code says that the user rejected a call; a tool may say so too, in its output."""
    details = record.get("toolUseResult")
    if details == _DENIAL_RESULT or "toolDenialKind" in record:
        return details == _DENIAL_RESULT or record["toolDenialKind"] == _DENIAL_KIND
    return tool in _TOOLS_WITH_OWN_ERRORS and details == f"Error: {output}" and output.startswith(_REJECTED)


def _rejection_words(output: str) -> str:
    """Return what the user said in a rejection."""
    head = next((head for head in _REJECTION_HEADS if output.startswith(head)), None)
    if head is None:
        return ""
    words, note, _ = output[len(head) :].rpartition(_REJECTION_NOTE)
    return words if note else output[len(head) :]


def read_slash_command(text: str) -> str | None:
    """Return a slash command as it was typed, None for other text."""
    name = _COMMAND.search(text) if text.lstrip().startswith("<command-") else None
    if name is None:
        return None
    arguments, end, _ = text.partition("<command-args>")[2].rpartition("</command-args>")
    return f"/{name['name'].removeprefix('/')} {arguments.strip() if end else ''}".strip()


def _prompt_text(content: Any) -> str:
    return normalize_text("\n".join(as_text(block.get("text")) for block in list_blocks(content)))
