"""The one exception tree.

ReverieError
├── InvalidField         a value that a caller sent cannot be taken (422, names the field)
├── MalformedRequest     the request itself cannot be read (400)
├── Forbidden            who asks may not do this here (403)
├── NotFound             no such memory, workspace, entity or surface (404)
├── Conflict             the change contradicts what is stored (409)
│   └── ReadOnly         a switch says that nothing is stored or changed here
├── PreconditionFailed   the memory is not in the state that the caller expects (412)
├── LimitReached         a token asked for more than it may in a while (429)
├── StoreUnavailable     the store cannot take it now; try again (503)
│   ├── StoreBusy        another writer held the file past the busy timeout
│   ├── StoreFull        the disk has no room
│   ├── StoreDamaged     a file is no sound store; a snapshot can be put back
│   │   └── CopyDiffers  a copy holds another row than what it was made from
│   ├── KeyUnavailable   the key of an encrypted store is missing or another one
│   ├── StorageUnreachable  object storage cannot be read or written now
│   └── StoreClosed      the workspace's own settings cannot be taken: they may have said to store nothing
├── IndexUnavailable     a derived index is missing or broken; it will be rebuilt
├── EncoderUnavailable   no compiled encoder is there yet
├── UnreadableTranscript a host's transcript is not read: it is no session's own file, or cannot be opened
├── ExtraMissing         a package of an optional feature is not installed (501)
├── StageFailed          a stage could not digest a memory
├── PeerRefused          what another machine sent is not taken, or it does not take what it is sent (403)
│   └── ClockAhead       its clock is further ahead than two clocks may be apart
├── RemoteUnreachable    a remote that memories travel by, or a team's server, cannot be reached now (502)
├── WrongServer          a program at the server's address is not the server of this data directory
└── ServerUnreachable    a client found no Reverie server
    └── AnswerLost       a server was there and broke off: whether it did what was asked is unknown
"""

from dataclasses import dataclass
from pathlib import Path


class ReverieError(Exception):
    """Base of everything that Reverie raises on purpose."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One rejected field: its dotted place in the request and what is wrong with it."""

    loc: str
    msg: str


class InvalidField(ReverieError):
    """Say which field of a request cannot be taken, and why; never quotes the value."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{e.loc}: {e.msg}" for e in errors))
        self.errors = errors


class MalformedRequest(ReverieError):
    """Say that a request could not be read at all."""


class Forbidden(ReverieError):
    """Say what who asks may not do."""


class NotFound(ReverieError):
    """Say that the named thing does not exist."""


class Conflict(ReverieError):
    """Say that a change contradicts what is stored."""


class ReadOnly(Conflict):
    """Say that a switch keeps anything from being stored or changed in a workspace."""


class PreconditionFailed(ReverieError):
    """Say that a memory has changed since the caller read it."""


class LimitReached(ReverieError):
    """Say that a token asked for more than it may in a while, and when to try again (seconds); `limit` names which."""

    def __init__(self, message: str, limit: str = "", retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.limit = limit
        self.retry_after_s = retry_after_s


class StoreUnavailable(ReverieError):
    """Say that the store cannot serve this now, and when to try again (seconds)."""

    retry_after_s = 1


class StoreBusy(StoreUnavailable):
    """Say that another writer held the store past the busy timeout."""


class StoreFull(StoreUnavailable):
    """Say that the disk under the store has no room."""

    retry_after_s = 30


class StoreDamaged(StoreUnavailable):
    """Say that a file is no sound store, or that a copy is not what it was made from."""

    retry_after_s = 60


class CopyDiffers(StoreDamaged):
    """Say in which row of which table a copy of a store is not what it was made from."""

    def __init__(self, table: str, key: str) -> None:
        super().__init__(f"the copy differs from its source in {table}: {key}")
        self.table = table
        self.key = key


class KeyUnavailable(StoreUnavailable):
    """Say that the key of an encrypted store is not where it was, or is another one; the store is as it was."""

    retry_after_s = 60


class StorageUnreachable(StoreUnavailable):
    """Say that object storage cannot be read or written now; what lies there is as it was."""

    retry_after_s = 5


class StoreClosed(StoreUnavailable):
    """Say that nothing is stored in a workspace as long as its own settings cannot be taken."""

    retry_after_s = 60


class IndexUnavailable(ReverieError):
    """Say that a derived index is missing or broken and waits to be rebuilt; `part` names the piece, if any."""

    def __init__(self, message: str, part: str | None = None) -> None:
        super().__init__(message)
        self.part = part


class EncoderUnavailable(ReverieError):
    """Say that the encoder is not compiled or cannot be loaded yet."""


class ExtraMissing(ReverieError):
    """Say which packages an optional feature lacks, and which command installs them."""


class UnreadableTranscript(ReverieError):
    """Say which transcript of a host is not read, and why."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"The transcript {file} was not read: it {reason}. What is said in this session is not remembered. "
            "Link the host's whole folder of transcripts instead of single files."
        )


class PeerRefused(ReverieError):
    """Say why what another machine sent is not taken, or why it takes nothing from here."""


class ClockAhead(PeerRefused):
    """Say that a stamp is from further in the future than two clocks may be apart."""


class RemoteUnreachable(ReverieError):
    """Say that a remote that memories travel by, or a team's server, cannot be reached now."""


class StageFailed(ReverieError):
    """Say that a stage could not digest a memory."""


class WrongServer(ReverieError):
    """Say which program is at the server's address in place of the data directory's server, and what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


class ServerUnreachable(ReverieError):
    """Say that no Reverie server answers at the configured address."""


class AnswerLost(ServerUnreachable):
    """Say that a server broke off before it answered: what was asked may have been done."""
