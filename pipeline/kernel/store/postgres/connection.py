"""A PostgreSQL connection with the interface and the errors of `sqlite3` that the store's modules use."""

import math
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any, TypeVar, cast

import psycopg
from psycopg import errors
from psycopg.abc import RV, PQGen
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from pipeline.kernel.enums import Stage
from pipeline.kernel.errors import FieldError, InvalidField, ReverieError, StoreBusy, StoreFull, StoreUnavailable
from pipeline.kernel.store.database import WriteConnection
from pipeline.kernel.store.rows import Parameters

# Skip texts, quoted names and comments; a cast has two colons.
_PARTS = re.compile(
    r"""(?P<kept>'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|::)
    |\?(?P<number>\d+)?
    |(?<![\w:]):(?P<name>[A-Za-z_]\w*)
    |(?P<percent>%)
    |\b(?P<conflict>ON\s+CONFLICT\s*\()
    |\b(?P<like>LIKE)\b
    |\b(?P<among>(?:NOT\s+)?IN\s*\(\s*SELECT\s+(?:value|CAST\(value\s+AS\s+BIGINT\))\s+FROM\s+json_each\()(?=[?:][^,]*?\)\))
    |\s+(?P<hint>(?:NOT\s+INDEXED|INDEXED\s+BY\s+\w+))\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SAID_AS = {None: "%s", "percent": "%%", "like": "ILIKE", "hint": ""}


# Numbered values are always named, because few statements name as many values as they get.
@lru_cache(maxsize=2048)
def translate(statement: str, *, of_workspace: bool) -> bytes:
    """Return a statement about a workspace or the data directory for psycopg; numbered values become named ones."""
    return _PARTS.sub(partial(_replace, of_workspace), statement).encode()


def _replace(of_workspace: bool, match: re.Match[str]) -> str:
    part, text = match.lastgroup, match[0]
    if part in ("number", "name"):
        return f"%({'p' if part == 'number' else ''}{match[part]})s"
    if part == "conflict":
        return f"{text}workspace, " if of_workspace else text
    if part == "among":
        listed = "numbers_in(" if "CAST" in text else "texts_in("
        return f"<> ALL ({listed}" if text.startswith("NOT") else f"= ANY ({listed}"
    return _SAID_AS[part] if part in _SAID_AS else text.replace("%", "%%")


def name_values(statement: bytes, values: Parameters) -> Parameters:
    """Return a statement's values by name if it numbers them."""
    if b"%(p1)s" in statement and not isinstance(values, Mapping):
        return {f"p{number}": value for number, value in enumerate(values, 1)}
    return values


Cursor = psycopg.Cursor[Any]
ClientCursor = psycopg.ClientCursor[Any]
Row = tuple[Any, ...]
Answer = TypeVar("Answer")

# Maximum number of statements sent together: the server reads all before it answers any.
MAX_STATEMENTS = 200
# After this time without an answer, check whether the server answers at all.
SILENCE_S = 10.0
# The server cancels slow statements by its own clock, but not a commit that waits for a standby.
COMMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Changed:
    """The number of rows that a batch of statements changed."""

    rowcount: int


class WatchedConnection(psycopg.Connection[Row]):
    """A connection that ends when its server hangs although the server's kernel still acknowledges packets."""

    patience_s = math.inf

    def wait(self, gen: PQGen[RV], *arguments: Any, **options: Any) -> RV:
        """Wait for the library's generator as the library does, but not for a server that does not answer."""
        return super().wait(self._watch(gen), *arguments, **options)

    def _watch(self, gen: PQGen[RV]) -> PQGen[RV]:
        began = heard = time.monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_S:
                    if time.monotonic() - began > self.patience_s or not self._answers_others():
                        self.close()
                        raise psycopg.OperationalError("it hangs, or waits for its standby")
                    heard = time.monotonic()
                state = gen.send(ready)
        except StopIteration as ended:
            return cast("RV", ended.value)

    def _answers_others(self) -> bool:
        try:
            psycopg.connect(make_conninfo(self.info.dsn, target_session_attrs="any")).close()
        except psycopg.errors.ConnectionTimeout:
            return False
        except psycopg.Error:
            # A server that refuses does answer.
            return True
        return True


class PostgresConnection:
    """A connection; its errors are those of `sqlite3` or of the store."""

    def __init__(self, connection: WatchedConnection) -> None:
        self._connection = connection
        # Whether statements concern a workspace; then its name is the first column of every index.
        self.of_workspace = True
        self.wake_ups: set[Stage | None] = set()
        self.changed_rows: set[int] = set()

    @property
    def raw(self) -> psycopg.Connection[Row]:
        """Return the library's connection, for features outside of `sqlite3`; its errors are the library's."""
        return self._connection

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is or may be open."""
        return self._connection.info.transaction_status is not TransactionStatus.IDLE

    @property
    def is_lost(self) -> bool:
        """Return whether the server is gone or has ended this connection."""
        return self._connection.closed

    @property
    def is_writable(self) -> bool:
        """Return whether the server, by its last answer, is writable: not if another server is the primary now."""
        reported = map(self._connection.info.parameter_status, ("default_transaction_read_only", "in_hot_standby"))
        return not self.is_lost and "on" not in reported

    def execute(self, statement: str, parameters: Parameters = ()) -> Cursor:
        """Run a statement."""
        translated = translate(statement, of_workspace=self.of_workspace)
        return self._do(lambda cursor: cursor.execute(translated, name_values(translated, parameters)))

    def executemany(self, statement: str, rows: Iterable[Parameters]) -> Changed:
        """Run a statement for each row."""
        translated, changed = translate(statement, of_workspace=self.of_workspace), 0
        rest = iter(rows)
        while some := list(islice(rest, MAX_STATEMENTS)):
            together = self._do(partial(_fill_in, translated, some))
            changed += sum(cursor.rowcount for cursor in self._answers(together))
        return Changed(changed)

    def run_script(self, script: str) -> Row:
        """Run a script in PostgreSQL's dialect at once; return the first row of the last query."""
        row: Row = ()
        for cursor in self._answers(script):
            if cursor.description is not None:
                row = cursor.fetchone() or ()
        return row

    def commit(self, script: str = "COMMIT") -> None:
        """Commit by a script; raise StoreUnavailable and drop the connection without an answer in time."""
        self._connection.patience_s = COMMIT_S
        try:
            self.run_script(script)
        finally:
            self._connection.patience_s = math.inf

    def roll_back(self) -> None:
        """Roll back, unless the connection is lost."""
        if self.in_transaction and not self.is_lost:
            self.run_script("ROLLBACK")

    def _answers(self, script: str) -> Iterator[Cursor]:
        cursor = self._do(lambda cursor: cursor.execute(script.encode()))
        yield cursor
        while cursor.nextset():
            yield cursor

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo a failed block: otherwise PostgreSQL rejects all further statements of the transaction."""
        self.execute("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            if not self.is_lost:
                self.execute("ROLLBACK TO SAVEPOINT attempt")
            raise
        self.execute("RELEASE SAVEPOINT attempt")

    def close(self) -> None:
        """Close the connection; uncommitted changes are undone."""
        self._connection.close()

    def _do(self, ask: Callable[[Cursor], Answer]) -> Answer:
        try:
            return ask(self._connection.cursor())
        except psycopg.Error as error:
            raise failure_of(error) from error


def _fill_in(statement: bytes, rows: Sequence[Parameters], cursor: Cursor) -> str:
    return ";".join(cast("ClientCursor", cursor).mogrify(statement, name_values(statement, row)) for row in rows)


WriteConnection.register(PostgresConnection)


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
