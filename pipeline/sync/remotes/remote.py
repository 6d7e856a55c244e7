"""What a remote does, and how its address is read."""

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
    """What was read at once of one writer's stream: its operations, or why none of it can be taken."""

    writer: str
    first: int
    last: int
    items: Sequence[Item] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Operations to be sent, the number of each in its log, and up to which number that brings each workspace."""

    items: Sequence[Item] = ()
    numbers: Sequence[Numbered] = ()
    workspaces: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sent:
    """How many bytes were written, and why some operations were not taken."""

    bytes: int = 0
    refused: Sequence[str] = ()


class RemoteDoor(Protocol):
    """One remote, opened; raises RemoteUnreachable where it cannot be read or written."""

    def meet(self) -> None:
        """Exchange who belongs to the circle, and which keys are new."""

    def receive(self) -> Iterator[Stretch]:
        """Go through what was not read yet."""

    def note_read(self, stretch: Stretch) -> None:
        """Note that a stretch need not be read again."""

    def count_unread(self) -> int:
        """Count the operations that stand there and were not read."""

    def send(self, outgoing: Outgoing) -> Sent:
        """Write operations down for good, and note that they were sent, and which have to be sent again."""

    def needs_tidying(self, purges: int) -> bool:
        """Tell whether the stream is to be written anew, where the stores know of so many purges."""

    def size(self) -> int:
        """Return the bytes that stand there."""

    def tidy(self, parts: Iterable[Outgoing], purges: int) -> int:
        """Write the whole stream anew, in parts, as of so many purges; return how many bytes that took."""


def check_url(url: str) -> str:
    """Return an address as it is kept; raise InvalidField for one by which nothing may travel."""
    if url.startswith(FOLDER):
        if not url.removeprefix(FOLDER).startswith("/"):
            raise InvalidField(FieldError("url", "name the folder by its whole path: dir:/…"))
        return url
    if _BUCKET.match(url):
        return url
    return check_server_url(url, "dir:PATH, s3://BUCKET/PREFIX, or https://HOST")
