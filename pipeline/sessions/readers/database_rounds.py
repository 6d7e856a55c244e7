"""Read a database of many sessions in rounds: each round reads what changed since the last, session by session."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from pipeline.kernel.errors import ForeignDatabaseUnreadable
from pipeline.kernel.store.foreign_database import Condition, ForeignDatabase, Row, open_foreign_database
from pipeline.sessions.readers.documents import build_problem
from pipeline.sessions.readers.fields import as_mapping, as_text, parse_json
from pipeline.sessions.readers.reader import SessionPart, TranscriptFile
from pipeline.sessions.readers.session_log import SessionLog


@dataclass(frozen=True, slots=True)
class Round:
    """Changes after `since` and up to `until`, both row numbers or times, of the sessions with ids after `session`."""

    since: int
    until: int
    session: str = ""
    # What identifies the last change, where row numbers are used again.
    proof: str = ""

    @classmethod
    def resume(cls, mark: str | None, latest: int) -> "Round":
        """Return the round at a mark: the interrupted round, or a new one up to the latest change."""
        known = as_mapping(parse_json(mark))
        since, until, session = known.get("since"), known.get("until"), known.get("session")
        if not isinstance(since, int) or since > latest:
            # The first reading, or an older database was put in its place.
            return cls(0, latest)
        if isinstance(until, int) and isinstance(session, str) and until <= latest:
            return cls(since, until, session)
        return cls(since, latest)

    def changes(self, column: str) -> list[Condition]:
        """Return the conditions for rows that changed in the round."""
        return [(column, ">", self.since), (column, "<=", self.until)]

    def after(self, session: str) -> str:
        """Return the mark after a session."""
        return replace(self, session=session).mark

    @property
    def mark(self) -> str:
        """Return the mark within the round."""
        return json.dumps(asdict(self))

    @property
    def end(self) -> str:
        """Return the mark at the end of the round."""
        return json.dumps({"since": self.until} | ({"proof": self.proof} if self.proof else {}))


def read_rounds(
    file: TranscriptFile,
    mark: str | None,
    changes: tuple[str, str],
    read_session: Callable[[ForeignDatabase, str, Round], Iterator[SessionPart]],
    *,
    may_lack_table: bool = False,
) -> Iterator[SessionPart]:
    """Yield the sessions that changed since a mark; a table and a column of it, which grows, say when."""
    return report_unreadable(_read_changed(file, mark, *changes, read_session, may_lack_table), file, mark)


def _read_changed(
    file: TranscriptFile,
    mark: str | None,
    table: str,
    column: str,
    read_session: Callable[[ForeignDatabase, str, Round], Iterator[SessionPart]],
    may_lack_table: bool,
) -> Iterator[SessionPart]:
    with open_foreign_database(file.path) as db:
        if may_lack_table and not db.columns(table):
            return
        round_ = Round.resume(mark, db.largest(table, column))
        changed = set(map(as_text, db.values(table, "session_id", round_.changes(column))))
        sessions = sorted(key for key in changed if key > round_.session)
        yield from end_round((part for key in sessions for part in read_session(db, key, round_)), round_)


def read_new_rows(
    log: SessionLog,
    round_: Round,
    rows: Iterable[Row],
    take: Callable[..., None],
    *,
    number: str = "id",
    reason: str | None = None,
) -> Iterator[SessionPart]:
    """Yield the entries of a session's rows, or none if there is a reason to leave the session out.

    All rows are taken: they show which new ones are copies, and a result may be in this round, its call in the last.
    """
    session_id = log.head.id
    if reason:
        log.left_out[reason] += 1
    for row in rows if not reason else ():
        # A row that is rewritten gets a new number.
        if row[number] > round_.until:
            break
        take(row, is_new=row[number] > round_.since)
        if log.is_full:
            yield log.part(round_.mark)
    yield log.part(round_.after(session_id))


def end_round(parts: Iterator[SessionPart], round_: Round) -> Iterator[SessionPart]:
    """Yield the parts of a round; the last has the mark of its end."""
    last: SessionPart | None = None
    for part in parts:
        if last is not None:
            yield last
        last = part
    if last is not None:
        yield replace(last, mark=round_.end)


def report_unreadable(parts: Iterator[SessionPart], file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
    """Yield the parts of a database, and a problem where it cannot be read: the next reading continues there."""
    try:
        for part in parts:
            mark = part.mark
            yield part
    except ForeignDatabaseUnreadable as error:
        yield build_problem(file, mark, str(error))
