"""The answers to lessons: whether one was followed."""

from functools import partial

from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import Memory, list_session_names
from pipeline.kernel.store import impressions, memories
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.visibility import is_open_to
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace, is_incognito
from pipeline.recall.feedback import FeedbackWriter
from pipeline.text.normalize import normalize_text
from pipeline.text.redaction import redact


def answer_impression(
    workspace: Workspace, feedback: FeedbackWriter, impression_id: str, note: str | None, *, followed: bool
) -> str:
    """Record whether a lesson was followed; return its id. Raises NotFound for an unknown impression."""
    lesson = feedback.submit(partial(_answer, workspace, impression_id, note, followed=followed)).result()
    return lesson.id


def withdraw_answer(workspace: Workspace, feedback: FeedbackWriter, impression_id: str) -> None:
    """Withdraw the answer to a lesson; raise NotFound for an unknown impression."""
    feedback.submit(partial(_withdraw, workspace.database, impression_id)).result()


def _answer(workspace: Workspace, impression_id: str, note: str | None, *, followed: bool) -> Memory:
    redacted_note = None if note is None else redact(normalize_text(note)).text or None
    with workspace.database.write() as db:
        impression = impressions.get(db, impression_id)
        lessons = {} if impression is None else memories.by_seqs(db, [impression.memory_seq])
        if impression is None or not all(is_open_to(lesson.scope, workspace.person_id) for lesson in lessons.values()):
            lessons = {}
        if impression is None or not lessons:
            raise NotFound("There is no impression with this id.")
        if is_incognito(workspace, list_session_names(None, impression.session_id)):
            redacted_note = None
        impressions.answer(db, impression_id, redacted_note, utc_now(), followed=followed)
        return lessons[impression.memory_seq]


def _withdraw(database: Database, impression_id: str) -> None:
    with database.write() as db:
        if impressions.get(db, impression_id) is None:
            raise NotFound("There is no impression with this id.")
        impressions.withdraw(db, impression_id)
