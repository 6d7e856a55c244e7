"""A question that quotes a thing by its spelling gets the memories that contain it."""

import itertools
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, Filter, Kind, Revision
from pipeline.kernel.times import utc_text
from pipeline.recall.evidence import _number_literal_sets
from pipeline.recall.literal_matches import MAX_HOLDERS, QuerySigns, measure_run
from pipeline.recall.rank import FEATURES, LITERAL
from pipeline.write import revise
from tests.fakes.in_process import accept_batch
from tests.fakes.properties import examples
from tests.fakes.recall_workspace import open_recall_workspace

ALONE = next(feature.weight for feature in FEATURES if feature.name == LITERAL)

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
    """Return the memories that were lifted for a literal, and by how much."""
    hits = workspace.ask(question, explain=True, k=60, **fields).hits
    return {hit.memory.id: hit.literal_score for hit in hits if hit.literal_score > 0}


@pytest.mark.parametrize("digested", [False, True])
def test_the_only_holder_comes_first(crowd, quote, digested):
    quoted, question = quote
    wanted = holder(crowd, quoted)
    if digested:
        crowd.embed()
        crowd.fold()
    assert crowd.find_ids(question)[0] == wanted
    assert literals(crowd, question) == {wanted: ALONE}


def test_two_holders_come_before_all_others_and_count_less(crowd, quote):
    quoted, question = quote
    both = {holder(crowd, quoted), holder(crowd, quoted, "Another note that says {} too.")}
    assert set(crowd.find_ids(question)[:2]) == both
    lifts = literals(crowd, question)
    assert lifts.keys() == both
    assert all(ALONE / 2 < lift < ALONE for lift in lifts.values())


@pytest.mark.parametrize("verb", ["archive", "purge"])
def test_invisible_duplicate_of_a_literal_does_not_count(crowd, quote, verb):
    quoted, question = quote
    wanted = holder(crowd, quoted)
    twin = holder(crowd, quoted, "Another note that says {} too.")
    assert literals(crowd, question).keys() == {wanted, twin}
    getattr(revise, verb)(crowd.database, twin)
    assert literals(crowd, question) == {wanted: ALONE}
    assert crowd.find_ids(question)[0] == wanted


def test_a_twin_that_the_filter_hides_does_not_count(crowd, quote):
    quoted, question = quote
    wanted = holder(crowd, quoted, kind=Kind.DECISION)
    holder(crowd, quoted, "Another note that says {} too.", kind=Kind.FACT)
    assert literals(crowd, question, wanted=Filter(kinds=(Kind.DECISION,))) == {wanted: ALONE}


def test_a_holder_that_the_filter_hides_is_not_shown(crowd, quote):
    quoted, question = quote
    wanted = holder(crowd, quoted, kind=Kind.DECISION)
    assert wanted not in crowd.find_ids(question, wanted=Filter(kinds=(Kind.FACT,)), k=40)


def test_an_edit_takes_the_literal_along(crowd, quote):
    quoted, question = quote
    wanted = holder(crowd, quoted)
    assert literals(crowd, question) == {wanted: ALONE}
    revise.edit(crowd.database, wanted, Revision(content="Nothing of that kind any more."))
    assert literals(crowd, question) == {}


def test_three_words_in_a_row_are_chance(crowd):
    holder(crowd, "tidal harbour crane")
    assert literals(crowd, "tidal harbour crane") == {}


@pytest.mark.parametrize(
    "question", ['"tidal harbour crane"', "`tidal harbour crane`", "„tidal harbour crane“", "CraneError: tidal harbour"]
)
def test_three_words_in_quotation_marks_are_meant(crowd, question):
    wanted = holder(crowd, "tidal harbour crane", "It said CraneError: {}.")
    if question.startswith("Crane"):
        wanted = holder(crowd, "tidal harbour", "It said CraneError: {} is closed.")
    assert crowd.find_ids(question)[0] == wanted
    assert wanted in literals(crowd, question)


def test_an_identifier_of_many_is_left_to_the_ranking(workspace):
    count = MAX_HOLDERS + 1
    accept_batch(workspace.database, [Draft(f"note {n} on src/db/pool.py") for n in range(count)])
    assert literals(workspace, "what of src/db/pool.py") == {}
    assert len(workspace.find_ids("what of src/db/pool.py", k=count)) == count


