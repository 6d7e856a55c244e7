"""What an error of PostgreSQL means for the store: typed as every caller of a store knows it."""

import sqlite3

import psycopg
from psycopg import errors

from pipeline.errors import FieldError, InvalidField, ReverieError, StoreBusy, StoreFull, StoreUnavailable

# Somebody else holds what is wanted, two wait for each other, or there is no place for another connection.
_BUSY = (
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.TooManyConnections,
)
_FULL = (errors.DiskFull, errors.OutOfMemory)
# A server that only follows another takes no writes: its connections are of use again when it leads.
_FOLLOWS = (errors.ReadOnlySqlTransaction,)


def failure_of(error: psycopg.Error) -> ReverieError | sqlite3.Error:
    """Return what a failed statement means: what to do about the store, or the error of `sqlite3` that callers know."""
    if isinstance(error, _BUSY):
        return StoreBusy(f"the server of the store is held up: {_first_line(error)}")
    if isinstance(error, _FULL):
        return StoreFull(f"the server of the store has no room: {_first_line(error)}")
    if isinstance(error, psycopg.IntegrityError):
        return sqlite3.IntegrityError(_first_line(error))
    if isinstance(error, psycopg.DataError) and error.sqlstate is None:
        # The one thing that the client refuses by itself: a text with a NUL, which PostgreSQL cannot hold.
        return InvalidField(FieldError("text", "cannot hold the character NUL"))
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, *_FOLLOWS)):
        return StoreUnavailable(f"the server of the store cannot be used: {_first_line(error)}")
    return sqlite3.OperationalError(f"{type(error).__name__}: {_first_line(error)}")


def _first_line(error: psycopg.Error) -> str:
    # What follows quotes the statement, with what somebody wrote in it.
    said = error.diag.message_primary or str(error)
    return said.strip().partition("\n")[0]
