"""Move a store between local files and a PostgreSQL server, part by part, and compare all rows.

Moving a part is atomic: on the server in one transaction, in files by renaming the complete file. An interrupted run
leaves each part either moved or unchanged, and the next run continues. Each moved part gets a recorded fingerprint, so
that a later run can detect which of the two copies changed since.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from config.paths import HomePaths
from config.settings import Settings
from pipeline.features.snapshots.job import ProblemSink, scrub_snapshots
from pipeline.kernel.errors import Conflict, FieldError, InvalidField, NotFound, StoreDamaged
from pipeline.kernel.store.copying import Fingerprint, Progress, copy, fingerprint, ignore_progress
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.moves import OPERATIONS, HomeFiles, Part, PartKind, StoreLocation
from pipeline.kernel.store.sqlite import SqliteDatabases

SQLITE = "sqlite"
# The tables of a store without any written data.
_FURNITURE = frozenset({"meta", "job_run", "job_lock"})


class MoveOutcome(StrEnum):
    """The result of moving a part."""

    MOVED = "moved"
    # Of a dry run.
    WOULD_MOVE = "would be moved"
    SAME = "the same already"
    # The source is unchanged since it was moved.
    AHEAD = "moved before, and written to there since"
    # The operations journal of another data directory, which need not be moved.
    KEPT = "another one is there, and is kept"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class MovedPart:
    """The result of moving a part: its number of rows, and why it was refused."""

    part: Part
    outcome: MoveOutcome
    rows: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """The source and target of a move, the id of the data directory, and the parts to move."""

    source: StoreLocation
    target: StoreLocation
    home: str
    parts: Sequence[Part]


def choose_server(settings: Settings, to: str, home: Path | None) -> str:
    """Return the address of the server to move a store to or from; raise InvalidField for an impossible move."""
    here = settings.store.reveal()
    url = here if to == SQLITE else to
    if not url:
        raise InvalidField(FieldError("to", "the store is in files already: REVERIE_STORE names no server"))
    if here and to != SQLITE:
        raise InvalidField(FieldError("to", "the store is on a server already; pg_dump moves it to another one"))
    if home is not None and to != SQLITE:
        raise InvalidField(FieldError("home", "is where files are put: only --to sqlite takes it"))
    return url


@contextmanager
def open_move(settings: Settings, to: str, home: Path | None = None, only: Sequence[str] = ()) -> Iterator[Move]:
    """Open source and target to move everything or `only` some workspaces; `home` is another folder for the files.

    Raises InvalidField for an impossible target, NotFound for an unknown workspace.
    """
    # Imported here so that other commands do not load the library.
    from pipeline.kernel.store.postgres.moves import PostgresLocation

    url = choose_server(settings, to, home)
    files = HomeFiles(settings.paths if home is None else HomePaths(home.absolute()))
    with closing(PostgresLocation(url)) as server, closing(files):
        server.check_unused()
        source, target = (server, files) if to == SQLITE else (files, server)
        yield Move(source, target, files.identify(), _choose_parts(source, only))


def count_rows(move: Move) -> int:
    """Return the number of rows to move."""
    total = 0
    for part in move.parts:
        with move.source.reading(part) as tables:
            total += 0 if tables is None else tables.count(tables.tables)
    return total


def _choose_parts(source: StoreLocation, only: Sequence[str]) -> list[Part]:
    there = source.list_parts()
    if not there:
        raise NotFound(f"there is nothing to move at {source.name}")
    if not only:
        return there
    chosen = [part for part in there if part.kind is not PartKind.HOME and part.name in only]
    missing = [name for name in dict.fromkeys(only) if all(part.name != name for part in chosen)]
    if missing:
        raise NotFound(f"no such workspace: {', '.join(missing)}")
    return chosen


def move_parts(move: Move, *, dry_run: bool = False, progress: Progress = ignore_progress) -> Iterator[MovedPart]:
    """Move one part after the other, and report the result of each.

    Refuse parts that cannot be moved and continue. Raises StoreUnavailable if the source or target is unavailable.
    """
    refused = set()
    for part in move.parts:
        if Part(part.name, PartKind.SETTINGS) in refused:
            problem = "its settings were not moved, and may say that nothing is stored in it"
            yield MovedPart(part, MoveOutcome.REFUSED, problem=problem)
            continue
        try:
            yield _move(move, part, dry_run, progress)
        except (Conflict, NotFound, StoreDamaged) as error:
            refused.add(part)
            yield MovedPart(part, MoveOutcome.REFUSED, problem=str(error))


def _move(move: Move, part: Part, dry_run: bool, progress: Progress) -> MovedPart:
    with move.source.reading(part) as here:
        if here is None:
            raise NotFound("it is gone")
        mine = fingerprint(here, progress)
        before, outcome = _judge(move, part, mine)
        if outcome is not MoveOutcome.MOVED or dry_run:
            return MovedPart(part, MoveOutcome.WOULD_MOVE if outcome is MoveOutcome.MOVED else outcome, mine.rows)
        with move.target.writing(part, before) as there:
            copied = copy(here, there, progress)
            move.target.note(part, move.home, copied.digest)
    return MovedPart(part, outcome, copied.rows)


def _judge(move: Move, part: Part, mine: Fingerprint) -> tuple[Fingerprint | None, MoveOutcome]:
    """Return the fingerprint of the part in the target, if any, and the action for it."""
    with move.target.reading(part) as there:
        if there is None:
            return None, MoveOutcome.MOVED
        before = fingerprint(there)
        is_new = not there.count(table for table in there.tables if table.name not in _FURNITURE)
    if before == mine:
        return before, MoveOutcome.SAME
    known = move.source.known(part, move.home) | move.target.known(part, move.home)
    if is_new or before.digest in known:
        return before, MoveOutcome.MOVED
    if mine.digest in known:
        return before, MoveOutcome.AHEAD
    if part == OPERATIONS:
        return before, MoveOutcome.KEPT
    raise Conflict(f"another {part.name} is at {move.target.name}, or both were written to since it was moved")


def finish(move: Move, on_problem: ProblemSink) -> None:
    """Prepare the target for use; in files, also delete texts that were purged on the server from old snapshots."""
    move.target.settle()
    if not isinstance(move.target, HomeFiles):
        return
    paths = move.target.paths
    with closing(SqliteDatabases(paths, WriterProfile("FULL", 0, 5000))) as databases:
        for part in move.parts:
            if part.kind is PartKind.WORKSPACE and paths.workspace(part.name).events.is_file():
                scrub_snapshots(databases.get(part.name), paths.workspace(part.name).snapshots, on_problem)
