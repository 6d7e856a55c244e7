"""A folder or an S3-compatible bucket as a remote: files that are written once, each by one device.

    devices/<node>.card       who belongs to the circle, as this device knows it
    keys/<hash>.notice        a new key, sealed to the devices that stay
    segments/<node>/…         the device's stream

Two devices never write the same file, so that programs that copy the folder never have to merge.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from config.operating_system import make_folder as make_private_folder
from pipeline.features.sync import keys
from pipeline.features.sync.circle import Circle
from pipeline.features.sync.remotes.remote import Outgoing, RemoteConnection, Sent, Stretch
from pipeline.features.sync.segment import SEALED, Segment, SegmentName, parse_name, read_segment, write_segment
from pipeline.kernel.errors import PeerRefused, RemoteUnreachable
from pipeline.kernel.store.objects import FOLDER, ObjectExists, ObjectStorage
from pipeline.kernel.store.peers import Stream

# Maximum number of operations in a segment.
MOST_ITEMS = 2000
# Small segments are combined above MANY_SEGMENTS files that make up 1/GOOD_PART of the stream, or above FAR_TOO_MANY.
MANY_SEGMENTS = 64
FAR_TOO_MANY = 1024
GOOD_PART = 4


def make_folder(url: str) -> None:
    """Make a remote's folder once; later, an unmounted folder must not look like an empty remote."""
    try:
        make_private_folder(Path(url.removeprefix(FOLDER)))
    except OSError as error:
        raise RemoteUnreachable(f"{url} cannot be made: {error.strerror}") from error


