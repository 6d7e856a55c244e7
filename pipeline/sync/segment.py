"""Segments: stretches of one device's stream of operations, each a file that is written once.

    magic, a line | signature, a line | header as JSON, a line | the operations, a JSON line each, zlib-compressed

The header names the writer, the stretch and the SHA-256 of what follows, and is signed; all of it is sealed with age
unless a remote is open. A snapshot holds a whole stream up to a number, in place of the segments before it.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import PeerRefused
from pipeline.sync import keys
from pipeline.sync.circle import Card, Circle

MAGIC = b"reverie segment "
VERSION = 1
SEALED = b"age-encryption.org/v1"
# What a bomb of zeros would grow to is not waited for.
MAX_BYTES = 512 * 1024 * 1024
_NAME = re.compile(r"segments/([0-9a-f]{16})/(\d{12})-(\d{12})\.(segment|snapshot)")

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """Whose stretch of which stream a file holds."""

    node: str
    first: int
    last: int
    is_snapshot: bool = False

    @property
    def path(self) -> str:
        """Return the file's place on a remote."""
        ending = "snapshot" if self.is_snapshot else "segment"
        return f"segments/{self.node}/{self.first:012d}-{self.last:012d}.{ending}"


def parse_name(path: str) -> SegmentName | None:
    """Return what a place on a remote is the name of, None for any other file."""
    found = _NAME.fullmatch(path)
    if found is None or int(found[2]) > int(found[3]):
        return None
    return SegmentName(found[1], int(found[2]), int(found[3]), found[4] == "snapshot")


@dataclass(frozen=True, slots=True)
class Segment:
    """What a file holds: the operations, and the cards of the devices that made them."""

    name: SegmentName
    items: Sequence[Item]
    cards: Sequence[Card]


def write_segment(segment: Segment, circle: Circle, *, sealed: bool) -> bytes:
    """Return a segment's bytes, signed by this device."""
    lines = (json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in segment.items)
    body = zlib.compress("\n".join(lines).encode())
    header = {
        "writer": segment.name.node,
        "first": segment.name.first,
        "last": segment.name.last,
        "snapshot": segment.name.is_snapshot,
        "count": len(segment.items),
        "digest": hashlib.sha256(body).hexdigest(),
        "cards": list(segment.cards),
    }
    told = json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    signature = circle.signers[segment.name.node].sign(told).encode()
    plain = b"%s%d\n%s\n%s\n%s" % (MAGIC, VERSION, signature, told, body)
    return keys.seal(plain, [circle.recipient]) if sealed else plain


def read_segment(content: bytes, name: SegmentName, circle: Circle) -> Segment:
    """Return what a file of this name holds; raise PeerRefused for one that is not its writer's, or not whole."""
    plain = keys.unseal(content, circle.openers) if content.startswith(SEALED) else content
    parts = plain.split(b"\n", 3)
    if len(parts) != 4 or not parts[0].startswith(MAGIC):
        raise PeerRefused("it is no segment, or was cut off")
    if parts[0][len(MAGIC) :] != str(VERSION).encode():
        raise PeerRefused("a later version of Reverie wrote it: bring this machine up to date")
    _, signature, told, body = parts
    try:
        header = json.loads(told)
        cards, writer = header["cards"], header["writer"]
        stretch = SegmentName(writer, header["first"], header["last"], header["snapshot"])
    except (ValueError, KeyError, TypeError) as error:
        raise PeerRefused("its header cannot be read") from error
    if stretch != name:
        raise PeerRefused(f"it is named {name.path}, and says that it is {stretch.path}")
    # A newcomer's first segment brings its card along.
    circle.meet(cards)
    author = circle.peers.devices().get(writer)
    if author is None:
        raise PeerRefused(f"the device {writer} is not one that this home is paired with")
    if author.revoked_at is not None:
        raise PeerRefused(f"the device {author.name} was revoked")
    if not keys.is_signed(author.verify_key, signature.decode("ascii", "replace"), told):
        raise PeerRefused(f"it bears the name of {author.name}, but not its signature")
    if hashlib.sha256(body).hexdigest() != header["digest"]:
        raise PeerRefused("it was cut off or changed")
    return Segment(name, _read_lines(body, header["count"]), cards)


def _read_lines(body: bytes, count: int) -> list[Item]:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(body, MAX_BYTES)
    if unpacker.unconsumed_tail:
        raise PeerRefused("it is larger than any segment")
    items = [json.loads(line) for line in text.splitlines()] if text else []
    if len(items) != count:
        raise PeerRefused("it does not hold as many operations as it says")
    return items
