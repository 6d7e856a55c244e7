"""The exception hierarchy.

ReverieError
├── InvalidField         a value in the request is invalid (422, names the field)
├── MalformedRequest     the request cannot be read (400)
├── Forbidden            the caller may not do this here (403)
├── NotFound             no such memory, workspace, entity or surface (404)
├── Conflict             the change contradicts the stored data (409)
│   └── ReadOnly         a setting forbids changes here
├── PreconditionFailed   the memory is not in the state that the caller expects (412)
├── LimitReached         a token exceeded one of its limits (429)
├── StoreUnavailable     the store cannot serve the request now; try again (503)
│   ├── StoreBusy        another writer used the store longer than the busy timeout
│   ├── StoreFull        the disk is full
│   ├── StoreDamaged     a store file is damaged; restore a snapshot
│   │   └── CopyDiffers  a copy has a row that differs from its source
│   ├── KeyUnavailable   the key of an encrypted store is missing or wrong
│   ├── StorageUnreachable  object storage cannot be read or written now
│   └── StoreClosed      the workspace's settings are invalid: they may have forbidden to store anything
├── IndexUnavailable     a derived index is missing or broken; it will be rebuilt
├── EncoderUnavailable   no compiled encoder exists yet
│   └── EncoderPending       it is being made in the background
├── ExtraMissing         a package of an optional feature is not installed (501)
├── ForeignDatabaseUnreadable  another program's database is locked, incomplete or no database
├── UnreadableTranscript a host's transcript is not a regular file, or cannot be opened
├── StageFailed          a stage could not digest a memory
├── PeerRefused          another machine's data is rejected, or the other machine rejects ours (403)
│   └── ClockAhead       the other machine's clock is too far ahead
├── RemoteUnreachable    a sync remote or a team server cannot be reached now (502)
└── ServerUnreachable    a client found no Reverie server
    └── AnswerLost       the connection broke before the answer; the server may have processed the request
"""

from dataclasses import dataclass
from pathlib import Path

# The same for a workspace that does not exist and for one that the caller may not see.
NO_WORKSPACE = "There is no such workspace. Reverie creates it when the first memory is stored."
# The same for a memory that the caller may not see.
READ_ONLY_SESSION = (
    "This session is read-only: recall works, and nothing can be stored or changed. Leave plan mode, or start the "
    "MCP server without --read-only."
)
NO_SUCH_MEMORY = "no such memory"


class ReverieError(Exception):
    """Base class of all errors that Reverie raises."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """A rejected field: its dotted path in the request, and the reason."""

    loc: str
    msg: str


class InvalidField(ReverieError):
    """A request has an invalid field; the message never quotes the value."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{e.loc}: {e.msg}" for e in errors))
        self.errors = errors


class MalformedRequest(ReverieError):
    """A request cannot be read."""


class Forbidden(ReverieError):
    """The caller may not do this."""


class NotFound(ReverieError):
    """The named object does not exist."""


class Conflict(ReverieError):
    """A change contradicts the stored data."""


class ReadOnly(Conflict):
    """A setting forbids changes in a workspace."""


class PreconditionFailed(ReverieError):
    """A memory changed since the caller read it."""


class LimitReached(ReverieError):
    """A token exceeded the limit named by `limit`; retry after the given number of seconds."""

    def __init__(self, message: str, limit: str = "", retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.limit = limit
        self.retry_after_s = retry_after_s


class StoreUnavailable(ReverieError):
    """The store cannot serve a request now; retry after the given number of seconds."""

    retry_after_s = 1


class StoreBusy(StoreUnavailable):
    """Another writer used the store longer than the busy timeout."""


class StoreFull(StoreUnavailable):
    """The disk of the store is full."""

    retry_after_s = 30


class StoreDamaged(StoreUnavailable):
    """A store file is damaged, or a copy differs from its source."""

    retry_after_s = 60


class CopyDiffers(StoreDamaged):
    """A copy of a store differs from its source in a row of a table."""

    def __init__(self, table: str, key: str) -> None:
        super().__init__(f"the copy differs from its source in {table}: {key}")
        self.table = table
        self.key = key


class KeyUnavailable(StoreUnavailable):
    """The key of an encrypted store is missing or wrong; the store is unchanged."""

    retry_after_s = 60


class StorageUnreachable(StoreUnavailable):
    """Object storage cannot be read or written now; its content is unchanged."""

    retry_after_s = 5


class StoreClosed(StoreUnavailable):
    """A workspace stores nothing because its settings are invalid."""

    retry_after_s = 60


class IndexUnavailable(ReverieError):
    """A derived index is missing or broken and will be rebuilt; `part` names the missing piece, if known."""

    def __init__(self, message: str, part: str | None = None) -> None:
        super().__init__(message)
        self.part = part


class EncoderUnavailable(ReverieError):
    """The encoder is not compiled or cannot be loaded yet."""


class EncoderPending(EncoderUnavailable):
    """The encoder or a classifier over it is being made in the background: try again later."""


class ExtraMissing(ReverieError):
    """Say which packages an optional feature lacks, and which command installs them."""


class ForeignDatabaseUnreadable(ReverieError):
    """Another program's database cannot be read now."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"The database {file} was not read: it {reason}. The next import tries again.")
        self.reason = reason


class UnreadableTranscript(ReverieError):
    """A host's transcript cannot be read."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(
            f"The transcript {file} was not read: it {reason}. Reverie stores nothing from this session. "
            "Link the host's transcripts folder instead of single files."
        )


class PeerRefused(ReverieError):
    """Another machine's data is rejected, or the other machine rejects ours."""


class ClockAhead(PeerRefused):
    """A time stamp is further in the future than the allowed clock difference."""


class RemoteUnreachable(ReverieError):
    """A sync remote or a team server cannot be reached now."""


class StageFailed(ReverieError):
    """A stage failed to digest a memory."""


class ServerUnreachable(ReverieError):
    """No Reverie server answers at the configured address."""


class AnswerLost(ServerUnreachable):
    """The connection broke before the answer; the server may have processed the request."""
