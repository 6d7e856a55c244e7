"""The likely questions: from habits, goals, threads and names; of nobody's own memories; the same after any stop."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from pipeline.features.arcs import store as arcs
from pipeline.features.arcs.store import Arc, ArcStatus
from pipeline.features.entities import store as entities
from pipeline.features.predictions import job as module, store
from pipeline.features.predictions.job import MOST, choose_questions, likelihood, predict
from pipeline.features.predictions.store import MOST_KEPT, OCCASION, Prediction, PredictionScore, Reason, RepeatedQuery
from pipeline.kernel.records import EntityKind, Kind, Scope, ScopeKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.store import meta
from pipeline.kernel.times import utc_text
from pipeline.write.revise import archive, purge
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import Killed, after, job_run_on, moment, read, text_of, write

TODAY = 30
ADA = Scope(ScopeKind.AGENT, "ada")


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def ask(database, day, *texts):
    with database.write() as db:
        store.note(db, len(texts), dict.fromkeys(texts, 1), text_of(day))


def list_predictions(database, reason=None):
    with database.read() as db:
        return [one.query for one in store.list_predictions(db) if reason in (None, one.reason)]


def mention(database, memory_id, name, kind=EntityKind.FILE):
    with database.write() as db:
        entities.link(db, read(database, memory_id).seq, [EntityMention(kind, name, name, 0, len(name))])


def gather(database, title, *memory_ids, scope=None, status=ArcStatus.ACTIVE):
    seqs = tuple(read(database, memory_id).seq for memory_id in memory_ids)
    arc = Arc(title, "", status, scope or Scope(), text_of(TODAY - 2), text_of(TODAY - 1), seqs)
    with database.write() as db:
        assert arcs.put(db, None, arc, text_of(TODAY))


def fill(database):
    """One question of every reason."""
    goal = write(database, TODAY - 3, "Open the archive\nBefore the winter", kind=Kind.GOAL)
    member = write(database, TODAY - 2, "The lock migration was begun")
    gather(database, "lock migration", goal, member)
    for number in range(2):
        mention(database, write(database, TODAY - 1, f"Changed locks.ts for the time {number}"), "locks.ts")
    ask(database, TODAY - 5, "Who is on call?", "What is for lunch?")
    ask(database, TODAY - 4, "Who is on call?")


EVERYTHING = ["Who is on call?", "Open the archive", "lock migration", "locks.ts"]


def test_every_source_speaks_and_habits_come_first(database):
    fill(database)
    report = predict(job_run_on(database, TODAY))
    assert list_predictions(database) == EVERYTHING
    assert report.counts == {"predictions": 4, "repeated": 1, "goal": 1, "arc": 1, "entity": 1}
    assert not report.more


def test_a_job_that_runs_twice_changes_nothing(database):
    fill(database)
    predict(job_run_on(database, TODAY))
    with database.read() as db:
        before = db.execute("SELECT * FROM prediction").fetchall()
    predict(job_run_on(database, TODAY + 0.1))
    with database.read() as db:
        assert db.execute("SELECT * FROM prediction").fetchall() == before


def test_unlikely_question_is_no_longer_predicted(database):
    fill(database)
    predict(job_run_on(database, TODAY))
    with database.read() as db:
        ids = [row[0] for row in db.execute("SELECT id FROM memory")]
    for memory_id in ids:
        archive(database, memory_id)
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == ["Who is on call?"]
    predict(job_run_on(database, TODAY + 100))
    assert list_predictions(database) == []


def test_owned_memories_are_never_quoted_in_predictions(database):
    goal = write(database, TODAY - 3, "Find a gift for Grace", kind=Kind.GOAL, scope=ADA)
    others = [write(database, TODAY - 2, f"Saw ring number {number} at the shop", scope=ADA) for number in range(2)]
    gather(database, "ring", *others, scope=ADA)
    for memory_id in (goal, *others):
        mention(database, memory_id, "Grace", EntityKind.PERSON)
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == []


@pytest.mark.parametrize("kind", [EntityKind.DATE, EntityKind.PORT, EntityKind.VERSION])
def test_bare_numbers_are_not_predicted(database, kind):
    for number in range(3):
        mention(database, write(database, TODAY - 1, f"Deploy {number} took 8123"), "8123", kind)
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == []


def test_names_are_those_of_the_last_days_and_of_more_than_one_memory(database):
    for day, name, times in ((TODAY - 20, "old.ts", 3), (TODAY - 1, "once.ts", 1), (TODAY - 1, "often.ts", 3)):
        for number in range(times):
            mention(database, write(database, day, f"Number {number}: {name}"), name)
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == ["often.ts"]


def test_threads_that_ended_are_not_asked_for(database):
    members = [write(database, TODAY - 2, f"Part {number} of the lock migration") for number in range(3)]
    gather(database, "lock migration", *members, status=ArcStatus.CLOSED)
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == []


def test_asking_twice_on_one_occasion_is_no_habit(database):
    hour = OCCASION / timedelta(days=1)
    for day in (TODAY - 1, TODAY - 1 + hour / 2):
        ask(database, day, "Who is on call?")
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == []
    ask(database, TODAY - 1 + hour, "Who is on call?")
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == ["Who is on call?"]


def test_text_of_a_question_asked_once_is_not_stored(database):
    ask(database, TODAY - 1, "Who is on call?")
    with database.read() as db:
        [(text, times)] = db.execute("SELECT text, times FROM query").fetchall()
    assert times == 1
    assert "call" not in text


def test_the_more_often_and_the_later_the_likelier(database):
    for day in (1, 2, 3, 4):
        ask(database, day, "asked often, long ago")
    for day in (TODAY - 3, TODAY - 2, TODAY - 1):
        ask(database, day, "asked often")
    for day in (TODAY - 2, TODAY - 1):
        ask(database, day, "asked twice")
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == ["asked often", "asked twice", "asked often, long ago"]


def test_only_so_many_questions_are_kept(database):
    ask(database, 1, *(f"question {number}" for number in range(MOST_KEPT)))
    ask(database, 2, "the last one")
    with database.read() as db:
        rows = db.execute("SELECT count(*), max(last_at) FROM query").fetchone()
    assert rows == (MOST_KEPT, text_of(2))


def test_prediction_score_counts_predicted_questions(database):
    fill(database)
    predict(job_run_on(database, TODAY))
    with database.write() as db:
        told = store.note(db, 5, {"Who is on call?": 2, "locks.ts": 1, "Who is not?": 1}, text_of(TODAY))
    assert told == PredictionScore(5, 3)
    with database.read() as db:
        assert store.score(db, text_of(TODAY)[:10]) == PredictionScore(5, 3)
        assert store.score(db, text_of(0)[:10]) == PredictionScore(8, 3)
        assert store.score(db, text_of(TODAY + 1)[:10]) == PredictionScore(0, 0)


@pytest.mark.parametrize("calls", range(4))
def test_paused_prediction_run_keeps_old_rows_and_ends_equal(database, calls):
    fill(database)
    with database.write() as db:
        store.replace(db, [Prediction("before", Reason.GOAL)], text_of(0))
    assert predict(job_run_on(database, TODAY, pausing=after(calls))).more
    assert list_predictions(database) == ["before"]
    assert not predict(job_run_on(database, TODAY)).more
    assert list_predictions(database) == EVERYTHING


@pytest.mark.parametrize("place", ["list_repeated_queries", "recent_names", "replace", "forget_days"])
def test_killed_prediction_run_keeps_old_rows_and_ends_equal(database, monkeypatch, place):
    fill(database)
    with database.write() as db:
        store.replace(db, [Prediction("before", Reason.GOAL)], text_of(0))

    def killed(*_args):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(store, place, killed)
        with pytest.raises(Killed):
            predict(job_run_on(database, TODAY))
    assert list_predictions(database) == ["before"]
    predict(job_run_on(database, TODAY))
    assert list_predictions(database) == EVERYTHING


def test_memory_purged_during_the_run_leaves_no_prediction(database, monkeypatch):
    secret = write(database, TODAY - 1, "Visit the qwyjibofier", kind=Kind.GOAL)
    ask(database, 1, "Where is the qwyjibofier?")
    ask(database, 2, "Where is the qwyjibofier?")
    with monkeypatch.context() as patch:
        patch.setattr(module, "choose_questions", _purging(database, secret))
        assert predict(job_run_on(database, TODAY)).more
    assert list_predictions(database) == []
    assert predict(job_run_on(database, TODAY)).counts["predictions"] == 0
    with database.read() as db:
        assert db.execute("SELECT * FROM query").fetchall() == []


def _purging(database, memory_id):
    def purging(habits, others):
        purge(database, memory_id)
        return choose_questions(habits, others)

    return purging


QUESTIONS = st.lists(st.text("abcdefgh", min_size=1, max_size=2), max_size=60)


@given(QUESTIONS, QUESTIONS)
def test_each_question_is_foreseen_once_and_habits_keep_their_order(habits, others):
    found = choose_questions(
        [Prediction(q, Reason.REPEATED) for q in habits], [Prediction(q, Reason.ARC) for q in others]
    )
    queries = [one.query for one in found]
    assert len(set(queries)) == len(queries) <= MOST
    distinct = list(dict.fromkeys(habits))
    kept = [one.query for one in found if one.reason is Reason.REPEATED]
    assert kept == distinct[: len(kept)]
    assert [one.reason for one in found] == sorted((one.reason for one in found), key=Reason.ARC.__eq__)
    if len(set(habits) | set(others)) <= MOST // 2:
        assert set(queries) == set(habits) | set(others)


@given(st.integers(2, 50), st.floats(0, 60), st.floats(0, 60))
def test_a_habit_never_grows_by_waiting(times, first, second):
    sooner, later = sorted((first, second))
    habit = RepeatedQuery("-", times, utc_text(moment(0)))
    assert likelihood(habit, moment(later)) <= likelihood(habit, moment(sooner)) <= times


def test_question_is_recognized_after_sync_started(database):
    ask(database, TODAY - 2, "Who is on call?")
    with database.write() as db:
        meta.put_node(db, "ab" * 8)
    ask(database, TODAY - 1, "Who is on call?")
    with database.read() as db:
        assert [(query.text, query.times) for query in store.list_repeated_queries(db, text_of(0))] == [
            ("Who is on call?", 2)
        ]
