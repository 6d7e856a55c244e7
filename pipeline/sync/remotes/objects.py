"""A folder or an S3-compatible bucket: files that are written once, each by one device.

    devices/<node>.card       who belongs to the circle, as this device knows it
    keys/<hash>.notice        a new key, sealed to the devices that stay
    segments/<node>/…         the device's stream

No file is ever shared between writers, so that whatever copies the folder has nothing to merge.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.errors import PeerRefused, RemoteUnreachable
from pipeline.store.objects import FOLDER, ObjectExists, ObjectStorage
from pipeline.store.peers import Peers, Remote, Stream
from pipeline.sync import keys
from pipeline.sync.circle import Circle
from pipeline.sync.remotes.remote import Outgoing, Sent, Stretch
from pipeline.sync.segment import SEALED, Segment, SegmentName, parse_name, read_segment, write_segment

# A segment holds no more.
MOST_ITEMS = 2000
# So many small files become few, once they are a good part of the stream, or far too many.
MANY_SEGMENTS = 64
FAR_TOO_MANY = 1024
GOOD_PART = 4


def make_folder(url: str) -> None:
    """Make a remote's folder if need be: once, so that one which is not mounted later is not taken for an empty one."""
    try:
        Path(url.removeprefix(FOLDER)).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RemoteUnreachable(f"{url} cannot be made: {error.strerror}") from error


@dataclass(frozen=True)
class ObjectRemote:
    """A remote that is files. `is_mine` tells whether operations of a segment are known here."""

    remote: Remote
    peers: Peers
    is_mine: Callable[[Segment], bool]

    @cached_property
    def _storage(self) -> ObjectStorage:
        return ObjectStorage.open(self.remote.url, RemoteUnreachable)

    @property
    def _circle(self) -> Circle:
        return Circle(self.peers)

    def meet(self) -> None:
        """Read who belongs to the circle and which keys are new; say what this device knows of both."""
        notices = {path: self._storage.get(path) for path in self._storage.list("keys/")}
        self._circle.heed(one.decode("ascii", "replace") for one in notices.values() if one)
        circle = self._circle
        own = f"devices/{circle.identity.node}.card"
        cards = {path: self._storage.get(path) for path in self._storage.list("devices/")}
        for content in cards.values():
            if content is not None:
                circle.meet(_read_cards(content, circle))
        for notice in self.peers.notices():
            path = f"keys/{hashlib.sha256(notice.encode()).hexdigest()[:16]}.notice"
            if path not in notices:
                self._storage.put(path, notice.encode())
        circle = self._circle
        known = cards.get(own)
        told = circle.cards()
        if known is None or _marks(_read_cards(known, circle)) != _marks(told):
            self._storage.put(own, self._seal(json.dumps(told).encode(), circle))

    def _seal(self, content: bytes, circle: Circle) -> bytes:
        return keys.seal(content, [circle.recipient]) if self.remote.sealed else content

    def _list_segments(self) -> list[SegmentName]:
        return sorted(name for path in self._storage.list("segments/") if (name := parse_name(path)) is not None)

    def receive(self) -> Iterator[Stretch]:
        """Go through the segments that were not read, whoever wrote them, in each stream's order."""
        received = self.peers.received(self.remote.name)
        for name in self._list_segments():
            if any(first <= name.first and name.last <= last for first, last in received.get(name.node, [])):
                continue
            content = self._storage.get(name.path)
            if content is None:
                # Its writer has put a snapshot in its place meanwhile.
                continue
            circle = self._circle
            try:
                segment = read_segment(content, name, circle)
                if name.node == circle.identity.node and not self.is_mine(segment):
                    # Another machine writes under this one's name: one of the two is a copy.
                    circle.rename()
            except (PeerRefused, ValueError, TypeError) as error:
                yield Stretch(name.node, name.first, name.last, refused=str(error))
                continue
            yield Stretch(name.node, name.first, name.last, segment.items)
            received = self.peers.received(self.remote.name)

    def note_read(self, stretch: Stretch) -> None:
        """Note that a stretch of a device's stream need not be read again."""
        self.peers.record_received(self.remote.name, stretch.writer, stretch.first, stretch.last)

    def count_unread(self) -> int:
        """Count the numbers of other devices' streams that stand there and were not read."""
        own = {one.node for one in self._circle.identities}
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
        circle = self._circle
        node = circle.identity.node
        stream = self.peers.stream(self.remote.name, node)
        # What was written and not noted stands there all the same.
        last = max([stream.last, *(one.last for one in self._list_segments() if one.node == node)])
        name = SegmentName(node, last + 1, last + len(outgoing.items))
        content = write_segment(Segment(name, outgoing.items, circle.cards()), circle, sealed=self.remote.sealed)
        try:
            size = self._storage.put(name.path, content, once=True)
        except ObjectExists as error:
            raise RemoteUnreachable(f"{name.path} is there already: it is read first, the next time") from error
        if not last:
            stream = replace(stream, epoch=circle.epoch)
        self.peers.record_sent(self.remote.name, node, replace(stream, last=name.last), outgoing.workspaces)
        return Sent(size)

    def tidy(self, parts: Iterable[Outgoing], purges: int) -> int:
        """Put a snapshot of the stream, in as many files as it has parts, in the place of its segments."""
        circle = self._circle
        node = circle.identity.node
        last = self.peers.stream(self.remote.name, node).last
        old = self._list_own(node)
        size, end = 0, 0
        written: set[SegmentName] = set()
        for part, is_final in _mark_final(part for part in parts if part.items):
            until = end + len(part.items)
            # Together they stand for all numbers, also for those of operations that were purged.
            name = SegmentName(node, end + 1, max(last, until) if is_final else until, is_snapshot=True)
            content = write_segment(Segment(name, part.items, circle.cards()), circle, sealed=self.remote.sealed)
            size += self._storage.put(name.path, content)
            written.add(name)
            end = name.last
        self._storage.delete(one.path for one in old if one not in written and one.last <= end)
        self.peers.record_sent(self.remote.name, node, Stream(end, purges, circle.epoch), {})
        return size

    def _list_own(self, node: str) -> list[SegmentName]:
        return [one for one in self._list_segments() if one.node == node]

    def needs_tidying(self, purges: int) -> bool:
        """Tell whether the stream holds what was purged since, is sealed with an old key, or is in many small files."""
        circle = self._circle
        stream = self.peers.stream(self.remote.name, circle.identity.node)
        if not stream.last:
            return False
        if stream.purges != purges or stream.epoch != circle.epoch:
            return True
        own = [one for one in self._list_own(circle.identity.node) if not one.is_snapshot]
        sizes = [size for one in own if (size := one.last - one.first + 1) < MOST_ITEMS]
        return len(sizes) > FAR_TOO_MANY or (len(sizes) > MANY_SEGMENTS and sum(sizes) * GOOD_PART > stream.last)

    def size(self) -> int:
        """Return the bytes that all streams take."""
        return sum(self._storage.list("segments/").values())


def _mark_final(parts: Iterable[Outgoing]) -> Iterator[tuple[Outgoing, bool]]:
    """Go through parts, each with whether it is the last; without any there is an empty one."""
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
        # Sealed to a circle that this machine is not in, or not any more: it vouches for nobody here.
        return []
    return [card for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []


def _marks(cards: list[dict[str, Any]] | Any) -> list[str]:
    return sorted(json.dumps({**card}, sort_keys=True) for card in cards)
