"""A stale index may miss, but it never shows what must not be seen; and no answer outlives the state it was true in."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.index import dense
from pipeline.index.segment import build_segment
from pipeline.kernel.errors import Conflict, EncoderUnavailable, IndexUnavailable, NotFound
from pipeline.kernel.records import Draft, Filter, Kind, Revision, Scope, ScopeKind
from pipeline.kernel.records.recall import Channel, ChannelState, Query
from pipeline.kernel.store import meta
from pipeline.recall.deadline import Deadline
from pipeline.recall.first_pass import MAX_PER_CHANNEL
from pipeline.recall.search import search
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import accept_batch, dump
from tests.fakes.properties import opens_stores
from tests.fakes.recall_workspace import open_recall_workspace

LONG = 60.0

WORDS = ["port", "zebra", "billing", "gateway", "queue"]
SCOPES = [Scope(), Scope(ScopeKind.USER), Scope(ScopeKind.AGENT, "a"), Scope(ScopeKind.SESSION, "s1")]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
numbers = st.integers(0, 30)
writes = st.tuples(
    st.just("write"),
    texts,
    st.sampled_from(SCOPES),
    st.sampled_from([None, "s1", "s2"]),
    st.sampled_from(list(Kind)[:2]),
)
steps = st.one_of(
    writes,
    st.tuples(st.sampled_from(["archive", "restore", "purge"]), numbers),
    st.tuples(st.just("edit"), numbers, texts),
    st.just(("segment",)),
    st.just(("embed",)),
    st.tuples(st.just("ask"), texts),
)
# Something is there before something happens to it, so that few examples are about an empty workspace.
histories = st.tuples(st.lists(writes, min_size=2, max_size=5), st.lists(steps, min_size=2, max_size=10)).map(
    lambda parts: [*parts[0], *parts[1]]
)
filters = st.builds(
    Filter,
    kinds=st.sampled_from([(), (Kind.FACT,)]),
    scope=st.none() | st.sampled_from(SCOPES),
    session_id=st.none() | st.sampled_from(["s1", "s2"]),
)


class History:
    """A workspace, and a plain list of what is true in it."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.truth = {}

    def step(self, verb, *rest):
        if verb == "write":
            content, scope, session, kind = rest
            receipt = accept(self.workspace.database, Draft(content, scope=scope, session_id=session, kind=kind))
            if receipt.duplicate_of is None:
                self.truth[receipt.id] = (content, scope, session, kind, True)
        elif verb == "segment":
            self.workspace.fold()
        elif verb == "embed":
            self.workspace.embed()
        elif verb == "ask":
            self.workspace.ask(rest[0])
        elif self.truth:
            self.change(verb, sorted(self.truth)[rest[0] % len(self.truth)], *rest[1:])

    def change(self, verb, memory_id, *rest):
        content, scope, session, kind, active = self.truth[memory_id]
        try:
            if verb == "edit":
                revise.edit(self.workspace.database, memory_id, Revision(content=rest[0]))
                content = rest[0]
            else:
                getattr(revise, verb)(self.workspace.database, memory_id)
                active = verb == "restore"
        except Conflict:
            return
        self.truth[memory_id] = (content, scope, session, kind, active)
        if verb == "purge":
            del self.truth[memory_id]

    def visible(self, wanted):
        return {
            memory_id: content
            for memory_id, (content, scope, session, kind, active) in self.truth.items()
            if active
            and (not wanted.kinds or kind in wanted.kinds)
            and (wanted.session_id is None or session == wanted.session_id)
            and (
                scope == wanted.scope
                if wanted.scope
                else scope.kind in (ScopeKind.WORKSPACE, ScopeKind.USER)
                or (scope.kind is ScopeKind.SESSION and scope.id == wanted.session_id)
            )
        }


@opens_stores
@given(histories, st.lists(st.tuples(texts, filters), max_size=2))
def test_recall_returns_only_visible_and_all_matching_memories(steps_taken, questions):
    with open_recall_workspace() as workspace:
        history = History(workspace)
        for step in steps_taken:
            history.step(*step)
        for text, wanted in [*questions, (" ".join(WORDS), Filter())]:
            visible = history.visible(wanted)
            shown = {hit.memory.id: hit.memory.content for hit in workspace.ask(text, k=100, wanted=wanted).hits}
            assert shown.items() <= visible.items()
            matching = {m for m, content in visible.items() if set(content.split()) & set(text.split())}
            assert matching <= set(shown)
            listed = workspace.ask("", k=100, wanted=wanted)
            assert {hit.memory.id for hit in listed.hits} == set(visible)
        assert workspace.errors == []


