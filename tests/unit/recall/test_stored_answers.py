"""A stored answer is the answer that a search would give, after any writes; otherwise it is not used."""

from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from hypothesis import example, given, strategies as st

from pipeline.features.predictions import store as predictions
from pipeline.features.predictions.job import answer_questions, list_unanswered
from pipeline.features.predictions.store import Prediction, Reason
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.job_runs import JobRun
from pipeline.kernel.records import FactKey, Filter, Kind, Revision, Scope, ScopeKind, Viewer
from pipeline.kernel.records.recall import Channel, Query
from pipeline.kernel.times import utc_now, utc_text
from pipeline.prompt.briefing import message_query
from pipeline.recall.answer_cache import AnswerCache
from pipeline.recall.search import search, search_uncached
from pipeline.recall.stored_answers import DEPTH, StoreState, list_queries, read_state
from pipeline.write.revise import archive, edit, purge, restore
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import after, moment, set_fact
from tests.fakes.properties import examples
from tests.fakes.recall_workspace import LONG_MS, RecallWorkspace

QUESTIONS = ("which port does billing use", "who deploys the mill", "what happened yesterday")
WORDS = ("billing", "port", "mill", "deploys", "ada", "8123", "storm", "yesterday", "queue")


class Home:
    """A worker and a web server over one store, each with its own indexes in memory."""

    def __init__(self, database):
        self.database = database
        self.worker, self.front = RecallWorkspace(database), RecallWorkspace(database)
        with database.write() as db:
            predictions.replace(db, [Prediction(text, Reason.REPEATED) for text in QUESTIONS], utc_now())

    def answer(self, pausing=lambda: False):
        job = JobRun(self.database, datetime.now(UTC), pausing)
        return answer_questions(job, lambda: nullcontext(partial(search_uncached, self.worker.reader)))

    def ask(self, query):
        """Ask a web server that was just started, until it has loaded the present segment."""
        while not (answer := search(replace(self.front.reader, answers=AnswerCache()), query)).settled:
            pass
        return answer

    def search(self, query):
        """Ask without stored answers."""
        with self.database.write() as db:
            rows = db.execute("SELECT query, state, answers FROM prediction").fetchall()
            db.execute("UPDATE prediction SET state = NULL")
        try:
            return self.ask(query)
        finally:
            with self.database.write() as db:
                for text, state, answers in rows:
                    db.execute("UPDATE prediction SET state = ?, answers = ? WHERE query = ?", (state, answers, text))

    def close(self):
        self.worker.close()
        self.front.close()


@pytest.fixture
def home():
    with scratch_database() as database:
        home = Home(database)
        yield home
        home.close()


def shown(answer):
    return [(hit.memory, hit.score, hit.relevance, hit.annotations) for hit in answer.hits]


def queries():
    callers = [Query(QUESTIONS[0], k, budget_ms=LONG_MS) for k in (1, 10)]
    return [*callers, *(query for text in QUESTIONS for query in list_queries(text, LONG_MS))]


STEPS = st.one_of(
    st.tuples(st.just("write"), st.lists(st.sampled_from(WORDS), min_size=2, max_size=6).map(" ".join)),
    st.tuples(st.sampled_from(("edit", "archive", "restore", "purge", "importance")), st.integers(0, 9)),
    st.tuples(st.just("fact"), st.integers(8000, 8005)),
    st.tuples(st.sampled_from(("fold", "embed", "answer", "ask")), st.just(0)),
)


def step(home, ids, name, value):
    if name == "write":
        ids.append(home.worker.write(value))
    elif name == "fact":
        set_fact(home.database, 1, FactKey("billing", "port"), value)
    elif name in ("fold", "embed"):
        getattr(home.worker, name)()
    elif name == "answer":
        home.answer()
    elif name != "ask" and ids:
        memory_id = ids[value % len(ids)]
        # What was archived or purged refuses some changes.
        with suppress(ReverieError):
            change(home, memory_id, name, value)


def change(home, memory_id, name, value):
    if name == "edit":
        edit(home.database, memory_id, Revision(content=f"billing moved to port {value}"))
    elif name == "importance":
        edit(home.database, memory_id, Revision(importance=value / 10))
    else:
        {"archive": archive, "restore": restore, "purge": purge}[name](home.database, memory_id)


@examples(8)
@given(st.lists(STEPS, min_size=1, max_size=8))
# The old segment counts a memory that was archived, and the new one does not.
@example([("fold", 0), ("fact", 8005), ("archive", 0), ("write", "billing ada billing"), ("fold", 0)])
def test_after_any_writes_the_stored_answer_is_that_of_a_search(steps):
    with scratch_database() as database:
        home = Home(database)
        texts = "billing listens on port 8123", "ada deploys the mill", "a storm hit the mill yesterday"
        ids = [home.worker.write(text) for text in texts]
        home.worker.embed()
        home.answer()
        assert home.ask(Query(QUESTIONS[0])).is_stored
        for name, value in steps:
            step(home, ids, name, value)
            for query in queries():
                assert shown(home.ask(query)) == shown(home.search(query))
        home.close()


