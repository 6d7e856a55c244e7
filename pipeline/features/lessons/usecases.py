"""Lessons and their effect: how often they were shown, followed and ignored."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pipeline.features.lessons.search import find_lessons_for
from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import Filter, Kind, Page, Viewer, page_of
from pipeline.kernel.store import impressions, memories
from pipeline.kernel.store.impressions import Impression, Tally, make_impressions
from pipeline.kernel.store.visibility import visible_sessions_condition
from pipeline.kernel.workspace import Workspace, is_incognito
from pipeline.prompt.render import Lesson, wilson_interval, with_records
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter

# A position in a list by a measure: the measure, a share in millionths, then the row number with leading zeros.
MILLIONTHS, SEQ_DIGITS = 10**6, 10


class LessonOrder(StrEnum):
    """The order of a list of lessons."""

    NEWEST = "newest"
    USEFUL = "useful"
    SHOWN = "shown"
    FOLLOWED = "followed"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class FoundLesson:
    """A lesson about a text, and the id of the impression that showing it makes."""

    lesson: Lesson
    impression_id: str


def list_lessons(
    workspace: Workspace, viewer: Viewer, limit: int, before: int | None, words: Sequence[str] = ()
) -> Page[Lesson]:
    """List lessons that contain each of some words, newest first."""
    with workspace.database.read() as db:
        page = with_records(db, impressions.page_lessons(db, viewer, words, limit + 1, before))
    return page_of(page, limit, lambda lesson: lesson.memory.seq)


def rank_lessons(
    workspace: Workspace, viewer: Viewer, order: LessonOrder, limit: int, below: int | None, words: Sequence[str] = ()
) -> Page[Lesson]:
    """List lessons that contain each of some words in an order, best first, starting below a position in it."""
    if order is LessonOrder.NEWEST:
        return list_lessons(workspace, viewer, limit, below, words)
    with workspace.database.read() as db:
        page = _places(order, impressions.tally_lessons(db, viewer, words), below)[: limit + 1]
        shown = [position % 10**SEQ_DIGITS for position in page[:limit]]
        lessons_by_seq = memories.by_seqs(db, shown)
        lessons = with_records(db, [lessons_by_seq[seq] for seq in shown])
    return Page(lessons, page[limit - 1] if len(page) > limit else None)


def find_lessons(
    workspace: Workspace, contexts: SearchContexts, feedback: FeedbackWriter, text: str, viewer: Viewer, limit: int
) -> list[FoundLesson]:
    """Return the lessons about a text, best first; finding them counts as showing them, unless incognito."""
    hits = find_lessons_for(contexts.get(workspace), viewer, text, workspace.settings.recall_budget_ms)
    shown = [hit.memory for hit in hits][:limit]
    with workspace.database.read() as db:
        lessons = with_records(db, shown)
    made = make_impressions(shown, viewer.session)
    if not is_incognito(workspace, Filter(viewer=viewer).sessions):
        feedback.record_impressions(workspace, made)
    return [FoundLesson(lesson, impression.id) for lesson, impression in zip(lessons, made, strict=True)]


def get_lesson(workspace: Workspace, lesson_id: str) -> Lesson:
    """Return a lesson; raise NotFound if there is no such lesson."""
    with workspace.database.read() as db:
        memory = memories.get(db, lesson_id)
        if memory is None or memory.kind is not Kind.LESSON:
            raise NotFound("no such lesson")
        return with_records(db, [memory])[0]


def list_impressions(workspace: Workspace, lesson: Lesson, limit: int) -> list[Impression]:
    """List the latest impressions of a lesson in sessions that the person may see."""
    with workspace.database.read() as db:
        return impressions.latest(db, lesson.memory.seq, limit, visible_sessions_condition(workspace.person_id))


def get_impression(workspace: Workspace, impression_id: str) -> Impression:
    """Return an impression; raise NotFound if there is no such impression."""
    with workspace.database.read() as db:
        impression = impressions.get(db, impression_id)
    if impression is None:
        raise NotFound("There is no impression with this id.")
    return impression


def _places(order: LessonOrder, counted: Sequence[tuple[int, Tally]], below: int | None) -> list[int]:
    """Return the positions of lessons with a positive measure, best first, after a position."""
    positions = (measure * 10**SEQ_DIGITS + seq for seq, tally in counted if (measure := _measure(order, tally)) > 0)
    return sorted((position for position in positions if below is None or position < below), reverse=True)


def _measure(order: LessonOrder, tally: Tally) -> int:
    if order is LessonOrder.USEFUL:
        return round(wilson_interval(tally.followed, tally.followed + tally.ignored)[0] * MILLIONTHS)
    # Counts are whole numbers already; in millionths they would soon be greater than any cursor may be.
    counts = {LessonOrder.SHOWN: tally.shown, LessonOrder.FOLLOWED: tally.followed, LessonOrder.IGNORED: tally.ignored}
    return counts[order]
