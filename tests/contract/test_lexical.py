"""One corpus, wherever it stands (tail, segment, or both), is answered in the same order with the same scores."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.analysis import search_tokens
from pipeline.index.lexical import K1, B, LexicalIndex, build_segment, remove_segments
from pipeline.store import meta, tail
from tests.fakes.house import scratch_database

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
]
documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=12)
queries = st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=4).map(" ".join)
# Five tokens a document, so that the mean length is the same on either side of a split.
EVEN_WORDS = ["port", "billing", "zebra", "giraffe", "порт", "x"]
even_documents = st.lists(st.lists(st.sampled_from(EVEN_WORDS), min_size=5, max_size=5).map(" ".join), min_size=1)
even_queries = st.lists(st.sampled_from(EVEN_WORDS), min_size=1, max_size=4).map(" ".join)


def reference(corpus, query):
    """BM25 as its papers write it, one document at a time."""
    tokens = [search_tokens(text) for text in corpus]
    average = sum(map(len, tokens)) / len(tokens)
    scores = []
    for document in tokens:
        counts, score = Counter(document), 0.0
        for term in dict.fromkeys(search_tokens(query)):
            df = sum(term in other for other in tokens)
            idf = math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
            if counts[term]:
                score += idf * counts[term] / (counts[term] + K1 * (1 - B + B * len(document) / average))
        scores.append(score)
    return scores


def answered(corpus, query, in_segment):
    """Index the documents, those with their number in `in_segment` in the segment, the others in the tail."""
    with scratch_database() as database:
        folder = database.file.parent / "lexical"
        folder.mkdir()
        rows = [(seq, search_tokens(text)) for seq, text in enumerate(corpus, start=1)]
        with database.write() as db:
            if in_segment:
                meta.put(db, meta.SEGMENT, build_segment(folder, [row for row in rows if row[0] in in_segment]))
            for seq, tokens in rows:
                if seq not in in_segment:
                    tail.put(db, seq, tokens, 1)
        with database.read() as db:
            scores = LexicalIndex(folder).search(db, search_tokens(query))
            return scores.of([seq for seq, _ in rows]), scores.top(len(rows))


@settings(max_examples=30)
@given(documents, queries)
def test_tail_and_segment_answer_as_the_reference_does(corpus, query):
    agree_with_the_reference(corpus, query, [set(), set(range(1, len(corpus) + 1))])


@settings(max_examples=30)
@given(even_documents, even_queries, st.data())
def test_any_split_answers_as_the_reference_does(corpus, query, data):
    some = data.draw(st.sets(st.integers(1, len(corpus))))
    agree_with_the_reference(corpus, query, [set(), some])


def test_a_split_of_short_and_long_texts_answers_as_the_reference_does():
    corpus = ["zebra", "zebra port", "zebra " + "port billing x " * 20, "zebra " + "port billing y " * 20]
    agree_with_the_reference(corpus, "zebra", [{1, 2}])


def agree_with_the_reference(corpus, query, splits):
    expected = reference(corpus, query)
    for in_segment in splits:
        scores, top = answered(corpus, query, in_segment)
        assert scores == pytest.approx(expected, abs=1e-4)
        assert {seq for seq, _ in top} == {seq for seq, score in enumerate(expected, start=1) if score > 0}
        assert [score for _, score in top] == pytest.approx(
            sorted((s for s in expected if s > 0), reverse=True), abs=1e-4
        )
        assert all(expected[a - 1] >= expected[b - 1] - 1e-4 for (a, _), (b, _) in pairwise(top))


@settings(max_examples=25)
@given(documents, documents, queries)
def test_what_the_tail_says_of_a_memory_overrides_the_segment(old, new, query):
    # As after an edit of every document that both versions have.
    count = min(len(old), len(new))
    with scratch_database() as database:
        folder = database.file.parent / "lexical"
        folder.mkdir()
        with database.write() as db:
            rows = [(seq, search_tokens(text)) for seq, text in enumerate(old, start=1)]
            meta.put(db, meta.SEGMENT, build_segment(folder, rows))
            for seq in range(1, count + 1):
                tail.put(db, seq, search_tokens(new[seq - 1]), 2)
        tokens = set(search_tokens(query))
        with database.read() as db:
            found = dict(LexicalIndex(folder).search(db, sorted(tokens)).top(100))
    for seq in range(1, len(old) + 1):
        current = new[seq - 1] if seq <= count else old[seq - 1]
        assert (seq in found) == bool(tokens & set(search_tokens(current)))


@pytest.mark.parametrize(
    "in_segment",
    [
        set(),
        {1, 2, 3, 4, 5, 6},
        {2, 5},
    ],
)
def test_ties_go_to_the_older_memory_and_the_limit_holds(in_segment):
    corpus = ["port zebra"] * 6
    with scratch_database() as database:
        folder = database.file.parent / "lexical"
        folder.mkdir()
        rows = [(seq, search_tokens(text)) for seq, text in enumerate(corpus, start=1)]
        with database.write() as db:
            if in_segment:
                meta.put(db, meta.SEGMENT, build_segment(folder, [row for row in rows if row[0] in in_segment]))
            for seq, tokens in rows:
                if seq not in in_segment:
                    tail.put(db, seq, tokens, 1)
        with database.read() as db:
            scores = LexicalIndex(folder).search(db, ["zebra"])
    assert [seq for seq, _ in scores.top(3)] == [1, 2, 3]
    assert [seq for seq, _ in scores.top(3, np.array([2, 4, 6]))] == [2, 4, 6]
    assert scores.top(3, np.array([], np.int64)) == []


def test_nothing_matches_nothing(tmp_path):
    with scratch_database() as database, database.read() as db:
        scores = LexicalIndex(tmp_path).search(db, ["zebra"])
        assert (scores.top(5), scores.of([1, 2]), scores.ceiling) == ([], [0.0, 0.0], 0.0)


def test_no_score_exceeds_the_ceiling():
    corpus = ["zebra " * n for n in (1, 10, 100)] + ["port"]
    with scratch_database() as database:
        with database.write() as db:
            for seq, text in enumerate(corpus, start=1):
                tail.put(db, seq, search_tokens(text), 1)
        with database.read() as db:
            scores = LexicalIndex(database.file.parent).search(db, search_tokens("zebra port"))
    assert max(scores.of([1, 2, 3, 4])) < scores.ceiling


def test_only_the_kept_segment_stays(tmp_path):
    names = [build_segment(tmp_path, [(1, ["zebra"])]) for _ in range(3)]
    (tmp_path / "build.lock").touch()
    remove_segments(tmp_path, keep=names[1])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(["build.lock", names[1]])