def fill(home):
    ids = [home.worker.write(f"billing uses port 81{number:02}") for number in range(3)]
    home.worker.embed()
    assert not home.answer()
    return ids


def test_the_queries_of_recall_and_of_hooks_are_answered_from_the_store(home):
    fill(home)
    assert home.ask(Query(QUESTIONS[0])).is_stored
    assert home.ask(message_query(QUESTIONS[0], Viewer(), 60)).is_stored
    assert home.ask(message_query(QUESTIONS[0], Viewer(agent="ada"), 60)).is_stored
    assert list_unanswered(home.database) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"text": "which port"},
        {"explain": True},
        {"min_relevance": 0.0},
        {"channels": (Channel.LEXICAL,)},
        {"filter": Filter(kinds=(Kind.DECISION,))},
        {"filter": Filter(viewer=Viewer(person="p1"))},
        {"filter": Filter(as_of=utc_now())},
    ],
)
def test_other_queries_are_searched(home, changed):
    fill(home)
    assert not home.ask(replace(Query(QUESTIONS[0], budget_ms=LONG_MS), **changed)).is_stored


def test_viewer_with_private_memories_gets_a_separate_answer(home):
    own = home.worker.write("billing uses port 7 here", scope=Scope(ScopeKind.SESSION, "s1"))
    fill(home)
    answer = home.ask(Query(QUESTIONS[0], budget_ms=LONG_MS, filter=Filter(viewer=Viewer(session="s1"))))
    assert own in [hit.memory.id for hit in answer.hits]
    assert home.ask(Query(QUESTIONS[0], filter=Filter(viewer=Viewer(session="s2")))).is_stored


def test_more_results_than_are_stored_are_searched(home):
    for number in range(DEPTH + 5):
        home.worker.write(f"billing uses port {number + 9000}")
    fill(home)
    assert home.ask(Query(QUESTIONS[0], DEPTH)).is_stored
    assert not home.ask(Query(QUESTIONS[0], DEPTH + 1, budget_ms=LONG_MS)).is_stored
    assert home.ask(Query(QUESTIONS[1], DEPTH + 1)).is_stored


def test_memory_purged_after_the_state_was_read_is_not_shown(home, monkeypatch):
    ids = fill(home)
    with home.database.read() as db:
        stored = predictions.find_answers(db, QUESTIONS[0])
    archive(home.database, ids[0])
    # The web server believes the state of a moment ago.
    monkeypatch.setattr(StoreState, "fingerprint", lambda *_: stored.state)
    answer = home.ask(Query(QUESTIONS[0], budget_ms=LONG_MS))
    assert not answer.is_stored
    assert ids[0] not in [hit.memory.id for hit in answer.hits]


def test_an_expiry_outdates_the_answers(home):
    fill(home)
    now = datetime.now(UTC)
    home.worker.write("billing uses port 7 today", expires_at=utc_text(now + timedelta(hours=1)))
    home.worker.embed()
    home.answer()
    with home.database.read() as db:
        answered = predictions.list_states(db)
        # The same day, also a minute before midnight.
        before, after = (
            replace(read_state(db, now + timedelta(minutes=minutes)), day=now.date()) for minutes in (59, 61)
        )
        assert answered == {text: before.fingerprint(text) for text in QUESTIONS}
        assert all(after.fingerprint(text) != answered[text] for text in QUESTIONS)


def test_only_relative_times_mean_something_else_tomorrow():
    day = moment(1).date()
    states = [StoreState("-", day + timedelta(days=number)) for number in (0, 1)]
    assert len({state.fingerprint(QUESTIONS[0]) for state in states}) == 1
    assert len({state.fingerprint(QUESTIONS[2]) for state in states}) == 2


def test_stopped_run_keeps_its_stored_answers(home):
    home.worker.write("billing uses port 8123")
    home.worker.embed()
    assert home.answer(after(2))
    assert list_unanswered(home.database) == list(QUESTIONS[2:])
    assert not home.answer()
    assert list_unanswered(home.database) == []


def test_answers_to_an_earlier_state_are_not_stored(home):
    fill(home)
    home.worker.write("billing moved")

    def writing(query):
        home.worker.write(f"another memory before {query.min_relevance} of {query.text}")
        return search_uncached(home.worker.reader, query)

    assert answer_questions(JobRun(home.database, datetime.now(UTC)), lambda: nullcontext(writing))
    assert set(list_unanswered(home.database)) == set(QUESTIONS)


def test_an_incomplete_answer_is_not_stored(home):
    fill(home)
    home.worker.write("billing moved")
    incomplete = replace(search_uncached(home.worker.reader, Query(QUESTIONS[0])), settled=True)
    cold = {channel: replace(report, state="cold") for channel, report in incomplete.channels.items()}
    degraded = replace(incomplete, channels=cold)
    job = JobRun(home.database, datetime.now(UTC))
    assert not answer_questions(job, lambda: nullcontext(lambda _query: degraded))
    assert set(list_unanswered(home.database)) == set(QUESTIONS)
