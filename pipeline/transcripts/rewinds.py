"""Find the prompts that a person took back by rewinding a conversation.

Each record of Claude Code names the record before it. After a rewind, the next prompt follows an earlier record, and
the records of the branch that was left stay in the file. Not every branch is a rewind: results of parallel calls and
prompts that were typed while the agent worked have branches too.
"""

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from pipeline.transcripts.fields import as_mapping, as_text, list_blocks

# A longer conversation that starts anew in the same file was probably not rewound: its host lost the order.
MOST_AT_START = 3
_NOTICES = ("[Request interrupted by user", "<local-command-")


class _Kind(Enum):
    """What a record is in its conversation."""

    PROMPT = "prompt"
    ANSWER = "answer"
    # The agent's context was replaced by a summary.
    BOUNDARY = "boundary"
    PROGRAM = "program"


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
        if kind is not _Kind.ANSWER and self.last and parent != self.last:
            self.may_be_rewound = True
        # A compaction repeats records that it keeps; the first record has the original order.
        self._nodes.setdefault(name, _Node(parent, len(self._nodes), kind))
        self._leaf = self._leaf if kind is _Kind.PROGRAM else name
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
        kind = _Kind.PROGRAM
        for name in reversed(path):
            kind = kind if self._nodes[name].kind is _Kind.PROGRAM else self._nodes[name].kind
            following[name] = kind
        roots: dict[str, str] = {}
        ends: dict[str, int] = {}
        prompts: Counter[str] = Counter()
        for name, node in self._nodes.items():
            if name not in following:
                root = roots[name] = roots.get(node.parent, name)
                ends[root] = node.number
                prompts[root] += node.kind is _Kind.PROMPT
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
        if successor is None or node.kind in (_Kind.ANSWER, _Kind.BOUNDARY) or self._nodes[successor].number < end:
            return False
        # A file that was compacted may start twice.
        first = following[successor]
        return first is _Kind.PROMPT or (first is _Kind.BOUNDARY and node.parent in self._nodes)


def _classify(record: Mapping[str, Any]) -> _Kind:
    kind = record.get("type")
    if kind == "assistant" or as_mapping(record.get("attachment")).get("type") == "queued_command":
        return _Kind.ANSWER
    if record.get("isCompactSummary") or record.get("subtype") == "compact_boundary":
        return _Kind.BOUNDARY
    if kind != "user" or record.get("isMeta"):
        return _Kind.PROGRAM
    blocks = list(list_blocks(as_mapping(record.get("message")).get("content")))
    if any(block.get("type") == "tool_result" for block in blocks):
        return _Kind.ANSWER
    text = as_text(blocks[0].get("text")).lstrip() if blocks else ""
    return _Kind.PROGRAM if text.startswith(_NOTICES) else _Kind.PROMPT
