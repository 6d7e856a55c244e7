"""Answer the predicted questions in the worker, so that web servers read the answers from the store."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from threading import Event

from pipeline.jobs.runner import JobRun
from pipeline.recall.stored_answers import StoreState, list_queries, read_state, write_answers
from pipeline.records.recall import Answer, Query
from pipeline.store import predictions
from pipeline.store.database import Database
from pipeline.store.predictions import StoredAnswers

Search = Callable[[Query], Answer]
# Opens a search whose indexes are read anew.
OpenSearch = Callable[[], AbstractContextManager[Search]]

# Nobody waits for these answers.
BUDGET_MS = 10_000
# How long to wait for vectors that were written a moment ago.
SETTLED_WITHIN_S = 3.0
POLL_S = 0.05


def list_unanswered(database: Database) -> list[str]:
    """List the predicted questions without an answer in the present state of the store, the likeliest first."""
    with database.read() as db:
        states = predictions.list_states(db)
        present = read_state(db, datetime.now(UTC)) if states else None
        return [text for text, state in states.items() if present is None or state != present.fingerprint(text)]


def answer_questions(job: JobRun, open_search: OpenSearch) -> bool:
    """Answer the predicted questions whose answers are missing or outdated; return whether some remain to be done.

    Questions that cannot be answered completely, such as without an encoder, are left to the next run.
    """
    unanswered, answers = list_unanswered(job.database), dict[str, StoredAnswers]()
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
            answers[text] = StoredAnswers(state.fingerprint(text), write_answers(found))
    is_current = _store(job.database, state, answers)
    return more or not is_current


def _search_settled(search: Search, query: Query) -> Answer:
    end = time.monotonic() + SETTLED_WITHIN_S
    while not (answer := search(query)).settled and time.monotonic() < end:
        Event().wait(POLL_S)
    return answer


def _store(database: Database, state: StoreState, answers: Mapping[str, StoredAnswers]) -> bool:
    """Store answers unless the store was written to while they were computed; return whether it was not."""
    if not answers:
        return True
    with database.write() as db:
        if read_state(db, datetime.now(UTC)) != state:
            return False
        for text, stored in answers.items():
            predictions.put_answers(db, text, stored)
    return True
