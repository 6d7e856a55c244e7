"""The state of a memory: a tag for conditional changes, and the history of edits."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.errors import PreconditionFailed
from pipeline.kernel.records import Memory
from pipeline.kernel.store import history
from pipeline.text.memory_terms import drop_repeating_tags

# All fields that a client can change.
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

# The fields whose old values are stored in the history, in addition to the text.
_LABELS = ("tags", "metadata")


def state_tag(memory: Memory) -> str:
    """Return a tag that changes with every change that a client can make, except to tags that repeat the text."""
    fields = asdict(memory)
    # Digestion may add tags to a memory that was stored without tags. They repeat its text.
    fields["tags"] = drop_repeating_tags(memory.tags, memory.kind, memory.content)
    text = json.dumps([fields[name] for name in _FIELDS], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def check_state(memory: Memory, expected: Collection[str] | None) -> None:
    """Raise PreconditionFailed unless a memory is in one of the expected states; None permits any state."""
    if expected is not None and state_tag(memory) not in expected:
        raise PreconditionFailed("The memory has changed since you read it. Read it again and repeat the change.")


def record_replaced_values(db: Connection, memory: Memory, values: Mapping[str, Any], at: str) -> None:
    """Store the replaced text, tags and metadata in the history."""
    labels = {name: getattr(memory, name) for name in _LABELS}
    replaced = {name: value for name, value in labels.items() if values.get(name, value) != value}
    if "content" in values:
        history.add(db, memory.seq, at, "edited", memory.content, replaced)
    elif replaced:
        history.add(db, memory.seq, at, "labels_changed", None, replaced)
