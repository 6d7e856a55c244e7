"""Import the items of a reader in batches, with counts. An interrupted import can be repeated.

Only the server knows which items are imported; a repeated import skips them.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from pipeline.features.ingest.fields import Item, Known, Readings, Skipped
from pipeline.features.ingest.usecases import has_secret
from pipeline.kernel.errors import InvalidField, NotFound, StoreUnavailable
from pipeline.kernel.records import Draft

# The limits of web/features/ingest/http.py, which takes too long to import for a command.
MAX_ITEMS = 200
MAX_KEY_CHARS = 1024
# Far below the limits of a request (1000 memories, 8 MiB), because other writers wait for each request.
MAX_MEMORIES = 250
MAX_BYTES = 4 * 1024 * 1024
# An item that is too large for one request is sent in parts. Their keys are its key and the number of the part.
PART_JOINT = "\x1f"
# The number of example names for each reason.
FIRST = 20
# The start of the reason for an unreadable file or folder, whose earlier items are kept.
UNREAD = "cannot be read"
# The item key of the source's own folder.
ROOT = "."
# Seconds before each retry while the store is busy.
PATIENCE = (0.5, 1.0, 2.0, 4.0, 8.0)

_PART = re.compile(rf"{PART_JOINT}[0-9]+$")
_REFUSED = re.compile(r"items\.([0-9]+)(?:\.memories\.([0-9]+))?")

Read = Callable[[Known], Readings]
# An item that the server knows, with its digest and the number of its memories.
StoredItem = Mapping[str, Any]
Thing = TypeVar("Thing")


@dataclass(slots=True)
class ReasonCount:
    """The number of skipped or rejected items for one reason, and the names of the first ones."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, key: str) -> None:
        """Count one more item."""
        self.count += 1
        if len(self.first) < FIRST and key not in self.first:
            self.first.append(key)


@dataclass(slots=True)
class IntakeCounts:
    """The results for the items of a source and for their memories, and the ids of created memories."""

    items: Counter[str] = field(default_factory=Counter)
    memories: Counter[str] = field(default_factory=Counter)
    rejected: dict[str, ReasonCount] = field(default_factory=dict)
    skipped: dict[str, ReasonCount] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)

    @property
    def are_any_taken(self) -> bool:
        """Return whether a memory was stored, changed or archived, or an item was imported before."""
        return any(self.items[name] for name in ("unchanged", "forgotten")) or any(
            count for name, count in self.memories.items() if name != "rejected"
        )

    def count(self, key: str, outcome: str) -> None:
        """Count the result for an item. Only one of its parts is counted."""
        if item_key(key) == key:
            self.items[outcome] += 1

    def receive(self, key: str, receipt: Mapping[str, Any]) -> None:
        """Count the result for a memory of an item."""
        if receipt["outcome"] == "rejected":
            self.reject(key, receipt["reason"])
        else:
            self.memories[receipt["outcome"]] += 1
        if receipt["outcome"] == "created":
            self.created.append(receipt["id"])

    def reject(self, key: str, reason: str) -> None:
        """Count a rejected memory."""
        self.memories["rejected"] += 1
        self.rejected.setdefault(reason, ReasonCount()).add(item_key(key))

    def skip(self, key: str, reason: str) -> None:
        """Count a skipped item."""
        self.skipped.setdefault(reason, ReasonCount()).add(key)


@dataclass(frozen=True, slots=True)
class ItemPart:
    """An item, or a part of one, in the form for the server; `size` is the size of its memories in bytes."""

    key: str
    digest: str
    memories: Sequence[Mapping[str, Any]]
    size: int

    def measure(self) -> tuple[int, int, int]:
        """Return its size in a request: items, memories, bytes."""
        return 1, len(self.memories), self.size

    def body(self) -> dict[str, Any]:
        """Return it as a part of a request body."""
        return {"key": self.key, "digest": self.digest, "memories": self.memories}


class SourceServer(Protocol):
    """The server side of an import."""

    def source_items(self, source: str) -> Iterator[Mapping[str, Any]]:
        """Yield every known item of a source."""

    def put_items(self, source: str, items: Sequence[Mapping[str, Any]]) -> Any:
        """Sync the memories of a source with some of its items."""

    def forget_items(self, source: str, keys: Sequence[str], created: Sequence[str] = ()) -> Any:
        """Forget items that a source no longer has; `created` are memories that the same import created."""


