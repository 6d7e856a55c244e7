"""The predict job: collect the questions that are likely to come next, word for word, without a model.

    what was asked on several occasions  →  as it was asked, the more often and the later the likelier
    goals that are not finished          →  their first line
    threads that go on                   →  their titles
    what was mentioned of late           →  its name

Only memories of the whole workspace are used: no question quotes a personal memory.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from sqlite3 import Connection

from pipeline.jobs.runner import JobRun, Report
from pipeline.records import EntityKind, Viewer
from pipeline.store import arcs, changes, goals, predictions as store
from pipeline.store.arcs import ArcStatus
from pipeline.store.predictions import MAX_QUESTION_CHARS, Prediction, Reason, RepeatedQuery
from pipeline.times import parse, utc_text

MOST = 32
# Limits per source. Repeated questions get the remaining places, because they are the most certain.
GOALS, ARCS, NAMES = 5, 5, 6
# A habit loses half of its weight after this many days, and is dropped after HABIT_LASTS.
HABIT_DAYS = 14.0
HABIT_LASTS = timedelta(days=60)
LATELY = timedelta(days=7)
LEAST_MENTIONS = 2
# Questions rarely name a thing of these kinds alone.
UNASKED = (EntityKind.DATE, EntityKind.PORT, EntityKind.VERSION)
SCORES_KEPT = timedelta(days=90)
DAY_S = 86_400.0


def predict(job: JobRun) -> Report:
    """Replace the likely questions of a workspace."""
    with job.database.read() as db:
        generation = changes.generation(db)
    by_source: dict[Callable[[JobRun, Connection], list[Prediction]], list[Prediction]] = {}
    for source in (_habits, _goals, _arcs, _names):
        if job.pausing():
            return Report(more=True)
        with job.database.read() as db:
            by_source[source] = source(job, db)
    habits = by_source.pop(_habits)
    likely = choose_questions(habits, [question for several in by_source.values() for question in several])
    with job.database.read() as db:
        same = store.list_predictions(db) == likely
    if not same:
        with job.database.write() as db:
            # The questions may contain text of a memory that was purged during the run.
            if changes.has_logged(db, changes.PURGE, generation):
                return Report(more=True)
            store.replace(db, likely, job.at)
            store.forget_days(db, utc_text(job.now - SCORES_KEPT)[:10])
    counts = Counter(str(question.reason) for question in likely)
    return Report({"predictions": len(likely)} | {str(reason): counts[str(reason)] for reason in Reason})


def choose_questions(habits: Sequence[Prediction], others: Sequence[Prediction]) -> list[Prediction]:
    """Return each question once, habits first; habits get the places that the others leave, and at least half."""
    room = max(MOST - len(others), MOST // 2)
    distinct = {question.query: question for question in habits}
    chosen = dict(list(distinct.items())[:room])
    for question in others:
        chosen.setdefault(question.query, question)
    return list(chosen.values())[:MOST]


def likelihood(habit: RepeatedQuery, now: datetime) -> float:
    """Return the weight of a repeated question: its number of uses, reduced by the days since the last one."""
    days = (now - parse(habit.last_at)).total_seconds() / DAY_S
    return float(habit.times * 2 ** (-max(0.0, days) / HABIT_DAYS))


def _habits(job: JobRun, db: Connection) -> list[Prediction]:
    habits = store.list_repeated_queries(db, utc_text(job.now - HABIT_LASTS))
    habits.sort(key=lambda habit: (-likelihood(habit, job.now), habit.text))
    return [Prediction(habit.text, Reason.REPEATED) for habit in habits[:MOST]]


def _goals(_job: JobRun, db: Connection) -> list[Prediction]:
    return _lines((goal.content for goal in goals.list_unfinished(db, Viewer(), GOALS)), Reason.GOAL)


def _arcs(_job: JobRun, db: Connection) -> list[Prediction]:
    return _lines((arc.title for arc in arcs.page(db, Viewer(), ArcStatus.ACTIVE, ARCS, None)), Reason.ARC)


def _names(job: JobRun, db: Connection) -> list[Prediction]:
    return _lines(store.recent_names(db, utc_text(job.now - LATELY), UNASKED, LEAST_MENTIONS, NAMES), Reason.ENTITY)


def _lines(texts: Iterable[str], reason: Reason) -> list[Prediction]:
    lines = (text.strip().partition("\n")[0].strip() for text in texts)
    return [Prediction(line, reason) for line in lines if line and len(line) <= MAX_QUESTION_CHARS]
