"""Translate PostgreSQL errors into the store's exceptions."""

import sqlite3

import psycopg
from psycopg import errors

from pipeline.errors import FieldError, InvalidField, ReverieError, StoreBusy, StoreFull, StoreUnavailable

# A lock is not available, there is a deadlock, or no connection is free.
_BUSY = (
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.TooManyConnections,
)
_FULL = (errors.DiskFull, errors.OutOfMemory)
# A standby accepts no writes: its connections are useful again when it becomes the primary.
_FOLLOWS = (errors.ReadOnlySqlTransaction,)


def failure_of(error: psycopg.Error) -> ReverieError | sqlite3.Error:
    """Return the exception for a failed statement: the store's, or that of `sqlite3` that callers expect."""
    if isinstance(error, _BUSY):
        return StoreBusy(f"the store's server is busy: {_first_line(error)}")
    if isinstance(error, _FULL):
        return StoreFull(f"the store's server has no space left: {_first_line(error)}")
    if isinstance(error, psycopg.IntegrityError):
        return sqlite3.IntegrityError(_first_line(error))
    if isinstance(error, psycopg.DataError) and error.sqlstate is None:
        # The only error of the client itself: a text with a NUL character, which PostgreSQL cannot store.
        return InvalidField(FieldError("text", "cannot store the character NUL"))
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError, *_FOLLOWS)):
        return StoreUnavailable(f"the store's server cannot be used: {_first_line(error)}")
    return sqlite3.OperationalError(f"{type(error).__name__}: {_first_line(error)}")


def _first_line(error: psycopg.Error) -> str:
    # The rest of the message quotes the statement and user text.
    message = error.diag.message_primary or str(error)
    return message.strip().partition("\n")[0]