def test_a_literal_alone_lists_its_holders_newest_first(crowd, quote):
    quoted = quote[0]
    held = [
        crowd.write(f"{text} {quoted}.", occurred_at=f"2021-0{month}-01T00:00:00.000Z", importance=1 - month / 10)
        for month, text in ((3, "Seen in March:"), (1, "First seen in January, once:"), (2, "Again"))
    ]
    asked = f'"{quoted}"' if " " in quoted else quoted
    assert crowd.find_ids(asked)[:3] == [held[0], held[2], held[1]]


@pytest.fixture(scope="module")
def similar_notes():
    """Two thousand notes of similar wording, and identifiers in 1 to 20 of them, by their number of holders."""
    with open_recall_workspace() as workspace:
        drafts = [
            Draft(f"Deploy {n}: the gateway was slow, the queue of orders grew.", importance=1.0) for n in range(2000)
        ]
        held = {}
        for count in range(1, 21):
            name = f"OPS-{2000 + count}"
            held[name] = range(count * 90, count * 90 + 4 * count, 4)
            for at in held[name]:
                drafts[at] = Draft(f"Deploy {at}: {name}, the gateway was slow.", importance=0.0)
        ids = [outcome.id for outcome in accept_batch(workspace.database, drafts)]
        workspace.fold()
        yield workspace, {name: {ids[at] for at in places} for name, places in held.items()}


@examples(20)
@given(st.data())
def test_all_holders_come_before_all_others(similar_notes, data):
    workspace, held = similar_notes
    name = data.draw(st.sampled_from(sorted(held)))
    words = data.draw(
        st.lists(
            st.sampled_from(["deploy", "gateway", "slow", "queue", "orders", "grew", "why", "was", "the"]), max_size=8
        )
    )
    at = data.draw(st.integers(0, len(words)))
    question = " ".join([*words[:at], name, *words[at:]])
    assert set(workspace.find_ids(question, k=len(held[name]))) == held[name]


words = st.lists(st.sampled_from("abc"), max_size=8)


@given(words, words)
def test_longest_common_run_equals_brute_force(left, right):
    runs = {tuple(left[i:j]) for i in range(len(left)) for j in range(i + 1, len(left) + 1)}
    also = {tuple(right[i:j]) for i in range(len(right)) for j in range(i + 1, len(right) + 1)}
    signs = QuerySigns(left)
    assert measure_run(signs.query, signs.join(right), 0) == max(map(len, runs & also), default=0)


IDENTIFIERS = {
    "ticket": lambda n: f"OPS-{1000 + 7 * n}",
    "version": lambda n: f"v{2 + n % 7}.{n // 7}.{n % 5}-rc{n}",
    "snake case": lambda n: f"retry_limit_{n}",
    "camel case": lambda n: f"parseLedgerRow{n}",
    "path": lambda n: f"src/billing/export_{n}.py",
    "commit": lambda n: f"{0xB7E15162 + 7919 * n:08x}",
    "error code": lambda n: f"ORA-{900 + n:05}",
    "status code": lambda n: f"0x8007{n:04X}",
    "address": lambda n: f"mara.lind{n}@kiln.example",
    "setting": lambda n: f"KILN_POOL_{n}_SIZE",
}
LOGGED = (
    "Opened ticket {} about the slow {} of {}, {} requests waited.",
    "{}: the {} timeout of {} is {} seconds now.",
    "for {} the {} worker of {} listens on port {}",
    "closed {} after the {} run of {} took {} minutes",
)
LATER = (
    "The {} timeout of {} is {} seconds now.",
    "the {} worker of {} listens on port {}",
    "closed it after the {} run of {} took {} minutes",
)


@pytest.fixture(scope="module")
def logged_identifiers():
    """Memories with one identifier each, later ones of the same wording without, and the holders of each identifier.

    Every fifth identifier has a second, later holder.
    """
    with open_recall_workspace() as workspace:
        names = [make(n) for n in range(45) for make in IDENTIFIERS.values()]
        words = itertools.cycle(itertools.product(("queue", "cache", "upload"), ("mailer", "ledger", "search", "kiln")))
        texts = [
            (name, LOGGED[at % 4].format(name, *next(words), 2 + at % 57))
            for at, name in enumerate([*names, *names[::5]])
        ]
        texts += [("", LATER[at % 3].format(*next(words), 2 + at % 57)) for at in range(150)]
        begin = datetime(2025, 1, 1, tzinfo=UTC)
        drafts = [Draft(text, occurred_at=utc_text(begin + timedelta(hours=at))) for at, (_, text) in enumerate(texts)]
        holders: dict[str, list[str]] = defaultdict(list)
        for (name, _), outcome in zip(texts, accept_batch(workspace.database, drafts), strict=True):
            holders[name].insert(0, outcome.id)
        workspace.embed()
        workspace.fold()
        yield workspace, {name: holders[name] for name in names}


