"""The predict job: collect the questions that are likely to come next, word for word, without a model.

    what was asked on several occasions  →  as it was asked, the more often and the later the likelier
    goals that are not finished          →  their first line
    threads that go on                   →  their titles
    what was mentioned of late           →  its name

Only memories of the whole workspace are used: no question quotes a personal memory.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from sqlite3 import Connection
from threading import Event

from pipeline.features.predictions import store
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.recall import Answer, Query
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.store import changes
from pipeline.kernel.store.database import Database
from pipeline.kernel.times import parse, utc_text
from pipeline.recall.stored_answers import StoreState, list_queries, read_state, write_answers

MOST = 32
# Limits per source. Repeated questions get the remaining places, because they are the most certain.
OF_FEATURE, NAMES = 5, 6
# A habit loses half of its weight after this many days, and is dropped after HABIT_LASTS.
HABIT_DAYS = 14.0
HABIT_LASTS = timedelta(days=60)
LATELY = timedelta(days=7)
LEAST_MENTIONS = 2
# Questions rarely name a thing of these kinds alone.
UNASKED = (EntityKind.DATE, EntityKind.PORT, EntityKind.VERSION)
SCORES_KEPT = timedelta(days=90)
DAY_S = 86_400.0

Source = Callable[[JobRun, Connection], list[store.Prediction]]


def predict(job: JobRun) -> Report:
    """Replace the likely questions of a workspace."""
    with job.database.read() as db:
        generation = changes.generation(db)
    found: list[list[store.Prediction]] = []
    for source in (_habits, *map(_ask_feature, find_extensions("list_likely_questions")), _names):
        if job.pausing():
            return Report(more=True)
        with job.database.read() as db:
            found.append(source(job, db))
    habits, *others = found
    likely = choose_questions(habits, [question for several in others for question in several])
    with job.database.read() as db:
        same = store.list_predictions(db) == likely
    if not same:
        with job.database.write() as db:
            # The questions may contain text of a memory that was purged during the run.
            if changes.has_erased(db, generation):
                return Report(more=True)
            store.replace(db, likely, job.at)
            store.forget_days(db, utc_text(job.now - SCORES_KEPT)[:10])
    counts = Counter(str(question.reason) for question in likely)
    return Report({"predictions": len(likely)} | {str(reason): counts[str(reason)] for reason in store.Reason})


def choose_questions(habits: Sequence[store.Prediction], others: Sequence[store.Prediction]) -> list[store.Prediction]:
    """Return each question once, habits first; habits get the places that the others leave, and at least half."""
    room = max(MOST - len(others), MOST // 2)
    distinct = {question.query: question for question in habits}
    chosen = dict(list(distinct.items())[:room])
    for question in others:
        chosen.setdefault(question.query, question)
    return list(chosen.values())[:MOST]


def likelihood(habit: store.RepeatedQuery, now: datetime) -> float:
    """Return the weight of a repeated question: its number of uses, reduced by the days since the last one."""
    days = (now - parse(habit.last_at)).total_seconds() / DAY_S
    return float(habit.times * 2 ** (-max(0.0, days) / HABIT_DAYS))


def _habits(job: JobRun, db: Connection) -> list[store.Prediction]:
    habits = store.list_repeated_queries(db, utc_text(job.now - HABIT_LASTS))
    habits.sort(key=lambda habit: (-likelihood(habit, job.now), habit.text))
    return [store.Prediction(habit.text, store.Reason.REPEATED) for habit in habits[:MOST]]


def _ask_feature(list_questions: Callable[..., tuple[str, Iterable[str]]]) -> Source:
    def ask(_job: JobRun, db: Connection) -> list[store.Prediction]:
        reason, texts = list_questions(db, OF_FEATURE)
        return _lines(texts, store.Reason(reason))

    return ask


def _names(job: JobRun, db: Connection) -> list[store.Prediction]:
    return _lines(
        store.recent_names(db, utc_text(job.now - LATELY), UNASKED, LEAST_MENTIONS, NAMES), store.Reason.ENTITY
    )


def _lines(texts: Iterable[str], reason: store.Reason) -> list[store.Prediction]:
    lines = (text.strip().partition("\n")[0].strip() for text in texts)
    return [store.Prediction(line, reason) for line in lines if line and len(line) <= store.MAX_QUESTION_CHARS]


Search = Callable[[Query], Answer]
# Opens a search whose indexes are read anew.
OpenSearch = Callable[[], AbstractContextManager[Search]]


def predict_and_answer(job: JobRun, open_search: OpenSearch | None) -> Report:
    """Replace the likely questions and answer them, if there is a search."""
    report = predict(job)
    if report.more or open_search is None:
        return report
    return replace(report, more=answer_questions(job, open_search))


# Nobody waits for these answers.
BUDGET_MS = 10_000
# How long to wait for vectors that were written a moment ago.
SETTLED_WITHIN_S = 3.0
POLL_S = 0.05


def list_unanswered(database: Database) -> list[str]:
    """List the predicted questions without an answer in the present state of the store, the likeliest first."""
    with database.read() as db:
        states = store.list_states(db)
        present = read_state(db, datetime.now(UTC)) if states else None
        return [text for text, state in states.items() if present is None or state != present.fingerprint(text)]


def answer_questions(job: JobRun, open_search: OpenSearch) -> bool:
    """Answer the predicted questions whose answers are missing or outdated; return whether some remain to be done.

    Questions that cannot be answered completely, such as without an encoder, are left to the next run.
    """
    unanswered, answers = list_unanswered(job.database), dict[str, store.StoredAnswers]()
    with job.database.read() as db:
        state = read_state(db, datetime.now(UTC))
    if not unanswered:
        return False
    more = False
    with open_search() as search:
        for text in unanswered:
            if more := job.pausing():
                break
            found = {query: _search_settled(search, query) for query in list_queries(text, BUDGET_MS)}
            if any(answer.degraded or not answer.settled for answer in found.values()):
                break
            answers[text] = store.StoredAnswers(state.fingerprint(text), write_answers(found))
    is_current = _store(job.database, state, answers)
    return more or not is_current


def _search_settled(search: Search, query: Query) -> Answer:
    end = time.monotonic() + SETTLED_WITHIN_S
    while not (answer := search(query)).settled and time.monotonic() < end:
        Event().wait(POLL_S)
    return answer


def _store(database: Database, state: StoreState, answers: Mapping[str, store.StoredAnswers]) -> bool:
    """Store answers unless the store was written to while they were computed; return whether it was not."""
    if not answers:
        return True
    with database.write() as db:
        if read_state(db, datetime.now(UTC)) != state:
            return False
        for text, stored in answers.items():
            store.put_answers(db, text, stored)
    return True
