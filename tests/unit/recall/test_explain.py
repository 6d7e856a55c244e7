"""Each hit can be explained by numbers that hold, each miss by a reason that is true."""

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import PERSONAL, Draft, Filter, Kind, Scope, ScopeKind, Viewer
from pipeline.kernel.records.recall import Channel, ChannelState, Query
from pipeline.recall.explain import NOT_VISIBLE
from pipeline.recall.first_pass import MAX_PER_CHANNEL
from pipeline.recall.rank import FEATURES_OF_GROUP, GROUP_OF_CHANNEL
from pipeline.recall.search import explain_result
from pipeline.write import revise
from tests.fakes.in_process import accept_batch
from tests.fakes.properties import opens_stores
from tests.fakes.recall_workspace import open_recall_workspace

WORDS = ["port", "zebra", "billing", "gateway", "queue", "why?"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
turns = st.lists(st.tuples(texts, st.sampled_from([None, "s1", "s2"])), min_size=1, max_size=8)


@opens_stores
@given(turns, texts, st.booleans())
def test_the_numbers_of_an_explanation_hold(spoken, question, embedded):
    with open_recall_workspace() as workspace:
        for content, session in spoken:
            workspace.write(content, session_id=session)
        if embedded:
            workspace.embed()
        hits = workspace.ask(question, explain=True, k=5).hits
        ids = [hit.memory.id for hit in hits]
        for rank, hit in enumerate(hits, start=1):
            signals = hit.signals
            assert sum(signals.parts.values()) == pytest.approx(hit.score, abs=1e-4)
            for channel, group in GROUP_OF_CHANNEL.items():
                names = [feature.name for feature in FEATURES_OF_GROUP[group]]
                if channel is Channel.GRAPH and channel not in signals.channels:
                    assert all(signals.parts[name] == 0 for name in names)
                    continue
                told = signals.channels[channel]
                assert told.contribution == pytest.approx(sum(signals.parts[name] for name in names), abs=1e-5)
                assert (told.rank is None) == (told.score <= 0)
            assert all(lift.contribution == pytest.approx(signals.parts[lift.part]) for lift in signals.lifted_by)
            assert hit.memory.id not in {lift.memory_id for lift in signals.lifted_by}
            verdict = workspace.why(question, hit.memory.id, k=5)
            assert (verdict.rank, verdict.score) == (rank, pytest.approx(hit.score, abs=1e-5))
            assert verdict.signals == signals
            assert verdict.relevance == pytest.approx(hit.relevance, abs=1e-5)
            assert ids.index(verdict.memory.id) == rank - 1


def test_without_the_wish_nothing_is_explained(workspace):
    workspace.write("zebra")
    assert workspace.ask("zebra").hits[0].signals is None


def test_explained_hit_shows_its_rank_in_each_channel(workspace):
    workspace.write("zebra gateway")
    workspace.write("zebra port billing")
    workspace.write("giraffe", session_id="s")
    workspace.embed()
    first, second = workspace.ask("zebra gateway", explain=True, k=2).hits
    for place, hit in enumerate((first, second), start=1):
        assert {channel: told.rank for channel, told in hit.signals.channels.items()} == {
            Channel.LEXICAL: place,
            Channel.DENSE: place,
        }
    assert first.signals.coverage == 1
    assert 0 < second.signals.coverage < 1
    assert first.signals.closeness > second.signals.closeness


def test_hit_lists_the_neighbors_that_lifted_it(workspace):
    ids = [
        workspace.write(content, session_id="s")
        for content in (
            "Ada: Good morning.",
            "Ben: So, where did the zebra go?",
            "Ada: Oostende.",
            "Ben: Fine.",
            "Ada: I go then.",
        )
    ]
    workspace.embed()
    hits = {hit.memory.id: hit.signals for hit in workspace.ask("where did the zebra go", explain=True).hits}
    lifts = {
        memory_id: {(lift.part, lift.memory_id) for lift in signals.lifted_by} for memory_id, signals in hits.items()
    }
    question = ids[1]
    assert {part for part, source in lifts[ids[2]] if source == question} == {
        "adjacent_turn",
        "session",
    }
    assert ("session", question) in lifts[ids[4]]
    assert not any(source == question for _, source in lifts[question])


def test_an_explanation_names_no_memory_of_another_person(workspace):
    hidden = workspace.write("Where did the zebra go?", session_id="s", scope=PERSONAL)
    workspace.write("The zebra went to Oostende.", session_id="s")
    workspace.embed()

    def list_lifters(viewer):
        hits = workspace.ask("where did the zebra go", explain=True, wanted=Filter(viewer=viewer)).hits
        return {lift.memory_id for hit in hits for lift in hit.signals.lifted_by}

    assert hidden in list_lifters(Viewer())
    assert hidden not in list_lifters(Viewer(person="ada"))


def reasons(workspace, memory_id, text="zebra", **fields):
    verdict = workspace.why(text, memory_id, **fields)
    assert verdict.memory.id == memory_id
    return verdict, " | ".join(verdict.reasons)


def test_found_memory_explains_its_rank(workspace):
    written = workspace.write("zebra")
    verdict, told = reasons(workspace, written)
    assert (verdict.rank, "found: number 1" in told) == (1, True)
    assert verdict.signals is not None


@pytest.mark.parametrize(
    ("fields", "wanted", "reason"),
    [
        ({"kind": Kind.DECISION}, Filter(kinds=(Kind.FACT,)), "kinds: it is a decision"),
        ({"session_id": "s2"}, Filter(session_id="s1"), "session_id"),
        ({"occurred_at": "2020-01-01T00:00:00.000Z"}, Filter(since="2020-01-02T00:00:00.000Z"), "since"),
        ({"occurred_at": "2020-01-03T00:00:00.000Z"}, Filter(until="2020-01-02T00:00:00.000Z"), "until"),
    ],
)
def test_filtered_memory_names_the_filter_that_excludes_it(workspace, fields, wanted, reason):
    written = workspace.write("zebra", **fields)
    workspace.embed()
    verdict, told = reasons(workspace, written, wanted=wanted)
    assert (verdict.rank, verdict.score, verdict.signals) == (None, None, None)
    assert reason in told
    # Its words would have been found.
    assert verdict.channels[Channel.LEXICAL].rank == 1
    assert not verdict.channels[Channel.LEXICAL].considered


def test_of_anothers_memory_nothing_is_said_but_that_it_is_anothers(workspace):
    written = workspace.write("zebra", scope=Scope(ScopeKind.AGENT, "a"), session_id="s2")
    workspace.embed()
    verdict, told = reasons(workspace, written, wanted=Filter(session_id="s1"))
    assert (verdict.rank, verdict.score, verdict.signals, told) == (None, None, None, NOT_VISIBLE)
    assert verdict.channels[Channel.LEXICAL].rank is None
    assert "session_id" in reasons(workspace, written, wanted=Filter(session_id="s1", viewer=Viewer(agent="a")))[1]


def test_an_archived_memory_says_so_and_every_other_reason_too(workspace):
    written = workspace.write("zebra", kind=Kind.DECISION)
    revise.archive(workspace.database, written)
    _, told = reasons(workspace, written, wanted=Filter(kinds=(Kind.FACT,)))
    assert "archived at" in told
    assert "it is a decision" in told


def test_unrelated_memory_explains_why_it_was_not_found(workspace):
    workspace.write("zebra")
    other = workspace.write("giraffe")
    verdict, told = reasons(workspace, other)
    assert verdict.rank is None
    assert "lexical: no word in common" in told
    assert "dense: no similar vector" in told


def test_memory_ranked_too_low_reports_its_rank(workspace):
    accept_batch(workspace.database, [Draft(f"zebra zebra {number}") for number in range(MAX_PER_CHANNEL + 20)])
    last = workspace.write("the one zebra seen in that harbour long ago, and there was more to tell about it than that")
    verdict, told = reasons(workspace, last)
    assert verdict.rank is None
    assert verdict.channels[Channel.LEXICAL].rank == MAX_PER_CHANNEL + 21
    assert f"lexical: rank {MAX_PER_CHANNEL + 21}, too low to be considered" in told


def test_a_memory_ranked_below_the_last_result_says_both_scores(workspace):
    ids = [workspace.write(f"zebra {number}") for number in range(5)]
    verdict, told = reasons(workspace, ids[0], k=2)
    assert verdict.rank == 5
    assert "ranked 5, and 2 were asked for" in told
    assert f"{verdict.score:.3f}" in told


def test_a_channel_that_is_off_is_named(workspace):
    workspace.write("zebra")
    other = workspace.write("otter")
    workspace.embed()
    verdict = explain_result(workspace.reader, Query("zebra", channels=(Channel.LEXICAL,), budget_ms=10_000), other)
    assert "dense: the channel is off" in verdict.reasons


def test_a_channel_that_is_late_is_named(workspace, monkeypatch):
    workspace.write("zebra")
    other = workspace.write("giraffe")

    def late(searches, deadline, on_error):
        found = run(searches, deadline, on_error)
        cold = found[Channel.DENSE]
        report = type(cold.report)(ChannelState.LATE, 1.0)
        return found | {Channel.DENSE: type(cold)(report)}

    run = workspace.channels.run
    monkeypatch.setattr(workspace.channels, "run", late)
    verdict, told = reasons(workspace, other)
    assert "dense: the channel did not answer in time" in told
    assert Channel.DENSE not in verdict.channels


def test_a_listing_explains_nothing_and_breaks_nothing(workspace):
    written = workspace.write("zebra")
    verdict = explain_result(workspace.reader, Query("?!", budget_ms=10_000), written)
    assert verdict.rank is None
    assert "lexical: no word in common" in verdict.reasons


def test_memory_below_min_relevance_reports_its_relevance(workspace):
    written = workspace.write("the zebra sleeps")
    workspace.embed()
    relevance = workspace.ask("zebra").hits[0].relevance
    verdict = workspace.why("zebra", written, min_relevance=1.0)
    assert (verdict.rank, verdict.reasons) == (
        None,
        (f"left out: its relevance is {relevance:.4f}, and 1.0000 is asked for",),
    )