@pytest.mark.parametrize("shape", IDENTIFIERS)
@pytest.mark.parametrize("question", ["{}", "what was decided about {}?"], ids=["alone", "asked"])
def test_memories_with_an_identifier_rank_above_similar_later_memories(logged_identifiers, shape, question):
    workspace, holders = logged_identifiers
    names = [IDENTIFIERS[shape](n) for n in range(45)]
    missed = [
        name
        for name in names
        if set(workspace.find_ids(question.format(name), k=len(holders[name]))) != {*holders[name]}
    ]
    assert missed == []


def test_of_two_holders_the_newest_comes_first(logged_identifiers):
    workspace, holders = logged_identifiers
    twice = {name: ids for name, ids in holders.items() if len(ids) == 2}
    assert {name: workspace.find_ids(name, k=2) for name in twice} == twice


def test_a_memory_with_both_identifiers_comes_before_a_newer_one_with_one(workspace):
    both = workspace.write("OPS-1846 is blocked by OPS-1990.", occurred_at="2025-01-01T00:00:00.000Z")
    workspace.write("OPS-1990: port of the mailer is 25.", occurred_at="2025-03-01T00:00:00.000Z")
    assert workspace.find_ids("OPS-1846 OPS-1990")[0] == both


@pytest.mark.parametrize("count", [1, MAX_HOLDERS + 1], ids=["rare", "common"])
def test_a_successor_without_the_identifier_does_not_take_the_first_place(workspace, count):
    held = [
        workspace.write(
            f"OPS-1846, day {n}: the mailer sends on port 25.", occurred_at=f"2025-01-{1 + n % 28:02}T00:00:00.000Z"
        )
        for n in range(count)
    ]
    newer = workspace.write(
        "The mailer sends on port 465.",
        edges=(EdgeDraft(EdgeKind.SUPERSEDES, held[0]),),
        occurred_at="2025-03-01T00:00:00.000Z",
    )
    found = workspace.find_ids("OPS-1846", k=count + 1)
    assert set(found[:count]) == {*held}
    assert newer not in found[:count]


def test_announced_successor_ranks_first_for_a_long_query(workspace):
    workspace.write(
        "Settled: merge_contacts keys on the lowercased email and keeps the contact with the latest update.",
        occurred_at="2025-01-01T00:00:00.000Z",
    )
    amended = workspace.write(
        "Amended rule, superseding keep-latest: the key stays the lowercased email, the most complete contact wins.",
        occurred_at="2025-03-01T00:00:00.000Z",
    )
    report = (
        "After a sync the same contact is in the list more than once, with the same email in another case. "
        "Fix merge_contacts so that no contact is kept twice, without breaking existing behaviour."
    )
    assert workspace.find_ids(report)[0] == amended


@given(
    st.lists(st.sets(st.integers(1, 12)), max_size=70),
    st.sets(st.integers(1, 12)),
    st.sets(st.integers(1, 12)),
    st.booleans(),
)
def test_memories_have_one_number_if_they_have_the_same_literals(holders, quoted, pool, is_literal):
    by_token = {str(number): np.array(sorted(seqs), np.int64) for number, seqs in enumerate(holders)}
    lexical = SimpleNamespace(postings=by_token, holders=by_token.__getitem__)
    seqs = np.array(sorted(pool), np.int64)
    candidates = SimpleNamespace(seqs=seqs, lexical=lexical, literal=dict.fromkeys(quoted, 1.0))
    question = SimpleNamespace(identifiers=tuple(by_token), is_literal=is_literal)
    numbers = _number_literal_sets(question, candidates).tolist()
    # A run of words counts only if the question is nothing else.
    sets = [(is_literal and seq in quoted, *(seq in held for held in holders)) for seq in seqs.tolist()]
    assert [[one == other for other in numbers] for one in numbers] == [[a == b for b in sets] for a in sets]