def test_exact_match_ranks_above_important_recent_memories(workspace):
    old = workspace.write("The zebra gateway", importance=0.0, occurred_at="2020-01-01T00:00:00.000Z")
    for number in range(20):
        workspace.write(f"Queue number {number}", importance=1.0)
    workspace.embed()
    assert workspace.find_ids("zebra gateway")[0] == old


def test_the_segment_changes_no_order(workspace):
    for number in range(40):
        workspace.write(f"{WORDS[number % 5]} {WORDS[number % 3]} note {number}", session_id=f"s{number % 4}")
    workspace.embed()
    questions = ("zebra queue", "billing port note 7", "gateway")
    before = [workspace.find_ids(text, k=40) for text in questions]
    workspace.fold()
    assert [workspace.find_ids(text, k=40) for text in questions] == before


def test_no_more_than_were_asked_for_and_best_first(workspace):
    accept_batch(workspace.database, [Draft(f"zebra note {number}") for number in range(30)])
    hits = workspace.ask("zebra", k=7).hits
    assert len(hits) == 7
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 <= hit.relevance <= 1 for hit in hits)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"kind": Kind.DECISION}, Filter(kinds=(Kind.DECISION,))),
        ({"session_id": "s1"}, Filter(session_id="s1")),
        ({"occurred_at": "2020-02-02T00:00:00.000Z"}, Filter(until="2020-02-03T00:00:00.000Z")),
        ({"scope": Scope(ScopeKind.AGENT, "a")}, Filter(scope=Scope(ScopeKind.AGENT, "a"))),
    ],
)
@pytest.mark.parametrize("exact_rows", [10_000, 0])
def test_a_narrow_filter_chooses_before_the_channels_do(fields, wanted, exact_rows):
    with open_recall_workspace(exact_rows) as workspace:
        accept_batch(
            workspace.database, [Draft(f"zebra gateway port {number}") for number in range(2 * MAX_PER_CHANNEL + 50)]
        )
        only = workspace.write("a zebra was once seen near some other harbour", **fields)
        workspace.embed()
        assert workspace.find_ids("zebra gateway port", wanted=wanted) == [only]


# --- what is remembered of answers ---


@pytest.mark.parametrize("k", [1, 3, 10])
def test_of_the_best_those_stay_that_are_probable_enough(workspace, k):
    for text in ("the port of billing is 8123", "billing speaks to the gateway", "the zebra sleeps", "a queue"):
        workspace.write(text)
    workspace.embed()
    best = workspace.ask("which port does billing use", k=k).hits
    for least in sorted({hit.relevance for hit in best}):
        kept = workspace.ask("which port does billing use", k=k, min_relevance=least).hits
        assert kept == tuple(hit for hit in best if hit.relevance >= least)
    assert workspace.ask("which port does billing use", k=k, min_relevance=1.01).hits == ()


def test_memory_written_after_an_empty_answer_is_found(workspace):
    assert workspace.find_ids("zebra") == []
    written = workspace.write("zebra")
    assert workspace.find_ids("zebra") == [written]


def test_no_change_of_a_memory_leaves_an_older_answer_standing(workspace):
    one, two = workspace.write("zebra one"), workspace.write("zebra two")
    assert set(workspace.find_ids("zebra")) == {one, two}
    revise.edit(workspace.database, one, Revision(content="giraffe one"))
    assert workspace.find_ids("zebra") == [two]
    revise.archive(workspace.database, two)
    assert workspace.find_ids("zebra") == []
    revise.restore(workspace.database, two)
    assert workspace.find_ids("zebra") == [two]
    revise.purge(workspace.database, two)
    assert workspace.find_ids("zebra") == []


def test_a_new_weight_is_felt_at_once(workspace):
    one, two = workspace.write("zebra note"), workspace.write("note zebra")
    assert workspace.find_ids("zebra") == [two, one]
    revise.edit(workspace.database, one, Revision(importance=1.0))
    assert workspace.find_ids("zebra") == [one, two]


