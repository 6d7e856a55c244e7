"""Of what gives one slot different values, what was said last stands first."""

import pytest

from pipeline.kernel.records import EdgeDraft, EdgeKind, Kind, Source

ASKED = "Write a table for orders"
OLD = "Mia: Good. For a new table, please start table names with 't_'. Orders come next."
NEW = "Mia: An update on a rule from before. Going forward, start all table names with 'tbl_'."
OTHER = "Mia: Orders need a table of their own, write it today."


@pytest.fixture
def places(workspace):
    """Return the given memories in the order in which recall gives them."""

    def run(text, *ids):
        workspace.embed()
        return [ids.index(found) for found in workspace.find_ids(text, min_relevance=0.0) if found in ids]

    return run


def write(workspace, text, day, **fields):
    fields = {"kind": Kind.EPISODE, **fields}
    return workspace.write(text, occurred_at=f"2026-03-{day:02}T00:00:00.000Z", session_id=f"s{day}", **fields)


def test_newest_value_ranks_first_and_other_hits_do_not_move(workspace, places):
    alone = write(workspace, OLD, 1)
    other = write(workspace, OTHER, 5)
    before = places(ASKED, alone, other)
    newer = write(workspace, NEW, 9)
    after = places(ASKED, alone, newer, other)
    assert after.index(1) < after.index(0)
    assert (after.index(2) == 0) == (before[0] == 1)


def test_time_decides_and_not_the_order_of_writing(workspace, places):
    newer, older = write(workspace, NEW, 9), write(workspace, OLD, 1)
    assert places(ASKED, newer, older) == [0, 1]


@pytest.mark.parametrize(
    "fields",
    [{"source": Source.IMPORT}, {"kind": Kind.DOCUMENT}, {"branch": "try-it"}],
    ids=["hearsay", "lists", "branch"],
)
def test_memory_that_may_not_replace_keeps_its_rank(workspace, places, fields):
    older = write(workspace, OLD, 1, source=Source.USER)
    newer = write(workspace, NEW, 9, **{"source": Source.USER, **fields})
    assert places(ASKED, older, newer) == [0, 1]


def test_evidence_never_ranks_above_a_trusted_value_by_what_both_replace(workspace, places):
    write(workspace, OLD, 1, source=Source.IMPORT)
    trusted = write(workspace, NEW.replace("tbl_", "tb_"), 5, source=Source.USER)
    evidence = write(workspace, NEW, 9, source=Source.IMPORT)
    assert places(ASKED, trusted, evidence) == [0, 1]


@pytest.mark.parametrize(
    ("asked", "older", "newer"),
    [
        (
            "tell me about web/session",
            "Test web/session alone\n\ncommit 63e3440978: 9 files, most in web/session (4), tests/unit (3)",
            "Name the tests plainly\n\ncommit 98ca0f117a: 12 files, most in web/session (7), tests/unit (5)",
        ),
        (
            "how often does web/session.py read the session cookie for each request",
            "The session cookie is read once for each request\n\ncommit 63e3440978: web/session.py",
            "The session cookie is now set by the proxy\n\ncommit 98ca0f117a: web/session.py",
        ),
    ],
    ids=["counts of files", "words of change"],
)
def test_a_later_commit_takes_no_place(workspace, places, asked, older, newer):
    alike = [
        write(workspace, text, day, kind=Kind.MILESTONE, source=Source.IMPORT) for text, day in ((older, 1), (newer, 9))
    ]
    assert places(asked, *alike) == [0, 1]


@pytest.mark.parametrize(
    "text",
    ["Who wanted tables to start with 't_' in orders?", "How did we start the table names of orders originally?"],
)
def test_query_for_an_old_value_ranks_it_first(workspace, places, text):
    older, newer = write(workspace, f"{OLD} {OTHER}", 1), write(workspace, NEW, 9)
    assert places(text, older, newer) == [0, 1]


def test_another_speaker_or_another_slot_replaces_nothing(workspace, places):
    older = write(workspace, OLD, 1)
    others = [
        write(workspace, NEW.replace("Mia", "Tom"), 8),
        write(workspace, NEW.replace("table names", "view names"), 9),
    ]
    assert places(ASKED, older, *others)[0] == 0


def test_the_parts_of_a_score_still_add_up(workspace):
    write(workspace, OLD, 1)
    write(workspace, NEW, 9)
    workspace.embed()
    hits = workspace.ask(ASKED, min_relevance=0.0, explain=True).hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(abs(sum(hit.signals.parts.values()) - hit.score) < 1e-4 for hit in hits)
    assert any(abs(hit.signals.parts["newest_first"]) > 0 for hit in hits)


def test_value_valid_again_ranks_above_the_value_it_replaced(workspace, places):
    newer = write(workspace, "Orders are deployed on Mondays", 9, kind=Kind.FACT)
    older = write(
        workspace,
        "Orders are deployed on Fridays",
        1,
        kind=Kind.FACT,
        edges=(EdgeDraft(EdgeKind.SUPERSEDES, newer),),
    )
    assert places("When are orders deployed?", newer, older) == [1, 0]