@dataclass(frozen=True, slots=True)
class Intake:
    """An import into a source of a client's workspace.

    `sweeps`: forget items that are no longer read. `dry`: write nothing.
    """

    client: SourceServer
    source: str
    sweeps: bool = False
    dry: bool = False
    wait: Callable[[float], None] = time.sleep

    def take(self, read: Read) -> IntakeCounts:
        """Read all items and import them."""
        tally = IntakeCounts()
        stored = self.list_stored()
        reading = _Reading(stored, tally)
        with closing(reading.read_parts(read)) as entries:
            for batch in _pack(entries, ItemPart.measure, (MAX_ITEMS, MAX_MEMORIES, MAX_BYTES)):
                self._put(batch, stored, tally)
        # Only after a complete reading: an interrupted one did not see all items.
        self._forget({key: item for key, item in stored.items() if reading.misses(key, sweeps=self.sweeps)}, tally)
        if stored:
            self._follow_moved(tally)
        return tally

    def forget(self) -> IntakeCounts:
        """Forget all items of the source."""
        tally = IntakeCounts()
        self._forget(self.list_stored(), tally)
        return tally

    def list_stored(self) -> dict[str, StoredItem]:
        """Return the known items of the source."""
        try:
            items = list(self.client.source_items(self.source))
        except NotFound:
            # The workspace has no memories yet.
            return {}
        return {item["key"]: item for item in items}

    def _put(self, batch: Sequence[ItemPart], stored: Mapping[str, StoredItem], tally: IntakeCounts) -> None:
        if self.dry:
            for entry in batch:
                tally.count(entry.key, "replaced" if entry.key in stored else "created")
                tally.memories["given"] += len(entry.memories)
            return
        answer = None
        while answer is None:
            try:
                bodies = [entry.body() for entry in batch]
                answer = self._retry_while_busy(partial(self.client.put_items, self.source, bodies))
            except InvalidField as error:
                batch = _drop_refused(batch, error, tally)
        for item in answer["items"]:
            tally.count(item["key"], item["outcome"])
            for receipt in item["receipts"]:
                tally.receive(item["key"], receipt)
        tally.memories.update({name: answer[name] for name in ("archived", "restored")})

    def _forget(self, gone: Mapping[str, StoredItem], tally: IntakeCounts) -> None:
        for keys in _pack(gone, lambda key: (1, gone[key]["memories"]), (MAX_ITEMS, MAX_MEMORIES)):
            for key in keys:
                tally.count(key, "forgotten")
            if not self.dry:
                answer = self._retry_while_busy(partial(self.client.forget_items, self.source, keys))
                tally.memories["archived"] += answer["archived"]

    def _follow_moved(self, tally: IntakeCounts) -> None:
        """Keep what a person changed of sections that were renamed or moved: only now is it known which are gone."""
        for start in range(0, len(tally.created), MAX_MEMORIES):
            ids = tally.created[start : start + MAX_MEMORIES]
            answer = self._retry_while_busy(partial(self.client.forget_items, self.source, (), ids))
            moved = answer.get("moved", 0)
            tally.memories["created"] -= moved
            tally.memories["moved"] += moved

    def _retry_while_busy(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        for pause in PATIENCE:
            try:
                return ask()
            except StoreUnavailable:
                self.wait(pause)
        return ask()


class _Reading:
    """One reading of a source, with the keys that it has seen."""

    def __init__(self, stored: Mapping[str, StoredItem], tally: IntakeCounts) -> None:
        self._tally = tally
        self._digests = {key: item["digest"] for key, item in stored.items() if item_key(key) == key}
        self._parts: dict[str, list[str]] = {}
        for key in stored.keys() - self._digests.keys():
            self._parts.setdefault(item_key(key), []).append(key)
        self._seen: set[str] = set()
        self._unread: set[str] = set()

    def read_parts(self, read: Read) -> Generator[ItemPart]:
        """Yield the parts to import. The part with the item's own key comes last: it confirms that all are imported."""
        for reading in _stream(read(self._digests)):
            if isinstance(reading, Skipped):
                self._tally.skip(reading.key, reading.reason)
                if reading.reason.startswith(UNREAD):
                    self._unread.add(reading.key.rstrip("/"))
                continue
            reason = "it was read twice" if reading.key in self._seen else problem_of_key(reading.key)
            if reason is not None:
                self._tally.skip(reading.key, reason)
                continue
            self._seen.add(reading.key)
            if isinstance(reading, Item):
                entries = split_item(reading)
                self._seen.update(entry.key for entry in entries)
                yield from entries
            else:
                self._seen.update(self._parts.get(reading.key, ()))
                self._tally.items["unchanged"] += 1

    def misses(self, key: str, *, sweeps: bool) -> bool:
        """Return whether a stored key is obsolete: a surplus part, or an item that no longer exists."""
        if key in self._seen:
            return False
        name = item_key(key)
        folders = (name[:end] for end, sign in enumerate(name) if sign == "/")
        return name in self._seen or (sweeps and self._unread.isdisjoint((ROOT, name, *folders)))


def item_key(key: str) -> str:
    """Return the key of the item that a part belongs to."""
    return _PART.sub("", key)


def problem_of_key(key: str) -> str | None:
    """Return why an item cannot be imported under a key, None if it can."""
    if not 0 < len(key) <= MAX_KEY_CHARS:
        return "its name is too long" if key else "it has no name"
    if PART_JOINT in key or key.encode("utf-8", "replace").decode() != key:
        return "its name is not valid text"
    return "its name contains a secret" if has_secret(key) else None


def split_item(item: Item) -> list[ItemPart]:
    """Return an item as parts that each fit into one request, the part under its own key last."""
    written = ((body, len(json.dumps(body, ensure_ascii=False).encode())) for body in map(draft_body, item.drafts))
    groups = list(_pack(written, lambda body_and_size: (1, body_and_size[1]), (MAX_MEMORIES, MAX_BYTES))) or [[]]
    parts = [
        ItemPart(
            item.key if number == 1 else f"{item.key}{PART_JOINT}{number}",
            item.digest,
            [body for body, _ in group],
            sum(size for _, size in group),
        )
        for number, group in enumerate(groups, start=1)
    ]
    return [*parts[1:], parts[0]]


def draft_body(draft: Draft) -> dict[str, Any]:
    """Return a draft as the body of an item's memory."""
    body: dict[str, Any] = {
        "content": draft.content,
        "kind": draft.kind,
        "importance": draft.importance,
        "tags": list(draft.tags),
        "metadata": dict(draft.metadata),
        "session_id": draft.session_id,
        "occurred_at": draft.occurred_at,
        "details": dict(draft.details),
        "branch": draft.branch,
        "expires_at": draft.expires_at,
        "sensitivity": draft.sensitivity,
        "edges": [{"kind": edge.kind, "to": edge.to} for edge in draft.edges],
        **asdict(draft.extraction),
    }
    if draft.scope is not None:
        body["scope"] = {"kind": draft.scope.kind, "id": draft.scope.id}
    if draft.anchor is not None:
        first, last = draft.anchor.first_line, draft.anchor.last_line
        lines = None if first is None else [first, last or first]
        body["anchor"] = {"path": draft.anchor.path, "lines": lines, "content_hash": draft.anchor.content_hash}
    return {name: value for name, value in body.items() if value not in (None, [], {})}


def _pack(
    things: Iterable[Thing], measure: Callable[[Thing], Sequence[int]], most: Sequence[int]
) -> Iterator[list[Thing]]:
    """Yield groups of things in order, each within the limits, or with a single larger thing."""
    group: list[Thing] = []
    sums = [0] * len(most)
    for thing in things:
        added = measure(thing)
        if group and any(total + more > limit for total, more, limit in zip(sums, added, most, strict=True)):
            yield group
            group, sums = [], [0] * len(most)
        group.append(thing)
        sums = [total + more for total, more in zip(sums, added, strict=True)]
    if group:
        yield group


def _drop_refused(batch: Sequence[ItemPart], error: InvalidField, tally: IntakeCounts) -> list[ItemPart]:
    """Return a batch without the items and memories that an error rejects; raise the error if it names none."""
    items: dict[int, str] = {}
    memories: dict[tuple[int, int], str] = {}
    for field_error in error.errors:
        match = _REFUSED.match(field_error.loc)
        if match is None:
            raise error
        if match[2] is None:
            items[int(match[1])] = field_error.msg
        else:
            memories[int(match[1]), int(match[2])] = f"{field_error.loc[match.end() + 1 :]}: {field_error.msg}"
    left = [
        replace(entry, memories=[memory for j, memory in enumerate(entry.memories) if (i, j) not in memories])
        for i, entry in enumerate(batch)
        if i not in items
    ]
    if sum(1 + len(entry.memories) for entry in left) == sum(1 + len(entry.memories) for entry in batch):
        raise error
    for index, reason in items.items():
        tally.skip(batch[index].key, reason)
    for (index, _), reason in memories.items():
        tally.reject(batch[index].key, reason)
    return left


def _stream(readings: Readings) -> Readings:
    # Closing this generator closes the inner one, and with it the open files.
    yield from readings