def test_new_vectors_are_felt_at_once(workspace, monkeypatch):
    monkeypatch.setattr(dense, "PATIENCE_S", LONG)
    written = workspace.write("zebra gateway")
    workspace.encoder.encode_query = lambda _text: workspace.encoder.encode_documents(["zebra gateway"])[0]
    for _ in range(2):
        assert workspace.find_ids("something else entirely") == []
    workspace.embed()
    assert workspace.find_ids("something else entirely") == [written]


def test_a_segment_that_comes_back_is_felt_at_once(workspace):
    """As after a migration that dropped the tail: nothing is written when a worker builds the segment."""
    written = workspace.write("zebra")
    with workspace.database.write() as db:
        db.execute("DELETE FROM tail")
        meta.put(db, meta.SEGMENT_WANTED, "0")
    assert workspace.find_ids("zebra") == []
    workspace.fold()
    assert workspace.find_ids("zebra") == [written]


def test_nothing_is_missed_and_remembered_while_a_segment_is_swapped(workspace):
    workspace.write("zebra one")
    workspace.fold()
    assert len(workspace.find_ids("zebra")) == 1
    for number in range(3):
        # Written and folded with no search in between.
        workspace.write(f"zebra of round {number}")
        workspace.fold()
        assert len(workspace.find_ids("zebra")) == number + 2


def test_an_answer_without_the_newest_vectors_is_not_kept(workspace):
    workspace.write("zebra")
    workspace.embed()
    assert len(workspace.find_ids("zebra")) == 1
    go_on, read = threading.Event(), workspace.table.read_codes
    try:
        workspace.table.read_codes = lambda *asked: go_on.wait(LONG) and read(*asked)
        workspace.embed()
        answer = workspace.ask("zebra")
        assert not answer.settled
        assert not answer.degraded
    finally:
        go_on.set()
    with workspace.database.read() as db:
        workspace.dense.refresh((meta.get_int(db, meta.VECTORS_EPOCH), meta.get_int(db, meta.VECTORS_GENERATION)))
    assert workspace.ask("zebra").settled


def test_the_same_question_is_answered_from_memory_until_something_changes(workspace, monkeypatch):
    workspace.write("zebra")
    workspace.embed()
    asked, encode = [], workspace.encoder.encode_query
    monkeypatch.setattr(workspace.encoder, "encode_query", lambda text: asked.append(text) or encode(text))
    answers = [workspace.ask("zebra") for _ in range(3)]
    assert [answer.hits for answer in answers] == [answers[0].hits] * 3
    workspace.ask("zebra", k=3)
    workspace.write("giraffe")
    workspace.ask("zebra")
    assert len(asked) == 3


# --- when an index is missing or broken ---


def test_disabled_channel_is_reported_without_degrading_the_answer(workspace):
    workspace.write("zebra")
    workspace.embed()
    answer = workspace.ask("zebra")
    assert answer.channels.keys() == set(Channel)
    assert not answer.degraded


@pytest.mark.parametrize("channel", [Channel.LEXICAL, Channel.DENSE])
def test_a_channel_that_is_not_asked_for_says_nothing(workspace, channel):
    workspace.write("zebra")
    workspace.embed()
    answer = workspace.ask("zebra", channels=(channel,), explain=True)
    searched = {name for name, report in answer.channels.items() if report.state is not ChannelState.OFF}
    assert searched == {channel}
    assert not answer.degraded
    assert set(answer.hits[0].signals.channels) == {channel}
    assert workspace.ask("zebra").hits[0].score > answer.hits[0].score


def test_without_an_encoder_words_still_find(workspace, monkeypatch):
    written = workspace.write("zebra")
    workspace.embed()

    def unavailable(text):
        raise EncoderUnavailable("not yet")

    with monkeypatch.context() as patched:
        patched.setattr(workspace.encoder, "encode_query", unavailable)
        answer = workspace.ask("zebra")
        assert [hit.memory.id for hit in answer.hits] == [written]
        assert answer.channels[Channel.DENSE].state is ChannelState.COLD
    assert not workspace.ask("zebra").degraded, "an answer without a channel is not kept"
    assert workspace.errors == []


