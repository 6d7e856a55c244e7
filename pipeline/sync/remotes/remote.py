"""The interface of a remote, and the check of its address."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.errors import FieldError, InvalidField
from pipeline.store.objects import FOLDER
from pipeline.store.peers import Numbered
from pipeline.text.addresses import check_server_url

Item = Mapping[str, Any]
_BUCKET = re.compile(r"s3://[a-z0-9]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of one writer's stream: its operations, or the reason why it was rejected."""

    writer: str
    first: int
    last: int
    items: Sequence[Item] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Operations to send, the log number of each, and the last number per workspace."""

    items: Sequence[Item] = ()
    numbers: Sequence[Numbered] = ()
    workspaces: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sent:
    """Number of bytes written, and reasons for rejected operations."""

    bytes: int = 0
    refused: Sequence[str] = ()


class RemoteDoor(Protocol):
    """The client of a remote; raises RemoteUnreachable if it cannot be read or written."""

    def meet(self) -> None:
        """Exchange the devices and new keys of the circle."""

    def receive(self) -> Iterator[Stretch]:
        """Yield the unread parts."""

    def note_read(self, stretch: Stretch) -> None:
        """Record that a part was read."""

    def count_unread(self) -> int:
        """Count the unread operations on the remote."""

    def send(self, outgoing: Outgoing) -> Sent:
        """Write operations durably, and record which were sent and which to send again."""

    def count_damaged(self) -> int:
        """Return how many files of this device are damaged or missing; make a server receive all operations again."""

    def needs_tidying(self, purges: int) -> bool:
        """Return whether to rewrite the stream, given the number of purges in the stores."""

    def size(self) -> int:
        """Return the size of the remote in bytes."""

    def tidy(self, parts: Iterable[Outgoing], purges: int) -> int:
        """Rewrite the stream in parts after so many purges; return the number of bytes written."""


def check_url(url: str) -> str:
    """Return a normalized remote address; raise InvalidField if it is not allowed."""
    if url.startswith(FOLDER):
        if not url.removeprefix(FOLDER).startswith("/"):
            raise InvalidField(FieldError("url", "must contain an absolute path: dir:/…"))
        return url
    if _BUCKET.match(url):
        return url
    return check_server_url(url, "dir:PATH, s3://BUCKET/PREFIX, or https://HOST")
