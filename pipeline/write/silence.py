"""Off the record: from here on nothing that a session says is stored."""

from pipeline.store import incognito
from pipeline.store.database import Database
from pipeline.times import utc_now


def go_off_the_record(database: Database, session_id: str) -> str:
    """Take a session off the record; return since when it is."""
    with database.write() as db:
        incognito.begin(db, session_id, utc_now())
        since = incognito.since(db, session_id)
        assert since is not None
        return since


def return_to_the_record(database: Database, session_id: str) -> None:
    """Store again what a session says."""
    with database.write() as db:
        incognito.end(db, session_id)
