"""Recognize records of Claude Code that repeat, copy or replace other records.

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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipeline.sessions.readers.fields import as_list, as_mapping, as_text, list_blocks

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
