"""One corpus, wherever it stands (tail, segment, or both), is answered in the same order with the same scores."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.features.indexing.job import rebuild_segment
from pipeline.index.lexical import LexicalIndex
from pipeline.index.row_arrays import SessionMap, values_at
from pipeline.kernel.errors import Conflict
from pipeline.kernel.records import Draft, Revision
from pipeline.kernel.store import index_state
from pipeline.text.tokens import ASKS, search_tokens
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database
from tests.fakes.properties import opens_stores
from tests.fakes.turns import bm25, fold, write_turns

WORDS = [
    "port",
    "ports",
    "billing",
    "zebra",
    "LoadGuard",
    "src/db/pool.py",
    "не",
    "порт",
    "東京都",
    "ABC-123",
    "the",
    "x",
    "Ada: ",
    "yesterday",
    "why?",
]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
turns = st.lists(st.tuples(st.sampled_from([None, "s1", "s2"]), texts), min_size=1, max_size=10)
queries = st.lists(st.sampled_from([*WORDS, "unknown", "asks", "time"]), min_size=1, max_size=4).map(" ".join)


def score_sessions(found, seqs):
    """Return the scores of the sessions of memories."""
    ones = np.ones(len(found.corpus.lengths), np.float32)
    sessions, _ = found.corpus.score_sessions(found.postings, dict.fromkeys(found.postings, 1.0), ones)
    return sessions[values_at(found.corpus.session_of, seqs)]


def count_holders(found):
    return {token: len(found.holders(token)) for token in found.postings}


def open_index(database):
    return LexicalIndex(database.file.parent / "lexical", SessionMap())


def ask(index, database, query):
    with database.read() as db:
        return index.search(db, search_tokens(query))


def everyone(rows):
    return np.array([seq for seq, _ in rows], np.int64)


@contextlib.contextmanager
def split_corpus(spoken, in_segment):
    """Write turns, and move those whose place is in `in_segment` into the segment."""
    with scratch_database() as database:
        rows = write_turns(database, spoken)
        chosen = [row for place, row in enumerate(rows) if place in in_segment]
        if chosen:
            fold(database, database.file.parent / "lexical", chosen)
        yield database, rows


def sessions_of(spoken):
    """Group the places of turns by session; a turn without one is a session of its own."""
    groups = {}
    for place, (session, _) in enumerate(spoken):
        groups.setdefault(session or place, []).append(place)
    return list(groups.values())


@opens_stores
@given(turns, queries, st.sets(st.integers(0, 9)))
def test_lexical_scores_equal_the_reference_for_any_segment_split(spoken, query, in_segment):
    answers = []
    for some in (set(), in_segment, set(range(10))):
        with split_corpus(spoken, some) as (database, rows):
            found = ask(open_index(database), database, query)
            answers.append((found.of(everyone(rows)), score_sessions(found, everyone(rows)), found.top(10).tolist()))
    terms, asked = [row[1] for row in rows], search_tokens(query)
    groups = sessions_of(spoken)
    by_session = bm25([[term for place in group for term in terms[place]] for group in groups], asked)
    expected = {place: score for group, score in zip(groups, by_session, strict=True) for place in group}
    for scores, sessions, top in answers:
        assert scores == pytest.approx(bm25(terms, asked), abs=1e-4)
        assert sessions == pytest.approx([expected[place] for place in range(len(rows))], abs=1e-4)
        # Not nearly the same: the same bits, or memories would change places when a segment is built.
        np.testing.assert_array_equal(scores, answers[0][0])
        np.testing.assert_array_equal(sessions, answers[0][1])
        assert top == answers[0][2]
        assert top == [seq for _, seq in sorted((-s, row[0]) for s, row in zip(scores, rows, strict=True) if s > 0)]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), texts),
        st.tuples(st.just("edit"), st.integers(0, 9), texts),
        st.sampled_from([("fold",), ("ask",)]),
    ),
    min_size=4,
    max_size=14,
)


@opens_stores
@given(steps, queries)
def test_an_index_that_stays_open_answers_as_one_that_is_opened_afresh(history, query):
    with scratch_database() as database:
        index, ids = open_index(database), []
        for verb, *rest in history:
            if verb == "write":
                receipt = accept(database, Draft(rest[0], occurred_at="2026-03-04T12:00:00.000Z"))
                ids += [receipt.id] if receipt.duplicate_of is None else []
            elif verb == "edit" and ids:
                with contextlib.suppress(Conflict):
                    revise.edit(database, ids[rest[0] % len(ids)], Revision(content=rest[1]))
            elif verb == "fold":
                rebuild_segment(database, database.file.parent / "lexical")
            else:
                ask(index, database, query)
        stayed, fresh = ask(index, database, query), ask(open_index(database), database, query)
    seqs = np.arange(1, len(ids) + 1)
    np.testing.assert_array_equal(stayed.of(seqs), fresh.of(seqs))
    np.testing.assert_array_equal(score_sessions(stayed, seqs), score_sessions(fresh, seqs))
    assert stayed.top(20).tolist() == fresh.top(20).tolist()
    assert (stayed.ceiling, count_holders(stayed)) == (fresh.ceiling, count_holders(fresh))


@opens_stores
@given(turns, turns, queries)
def test_tail_text_overrides_the_segment_text(old, new, query):
    count = min(len(old), len(new))
    with split_corpus(old, set(range(10))) as (database, rows):
        with database.write() as db:
            for change, ((seq, _), (_, text)) in enumerate(zip(rows, new, strict=False), start=100):
                index_state.put_tokens(db, seq, search_tokens(text), change)
        found = ask(open_index(database), database, query)
    current = [search_tokens(text) for _, text in new[:count]] + [terms for _, terms in rows[count:]]
    asked = set(search_tokens(query))
    assert set(found.top(100).tolist()) == {
        seq for (seq, _), terms in zip(rows, current, strict=True) if asked & set(terms)
    }


SPLITS = [set(), {0, 1, 2, 3, 4, 5}, {1, 4}]


@pytest.mark.parametrize("in_segment", SPLITS)
def test_lexical_ties_go_to_the_older_memory_and_respect_the_limit(in_segment):
    with split_corpus([(None, "port zebra")] * 6, in_segment) as (database, _):
        found = ask(open_index(database), database, "zebra")
    assert found.top(3).tolist() == [1, 2, 3]
    assert found.top(100).tolist() == [1, 2, 3, 4, 5, 6]
    assert found.top(0).tolist() == []


@pytest.mark.parametrize("in_segment", SPLITS)
def test_lexical_search_returns_only_allowed_memories(in_segment):
    with split_corpus([(None, "port zebra")] * 6, in_segment) as (database, _):
        found = ask(open_index(database), database, "zebra")
    allowed = np.zeros(7, np.bool_)
    allowed[[2, 4, 6]] = True
    assert found.top(2, allowed).tolist() == [2, 4]
    # What a mask is too short to know of, it does not allow.
    assert found.top(9, allowed[:5]).tolist() == [2, 4]
    assert found.top(9, allowed[:0]).tolist() == []


@pytest.mark.parametrize("in_segment", SPLITS)
def test_fields_count_for_no_length_and_match_no_words(in_segment):
    plain, full = "the zebra left", "Zed: the zebra left yesterday?"
    with split_corpus([(None, plain), (None, full), (None, "zebra")], in_segment) as (database, rows):
        index = open_index(database)
        assert ASKS in rows[1][1]
        found = ask(index, database, "asks by time zed:")
        assert found.top(9).tolist() == [2], "the name alone is a word of the text"
        lengths = found.corpus.lengths[everyone(rows)].tolist()
        holding = found.corpus.have_field(ASKS, everyone(rows)).tolist()
    day = 4
    assert lengths == [2 + day, 4 + day, 1 + day]
    assert holding == [False, True, False]


@pytest.mark.parametrize("in_segment", SPLITS)
def test_average_length_text_with_every_token_once_reaches_the_ceiling(in_segment):
    spoken = [("s", "zebra port queue"), ("t", "port billing queue"), ("u", "gateway billing mail")] * 2
    with split_corpus(spoken, in_segment) as (database, rows):
        found = ask(open_index(database), database, "zebra port")
    assert found.of(everyone(rows))[0] == pytest.approx(found.ceiling, rel=1e-5)
    assert found.of(everyone(rows))[1] < found.ceiling
    assert count_holders(found) == {"zebra": 2, "port": 4}


@pytest.mark.parametrize("in_segment", [set(), {0, 1, 2}])
def test_token_count_beyond_a_byte_scores_as_the_reference(in_segment):
    with split_corpus([(None, "zebra " * n) for n in (254, 255, 1000, 1600)], in_segment) as (database, rows):
        found = ask(open_index(database), database, "zebra").of(everyone(rows))
    assert found == pytest.approx(bm25([terms for _, terms in rows], ["zebra"]), abs=1e-7)


@pytest.mark.parametrize("query", ["zebra", "", "the of", "?!"])
def test_nothing_matches_nothing(query):
    with scratch_database() as database:
        found = ask(open_index(database), database, query)
    assert found.top(5).tolist() == []
    assert found.of(np.array([1, 2])).tolist() == score_sessions(found, np.array([1, 2])).tolist() == [0, 0]


def test_unknown_sequence_numbers_score_zero():
    with split_corpus([(None, "zebra")], {0}) as (database, _):
        found = ask(open_index(database), database, "zebra")
    assert found.of(np.array([0, 99, 10**6])).tolist() == [0, 0, 0]
    assert score_sessions(found, np.array([0, 99, 10**6])).tolist() == [0, 0, 0]


def test_a_metadata_word_counts_less_than_a_text_word_in_tail_and_segment():
    drafts = (
        Draft("port zebra"),
        Draft("port lion", metadata={"animal": {"names": ["zebra"]}}),
        Draft("zebra port", metadata={"animal": "zebra"}),
        Draft("port tiger", metadata={"zebra": "tiger"}),
    )
    found = []
    for is_built in (False, True):
        with scratch_database() as database:
            for draft in drafts:
                accept(database, draft)
            if is_built:
                rebuild_segment(database, database.file.parent / "lexical")
            scores = ask(open_index(database), database, "zebra")
            found.append(scores.of(np.arange(1, 5)))
            assert sorted(scores.holders("zebra").tolist()) == [1, 2, 3]
    tail, segment = found
    assert tail == pytest.approx(segment)
    in_text, in_metadata, in_both, in_a_key = tail
    assert in_text == pytest.approx(in_both)
    assert in_text > in_metadata > in_a_key == 0
