"""Who quotes a thing by its spelling gets the one memory that holds it."""

import pytest
from hypothesis import given, strategies as st

from pipeline.recall.evidence import longest_common_run
from pipeline.records import Draft, Filter, Kind, Revision
from pipeline.write import revise
from tests.fakes.in_process import accept_batch

# Each quoted by a question whose other words the crowd holds far more of.
QUOTES = {
    "path": ("src/billing/ledger_export.py", "what is the queue gateway billing about in src/billing/ledger_export.py"),
    "file name": ("src/billing/ledger_export.py", "queue gateway billing: ledger_export.py"),
    "ticket": ("ABC-1234", "queue gateway billing ABC-1234"),
    "symbol": ("parseLedgerRow", "queue gateway billing parseLedgerRow"),
    "message": (
        "cannot acquire lock on segment file",
        "billing queue gateway: cannot acquire lock on segment file",
    ),
}


@pytest.fixture(params=QUOTES)
def quote(request):
    return QUOTES[request.param]


@pytest.fixture
def crowd(workspace):
    """Memories that share every other word with the questions, newer and more important."""
    accept_batch(
        workspace.database,
        [Draft(f"billing queue gateway number {n}, the lock of segment {n}", importance=1.0) for n in range(30)],
    )
    return workspace


def holder(workspace, quoted, text="Old note, seen once: {}.", **fields):
    return workspace.write(text.format(quoted), importance=0.0, occurred_at="2020-01-01T00:00:00.000Z", **fields)


def literals(workspace, question, **fields):
    hits = workspace.ask(question, explain=True, k=40, **fields).hits
    return [hit.memory.id for hit in hits if hit.signals.parts["literal"] > 0]


@pytest.mark.parametrize("digested", [False, True])
def test_the_only_holder_comes_first(crowd, quote, digested):
    quoted, question = quote
    wanted = holder(crowd, quoted)
    if digested:
        crowd.embed()
        crowd.fold()
    assert crowd.find_ids(question)[0] == wanted
    assert literals(crowd, question) == [wanted]


def test_two_holders_tell_nobody_apart(crowd, quote):
    quoted, question = quote
    holder(crowd, quoted)
    holder(crowd, quoted, "Another note that says {} too.")
    assert literals(crowd, question) == []


@pytest.mark.parametrize("verb", ["archive", "purge"])
def test_a_twin_that_nobody_can_see_does_not_count(crowd, quote, verb):
    quoted, question = quote
    wanted = holder(crowd, quoted)
    twin = holder(crowd, quoted, "Another note that says {} too.")
    assert literals(crowd, question) == []
    getattr(revise, verb)(crowd.database, twin)
    assert literals(crowd, question) == [wanted]
    assert crowd.find_ids(question)[0] == wanted


def test_a_twin_that_the_filter_hides_does_not_count(crowd, quote):
    quoted, question = quote
    wanted = holder(crowd, quoted, kind=Kind.DECISION)
    holder(crowd, quoted, "Another note that says {} too.", kind=Kind.FACT)
    assert literals(crowd, question, wanted=Filter(kinds=(Kind.DECISION,))) == [wanted]


def test_a_holder_that_the_filter_hides_is_not_shown(crowd, quote):
    quoted, question = quote
    wanted = holder(crowd, quoted, kind=Kind.DECISION)
    assert wanted not in crowd.find_ids(question, wanted=Filter(kinds=(Kind.FACT,)), k=40)


def test_an_edit_takes_the_literal_along(crowd, quote):
    quoted, question = quote
    wanted = holder(crowd, quoted)
    assert literals(crowd, question) == [wanted]
    revise.edit(crowd.database, wanted, Revision(content="Nothing of that kind any more."))
    assert literals(crowd, question) == []


def test_three_words_in_a_row_are_chance(crowd):
    holder(crowd, "tidal harbour crane")
    assert literals(crowd, "tidal harbour crane") == []


def test_an_identifier_of_many_is_left_to_the_ranking(workspace):
    accept_batch(workspace.database, [Draft(f"note {n} on src/db/pool.py") for n in range(20)])
    assert literals(workspace, "what of src/db/pool.py") == []
    assert len(workspace.find_ids("what of src/db/pool.py", k=20)) == 20


words = st.lists(st.sampled_from("abc"), max_size=8)


@given(words, words)
def test_the_longest_run_is_the_longest_that_stands_in_both(left, right):
    runs = {tuple(left[i:j]) for i in range(len(left)) for j in range(i + 1, len(left) + 1)}
    also = {tuple(right[i:j]) for i in range(len(right)) for j in range(i + 1, len(right) + 1)}
    assert longest_common_run(left, right) == max(map(len, runs & also), default=0)
