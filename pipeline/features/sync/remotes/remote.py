"""The interface of a remote, and the check of its address."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.features.sync.circle import Circle
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.store.objects import FOLDER
from pipeline.kernel.store.peers import Numbered, Peers, Remote
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


@dataclass(frozen=True)
class RemoteConnection(ABC):
    """The client of a remote; raises RemoteUnreachable if it cannot be read or written."""

    remote: Remote
    peers: Peers

    @property
    def circle(self) -> Circle:
        """Return the circle as it is now."""
        return Circle(self.peers)

    @abstractmethod
    def meet(self) -> None:
        """Exchange the devices and new keys of the circle."""

    @abstractmethod
    def receive(self) -> Iterator[Stretch]:
        """Yield the unread parts."""

    def note_read(self, stretch: Stretch) -> None:
        """Record that a part was read."""
        self.peers.record_received(self.remote.name, stretch.writer, stretch.first, stretch.last)

    @abstractmethod
    def count_unread(self) -> int:
        """Count the unread operations on the remote."""

    @abstractmethod
    def send(self, outgoing: Outgoing) -> Sent:
        """Write operations durably, and record which were sent and which to send again."""

    @abstractmethod
    def count_damaged(self) -> int:
        """Return how many files of this device are damaged or missing; make a server receive all operations again."""

    def needs_tidying(self, purges: int) -> bool:  # noqa: ARG002 - a server maintains its own files
        """Return whether to rewrite the stream, given the number of purges in the stores."""
        return False

    def tidy(self, parts: Iterable[Outgoing], purges: int) -> int:  # noqa: ARG002 - as above
        """Rewrite the stream in parts after so many purges; return the number of bytes written."""
        return 0

    def size(self) -> int:
        """Return the size of the remote in bytes, 0 for a server."""
        return 0


def check_url(url: str) -> str:
    """Return a normalized remote address; raise InvalidField if it is not allowed."""
    if url.startswith(FOLDER):
        if not url.removeprefix(FOLDER).startswith("/"):
            raise InvalidField(FieldError("url", "must contain an absolute path: dir:/…"))
        return url
    if _BUCKET.match(url):
        return url
    return check_server_url(url, "dir:PATH, s3://BUCKET/PREFIX, or https://HOST")