def test_vector_index_failure_during_search_costs_only_its_channel(monkeypatch):
    with open_recall_workspace(exact_rows=0) as workspace:
        written = workspace.write("zebra")
        workspace.embed()

        def broken(seqs):
            raise IndexUnavailable("vectors: gone")

        with monkeypatch.context() as patched:
            patched.setattr(workspace.table, "vectors", broken)
            answer = workspace.ask("zebra", explain=True)
            assert [hit.memory.id for hit in answer.hits] == [written]
            assert answer.channels[Channel.DENSE].state is ChannelState.COLD
            assert workspace.why("zebra", written).rank == 1
        assert [channel for channel, _ in workspace.errors] == [Channel.DENSE] * 2
        assert not workspace.ask("zebra").degraded


def test_indexes_that_know_more_than_the_store_break_nothing(workspace):
    """As beside a store that was put back from a copy."""
    written = workspace.write("zebra", session_id="s")
    rows = [(1, ["zebra"]), (50, ["zebra"]), (70_000, ["zebra", "port"])]
    vector = workspace.encoder.encode_documents(["zebra"])
    with workspace.table.exclusive():
        workspace.table.replace(dict.fromkeys((1, 60, 80_000), vector))
    with workspace.database.write() as db:
        meta.put(db, meta.SEGMENT, build_segment(workspace.lexical, rows))
        meta.put(db, meta.VECTORS_GENERATION, "1")
    for wanted in (Filter(), Filter(session_id="s")):
        answer = workspace.ask("zebra port", wanted=wanted, explain=True)
        assert [hit.memory.id for hit in answer.hits] == [written]
        assert not answer.degraded
    assert workspace.errors == []


def test_missing_segment_is_reported_and_the_answer_uses_vectors(workspace):
    written = workspace.write("zebra")
    workspace.embed()
    workspace.fold()
    with workspace.database.write() as db:
        meta.put(db, meta.SEGMENT, "segment-of-dreams")
    answer = workspace.ask("zebra")
    assert [hit.memory.id for hit in answer.hits] == [written]
    assert answer.channels[Channel.LEXICAL].state is ChannelState.COLD
    assert [(channel, error.part) for channel, error in workspace.errors] == [(Channel.LEXICAL, "segment-of-dreams")]


def test_recall_writes_nothing(workspace):
    written = workspace.write("zebra")
    workspace.embed()

    def read_all():
        with workspace.database.read() as db:
            return dump(db)

    before = read_all()
    workspace.ask("zebra", explain=True)
    workspace.ask("")
    workspace.why("zebra", written)
    assert read_all() == before


def test_a_memory_that_does_not_exist_has_no_reasons(workspace):
    with pytest.raises(NotFound):
        workspace.why("zebra", "01J00000000000000000000000")


# --- context ---


def test_answer_without_shared_words_is_found_next_to_its_question(workspace):
    for number in range(30):
        workspace.write(f"filler talk {number}", session_id=f"other-{number % 3}")
    workspace.write("Ada: which harbour did the zebra leave from?", session_id="s")
    reply = workspace.write("Brendan: Oostende, of course.", session_id="s")
    workspace.embed()
    assert reply in workspace.find_ids("which harbour did the zebra leave from", k=2)


def test_personal_question_prefers_facts_about_the_asker(workspace):
    note = workspace.write("The team's editor of choice: vim")
    key = {"subject": "team", "attribute": "editor of choice", "value": "emacs"}
    fact = workspace.write("-", kind=Kind.KEYED_FACT, details=key)
    workspace.write("The team's editor of choice: nano")
    workspace.embed()
    assert workspace.find_ids("what is my editor of choice")[0] == fact
    assert workspace.find_ids("the editor of choice of the team")[0] != fact
    assert note in workspace.find_ids("what is my editor of choice")


def test_time_in_the_question_prefers_memories_of_that_time(workspace):
    days = {
        day: workspace.write(f"standup of team {day}", occurred_at=f"2026-01-{day:02d}T09:00:00.000Z")
        for day in range(1, 9)
    }
    workspace.embed()
    assert workspace.find_ids("standup of team on 2026-01-05")[0] == days[5]
    assert set(workspace.find_ids("standup of team since 2026-01-07", k=2)) == {days[7], days[8]}
    assert set(workspace.find_ids("standup of team before 2026-01-03", k=2)) == {days[1], days[2]}


