"""The states of a memory: its tag, so that a client changes only what it has read, and what an edit replaces."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from sqlite3 import Connection
from typing import Any

from pipeline.errors import PreconditionFailed
from pipeline.records import Memory
from pipeline.store import history

# Everything that a client can change.
_FIELDS = (
    "content",
    "importance",
    "tags",
    "metadata",
    "pinned",
    "details",
    "trust",
    "anchor",
    "branch",
    "expires_at",
    "sensitivity",
    "scope",
    "archived_at",
    "candidate",
)

# The fields whose old values stay in the history, next to the text.
_LABELS = ("tags", "metadata")


def state_tag(memory: Memory) -> str:
    """Return a tag that changes with every change that a client can make to a memory."""
    known = asdict(memory)
    text = json.dumps([known[name] for name in _FIELDS], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def check_state(memory: Memory, expected: Collection[str] | None) -> None:
    """Raise PreconditionFailed unless a memory is in one of the expected states; None permits any state."""
    if expected is not None and state_tag(memory) not in expected:
        raise PreconditionFailed("The memory has changed since you read it. Read it again and repeat the change.")


def keep_replaced(db: Connection, memory: Memory, values: Mapping[str, Any], at: str) -> None:
    """Keep in the history what the new values replace: the text, the tags and the metadata."""
    labels = {name: getattr(memory, name) for name in _LABELS}
    replaced = {name: value for name, value in labels.items() if values.get(name, value) != value}
    if "content" in values:
        history.add(db, memory.seq, at, "edited", memory.content, replaced)
    elif replaced:
        history.add(db, memory.seq, at, "labels_changed", None, replaced)
