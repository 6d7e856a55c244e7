"""Segments: parts of one device's stream of operations, each a file that is written once.

    line with magic | line with signature | line with JSON header | operations as zlib-compressed JSON lines

The signed header contains the writer, the range of numbers and the SHA-256 of the operations. The file is sealed with
age unless encryption is off for the remote. A snapshot replaces all segments of a stream up to a number.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.features.sync import keys
from pipeline.features.sync.circle import Card, Circle
from pipeline.kernel.errors import PeerRefused

MAGIC = b"reverie segment "
VERSION = 1
SEALED = b"age-encryption.org/v1"
# Limits the memory that a decompression bomb can take.
MAX_BYTES = 512 * 1024 * 1024
_NAME = re.compile(r"segments/([0-9a-f]{16})/(\d{12})-(\d{12})\.(segment|snapshot)")

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class SegmentName:
    """The device and the range of operation numbers of a file."""

    node: str
    first: int
    last: int
    is_snapshot: bool = False

    @property
    def path(self) -> str:
        """Return the file's path on a remote."""
        ending = "snapshot" if self.is_snapshot else "segment"
        return f"segments/{self.node}/{self.first:012d}-{self.last:012d}.{ending}"


def parse_name(path: str) -> SegmentName | None:
    """Parse the path of a segment on a remote; return None for any other file."""
    match = _NAME.fullmatch(path)
    if match is None or int(match[2]) > int(match[3]):
        return None
    return SegmentName(match[1], int(match[2]), int(match[3]), match[4] == "snapshot")


@dataclass(frozen=True, slots=True)
class Segment:
    """The contents of a file: operations, and the cards of the devices that made them."""

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
    header_text = json.dumps(header, sort_keys=True, ensure_ascii=False).encode()
    signature = circle.signers[segment.name.node].sign(header_text).encode()
    plain = b"%s%d\n%s\n%s\n%s" % (MAGIC, VERSION, signature, header_text, body)
    return keys.seal(plain, [circle.recipient]) if sealed else plain


def read_segment(content: bytes, name: SegmentName, circle: Circle) -> Segment:
    """Read a file of this name; raise PeerRefused if it is incomplete or not signed by its writer."""
    plain = keys.unseal(content, circle.openers) if content.startswith(SEALED) else content
    parts = plain.split(b"\n", 3)
    if len(parts) != 4 or not parts[0].startswith(MAGIC):
        raise PeerRefused("it is not a segment, or it was cut off")
    if parts[0][len(MAGIC) :] != str(VERSION).encode():
        raise PeerRefused("a later version of Reverie wrote it: bring this machine up to date")
    _, signature, header_text, body = parts
    try:
        header = json.loads(header_text)
        cards, writer = header["cards"], header["writer"]
        stretch = SegmentName(writer, header["first"], header["last"], header["snapshot"])
    except (ValueError, KeyError, TypeError) as error:
        raise PeerRefused("its header cannot be read") from error
    if stretch != name:
        raise PeerRefused(f"it is named {name.path}, but its header says {stretch.path}")
    # The first segment of a new device contains its card.
    circle.meet(cards)
    author = circle.peers.devices().get(writer)
    if author is None:
        raise PeerRefused(f"the device {writer} is not paired with this data directory")
    if author.revoked_at is not None:
        raise PeerRefused(f"the device {author.name} was revoked")
    if not keys.is_signed(author.verify_key, signature.decode("ascii", "replace"), header_text):
        raise PeerRefused(f"it names {author.name} as its author, but has no valid signature of that device")
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
        raise PeerRefused("it does not contain the number of operations in its header")
    return items