def test_answers_are_the_same_with_vectors_in_memory_and_in_lance():
    found = []
    for exact_rows in (10_000, 0):
        with open_recall_workspace(exact_rows) as workspace:
            for number in range(24):
                workspace.write(
                    f"{WORDS[number % 5]} {WORDS[(number * 3) % 4]} note {number}", session_id=f"s{number % 4}"
                )
            workspace.embed()
            answers = [workspace.ask(text, k=5) for text in ("zebra queue note 3", "billing gateway", "port note 11")]
            found.append([[(hit.memory.content, hit.score) for hit in answer.hits] for answer in answers])
    for one, other in zip(*found, strict=True):
        scores = np.array([[score for _, score in one], [score for _, score in other]])
        assert scores[0] == pytest.approx(scores[1], abs=0.03)
        assert one[0][0] == other[0][0]


def test_memory_written_during_the_search_causes_no_error(workspace, monkeypatch):
    """The neighbour of a hit may be newer than the lexical index that found the hit."""
    first = workspace.write("zebra", session_id="s")
    workspace.embed()
    workspace.find_ids("warm up")
    run = workspace.channels.run

    def run_then_write(searches, deadline, on_error):
        found = run(searches, deadline, on_error)
        # Past the room that any array keeps in reserve.
        accept_batch(workspace.database, [Draft(f"note {number}", session_id="s") for number in range(1500)])
        workspace.write("src/db/pool.py zebra", session_id="s", occurred_at="2020-01-01T00:00:00.000Z")
        return found

    monkeypatch.setattr(workspace.channels, "run", run_then_write)
    answer = workspace.ask("zebra in src/db/pool.py, when?", explain=True)
    assert answer.hits[0].memory.id == first
    assert workspace.errors == []


def test_written_memory_is_found_during_concurrent_reads_and_builds(workspace):
    stop, failures = threading.Event(), []

    def read():
        number = 0
        while not stop.is_set():
            number += 1
            try:
                workspace.ask(f"zebra in src/db/pool.py number {number % 7} yesterday", explain=True, k=100)
            except Exception as error:  # noqa: BLE001 - shown below
                failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(20):
            written = workspace.write(f"zebra unique{number}x", session_id=f"s{number % 3}")
            assert workspace.find_ids(f"unique{number}x")[0] == written
            if number % 10 == 4:
                workspace.embed()
            if number % 10 == 9:
                revise.archive(workspace.database, written)
                workspace.fold()
                assert written not in workspace.find_ids(f"unique{number}x")
    finally:
        stop.set()
        for reader in readers:
            reader.join(LONG)
    assert failures == []
    assert workspace.errors == []


@pytest.mark.parametrize("fold", [False, True])
def test_of_rules_for_the_same_thing_the_newest_comes_first(workspace, fold):
    rules = [
        workspace.write(text, occurred_at=f"2026-0{month}-01T00:00:00Z", session_id=f"s{month}")
        for month, text in (
            (2, "Good work so far. Please start all method names with o_ in this code base. Thanks."),
            (3, "One more thing: method names start with x_ from now on, I think that reads better. Any questions?"),
            (1, "Method names start with a_."),
        )
    ]
    other = workspace.write(
        "Method arguments get names of their own. We start tomorrow.", occurred_at="2026-04-01T00:00:00Z"
    )
    workspace.embed()
    if fold:
        workspace.fold()
    found = workspace.find_ids("What do method names have to start with?")
    assert [one for one in found if one != other] == [rules[1], rules[0], rules[2]]
    assert found[0] != other


def test_after_the_deadline_hits_are_answered_without_the_steps_left_out(workspace):
    workspace.write("The retry limit is 5")
    workspace.embed()
    query = Query("What is the retry limit?", budget_ms=10_000)
    started = iter([0.0])
    # The channels answer in time; what follows them starts too late.
    late = Deadline(query.budget_ms, clock=lambda: time.perf_counter() + next(started, 100.0))
    answer = search(workspace.reader, query, late)
    assert answer.degraded
    assert answer.channels["currency"].state is ChannelState.LATE
    whole = search(workspace.reader, query)
    assert not whole.degraded
    assert [hit.memory.id for hit in answer.hits] == [hit.memory.id for hit in whole.hits]
