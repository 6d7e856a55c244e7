"""What reading learns and the store must know; recall itself never writes."""

from collections.abc import Sequence

from pipeline.errors import NotFound
from pipeline.store import incognito, memories, meta, surfaces
from pipeline.store.database import Database, wake_on_commit
from pipeline.store.surfaces import Surfacing
from pipeline.text.redaction import redact
from pipeline.times import utc_now
from pipeline.write.normalize import normalize_text


def ask_for_segment(database: Database, broken: str | None) -> bool:
    """Ask for a new lexical segment because this one cannot be read; return whether there was a reason to.

    There is none when somebody has asked already, or when another segment is current by now: reports come in late.
    """
    with database.write() as db:
        if meta.get(db, meta.SEGMENT_WANTED) is not None or meta.get(db, meta.SEGMENT) != broken:
            return False
        meta.put(db, meta.SEGMENT_WANTED, "0")
        wake_on_commit(db, None)
        return True


def note_surfaced(database: Database, surfacings: Sequence[Surfacing]) -> None:
    """Keep what was put before an agent, unless its session is off the record."""
    with database.write() as db:
        sessions = {one.session_id for one in surfacings}
        silent = {s for s in sessions if s is not None and incognito.since(db, s) is not None}
        surfaces.add(db, [one for one in surfacings if one.session_id not in silent])


def answer_surfaced(database: Database, surface_id: str, note: str | None, *, followed: bool) -> str:
    """Say whether a lesson was followed; return the lesson's id. Raises NotFound for an unknown surfacing."""
    told = None if note is None else redact(normalize_text(note)).text or None
    with database.write() as db:
        surfacing = surfaces.get(db, surface_id)
        found = {} if surfacing is None else memories.by_seqs(db, [surfacing.memory_seq])
        if surfacing is None or not found:
            raise NotFound("no such surfacing")
        if surfacing.session_id is not None and incognito.since(db, surfacing.session_id) is not None:
            told = None
        surfaces.answer(db, surface_id, told, utc_now(), followed=followed)
        return found[surfacing.memory_seq].id


def withdraw_answer(database: Database, surface_id: str) -> None:
    """Take back what was said about a lesson that was shown; raise NotFound for an unknown surfacing."""
    with database.write() as db:
        if surfaces.get(db, surface_id) is None:
            raise NotFound("no such surfacing")
        surfaces.withdraw(db, surface_id)