@dataclass(frozen=True)
class ObjectRemote(RemoteConnection):
    """A remote that consists of files. `is_mine` returns whether this machine has all operations of a segment."""

    is_mine: Callable[[Segment], bool]

    @cached_property
    def _storage(self) -> ObjectStorage:
        return ObjectStorage.open(self.remote.url, RemoteUnreachable)

    def meet(self) -> None:
        """Read the cards and new keys of other devices, and write those of this device."""
        notices = {path: self._storage.get(path) for path in self._storage.list("keys/")}
        self.circle.heed(notice.decode("ascii", "replace") for notice in notices.values() if notice)
        circle = self.circle
        own = f"devices/{circle.identity.node}.card"
        cards = {path: self._storage.get(path) for path in self._storage.list("devices/")}
        for content in cards.values():
            if content is not None:
                circle.meet(_read_cards(content, circle))
        for notice in self.peers.notices():
            path = f"keys/{hashlib.sha256(notice.encode()).hexdigest()[:16]}.notice"
            if path not in notices:
                self._storage.put(path, notice.encode())
        circle = self.circle
        known = cards.get(own)
        cards_here = circle.cards()
        if known is None or _marks(_read_cards(known, circle)) != _marks(cards_here):
            content = json.dumps(cards_here).encode()
            self._storage.put(own, keys.seal(content, [circle.recipient]) if self.remote.sealed else content)

    def _list_segments(self) -> list[SegmentName]:
        return sorted(name for path in self._storage.list("segments/") if (name := parse_name(path)) is not None)

    def receive(self) -> Iterator[Stretch]:
        """Yield the unread segments of all devices, in the order of each stream."""
        received = self.peers.received(self.remote.name)
        for name in self._list_segments():
            if any(first <= name.first and name.last <= last for first, last in received.get(name.node, [])):
                continue
            content = self._storage.get(name.path)
            if content is None:
                # Its writer has replaced it with a snapshot.
                continue
            circle = self.circle
            try:
                segment = read_segment(content, name, circle)
                if name.node == circle.identity.node and not self.is_mine(segment):
                    # Another machine uses this one's identity: one data directory is a copy of the other.
                    circle.rename()
            except (PeerRefused, ValueError, TypeError) as error:
                yield Stretch(name.node, name.first, name.last, refused=str(error))
                continue
            yield Stretch(name.node, name.first, name.last, segment.items)
            received = self.peers.received(self.remote.name)

    def count_unread(self) -> int:
        """Count the unread operation numbers in other devices' streams."""
        own = self.circle.signers
        received = self.peers.received(self.remote.name)
        unread, reached = 0, dict[str, int]()
        for name in self._list_segments():
            first = max(name.first, reached.get(name.node, 0) + 1)
            if name.node in own or first > name.last:
                continue
            read = sum(
                max(0, min(name.last, until) - max(first, since) + 1) for since, until in received.get(name.node, [])
            )
            unread += name.last - first + 1 - read
            reached[name.node] = name.last
        return unread

    def send(self, outgoing: Outgoing) -> Sent:
        """Append a segment to this device's stream."""
        circle = self.circle
        node = circle.identity.node
        stream = self.peers.stream(self.remote.name, node)
        # An interrupted run may have written segments without recording them.
        last = max([stream.last, *(name.last for name in self._list_segments() if name.node == node)])
        name = SegmentName(node, last + 1, last + len(outgoing.items))
        content = write_segment(Segment(name, outgoing.items, circle.cards()), circle, sealed=self.remote.sealed)
        try:
            size = self._storage.put(name.path, content, once=True)
        except ObjectExists as error:
            raise RemoteUnreachable(f"{name.path} exists already. The next exchange reads it first.") from error
        if not last:
            stream = replace(stream, epoch=circle.epoch)
        self.peers.record_sent(self.remote.name, node, replace(stream, last=name.last), outgoing.workspaces)
        return Sent(size)

    def tidy(self, parts: Iterable[Outgoing], purges: int) -> int:
        """Replace the segments of the stream with a snapshot, one file per part."""
        circle = self.circle
        node = circle.identity.node
        last = self.peers.stream(self.remote.name, node).last
        old = self._list_own(node)
        size, end = 0, 0
        written: set[SegmentName] = set()
        for part, is_final in _mark_final(part for part in parts if part.items):
            until = end + len(part.items)
            # Together the files cover all numbers, including those of purged operations.
            name = SegmentName(node, end + 1, max(last, until) if is_final else until, is_snapshot=True)
            content = write_segment(Segment(name, part.items, circle.cards()), circle, sealed=self.remote.sealed)
            size += self._storage.put(name.path, content)
            written.add(name)
            end = name.last
        self._storage.delete(name.path for name in old if name not in written and name.last <= end)
        self.peers.record_sent(self.remote.name, node, Stream(end, purges, circle.epoch), {})
        return size

    def _list_own(self, node: str) -> list[SegmentName]:
        return [name for name in self._list_segments() if name.node == node]

    def count_damaged(self) -> int:
        """Return how many files of this device are damaged or missing, and delete the damaged ones."""
        circle = self.circle
        own = {node for node in circle.signers if circle.devices[node].revoked_at is None}
        files = [name for name in self._list_segments() if name.node in own]
        damaged = [name for name in files if not self._is_readable(name, circle)]
        self._storage.delete(name.path for name in damaged)
        return len(damaged) + sum(self._count_gaps(node, files) for node in own)

    def _is_readable(self, name: SegmentName, circle: Circle) -> bool:
        content = self._storage.get(name.path)
        try:
            return content is not None and bool(read_segment(content, name, circle))
        except (PeerRefused, ValueError, TypeError):
            return False

    def _count_gaps(self, node: str, files: Iterable[SegmentName]) -> int:
        """Count the gaps in the numbers of a stream of this device."""
        gaps, end = 0, 0
        for name in files:
            if name.node == node:
                gaps += name.first > end + 1
                end = max(end, name.last)
        return gaps + (end < self.peers.stream(self.remote.name, node).last)

    def needs_tidying(self, purges: int) -> bool:
        """Return whether the stream contains purged data, is sealed with an old key, or has many small files."""
        circle = self.circle
        stream = self.peers.stream(self.remote.name, circle.identity.node)
        if not stream.last:
            return False
        if stream.purges != purges or stream.epoch != circle.epoch:
            return True
        own = [name for name in self._list_own(circle.identity.node) if not name.is_snapshot]
        sizes = [size for name in own if (size := name.last - name.first + 1) < MOST_ITEMS]
        return len(sizes) > FAR_TOO_MANY or (len(sizes) > MANY_SEGMENTS and sum(sizes) * GOOD_PART > stream.last)

    def size(self) -> int:
        """Return the size of all streams in bytes."""
        return sum(self._storage.list("segments/").values())


def _mark_final(parts: Iterable[Outgoing]) -> Iterator[tuple[Outgoing, bool]]:
    """Yield each part and whether it is the last; without parts, yield an empty one."""
    before = None
    for part in parts:
        if before is not None:
            yield before, False
        before = part
    yield before or Outgoing(), True


def _read_cards(content: bytes, circle: Circle) -> list[dict[str, Any]]:
    try:
        plain = keys.unseal(content, circle.openers) if content.startswith(SEALED) else content
        cards = json.loads(plain)
    except (PeerRefused, ValueError):
        # Sealed to a circle that this machine never joined or has left: ignore its cards.
        return []
    return [card for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []


def _marks(cards: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(card, sort_keys=True) for card in cards)
