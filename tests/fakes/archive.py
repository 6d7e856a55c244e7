"""An archive of sessions in a scratch store, and searches over it."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pipeline.features.indexing.job import rebuild_segment
from pipeline.index.documents import TURNS
from pipeline.index.turn_index import TurnIndex
from pipeline.kernel.records.recall import SessionHit
from pipeline.kernel.store import turns
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.turns import Message, Role
from pipeline.sessions.search import FindDense, SessionQuery, search_sessions
from tests.fakes.in_process import folder_of, scratch_database

AT = "2026-03-04T12:00:00.000Z"


class Archive:
    """A store with turns, its segment, and a reader over both."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.folder = folder_of(database) / "lexical" / "turns"
        self.index = self.open()
        self.find_dense: FindDense | None = None

    def open(self) -> TurnIndex:
        """Return another reader."""
        return TurnIndex.open(self.folder, None, lambda _error: None)

    def say(self, session_id: str, *texts: str, at: str = AT) -> list[int]:
        """Store turns of a session, alternately of the person and the agent; return their row numbers."""
        roles = (Role.USER, Role.ASSISTANT)
        messages = [Message(session_id, roles[number % 2], text, at) for number, text in enumerate(texts)]
        with self.database.write() as db:
            return turns.add(db, messages)

    def forget(self, seqs: Sequence[int]) -> None:
        with self.database.write() as db:
            turns.forget(db, seqs)

    def fold(self) -> int:
        """Build a segment of all turns, if it is needed."""
        return rebuild_segment(self.database, self.folder, documents=TURNS)

    def search(self, text: str, index: TurnIndex | None = None, **fields: Any) -> list[SessionHit]:
        query = SessionQuery(text, **{"person_id": None, **fields})
        return search_sessions(self.database, index or self.index, query, datetime.now(UTC), self.find_dense)

    def find(self, text: str, **fields: Any) -> list[str]:
        return [hit.session_id for hit in self.search(text, **fields)]


@contextlib.contextmanager
def open_archive() -> Iterator[Archive]:
    """Open an archive that is gone afterwards."""
    with scratch_database() as database:
        yield Archive(database)
