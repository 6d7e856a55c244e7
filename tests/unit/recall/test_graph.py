import dataclasses
import time

import pytest

from pipeline.features.entities import store as entities
from pipeline.kernel.records import EdgeKind, EntityKind, Filter, Scope, ScopeKind, Viewer
from pipeline.kernel.records.digestion import EntityMention
from pipeline.kernel.records.recall import Channel, ChannelState, Query
from pipeline.kernel.store import edges
from pipeline.kernel.times import utc_now
from pipeline.recall.deadline import Deadline
from pipeline.recall.explain import NOT_VISIBLE
from pipeline.recall.search import search
from pipeline.write import revise

HOST = "ledger-db runs on pine-04, in the cellar"
SERVICE = "billing-service stores its entries in ledger-db"
OWNER = "Mira looks after billing-service"
QUESTION = "Which colleagues suffer whenever pine-04 reboots unexpectedly?"
SINGLE = "Where does ledger-db run, in the cellar?"


class FixedIntent:
    """A classifier that is certain about every question."""

    def __init__(self, probability):
        self.probability = probability

    def weigh(self, _encoder, _question, _vector):
        return self.probability


def with_intent(workspace, probability):
    graph = dataclasses.replace(workspace.reader.graph, intents=FixedIntent(probability))
    workspace.reader = dataclasses.replace(workspace.reader, graph=graph)


def fill(workspace):
    for number in range(12):
        workspace.write(f"an ordinary note about topic{number} and nothing else")
    return [workspace.write(text) for text in (HOST, SERVICE, OWNER)]


def state_of(answer):
    return answer.channels[Channel.GRAPH].state


def place_of(answer, memory_id):
    ids = [hit.memory.id for hit in answer.hits]
    return ids.index(memory_id) + 1 if memory_id in ids else None


def test_graph_question_finds_the_service_of_the_host_and_its_owner(workspace):
    host, service, owner = fill(workspace)
    answer = workspace.ask(QUESTION)
    assert state_of(answer) is ChannelState.OK
    assert [place_of(answer, memory) for memory in (host, service, owner)] == [1, 2, 3]


def test_without_the_channel_no_word_leads_there(workspace):
    host, service, owner = fill(workspace)
    answer = workspace.ask(QUESTION, channels=(Channel.LEXICAL, Channel.DENSE))
    assert state_of(answer) is ChannelState.OFF
    assert [place_of(answer, memory) for memory in (host, service, owner)] == [1, None, None]


def test_without_a_hit_for_which_something_speaks_nothing_is_linked(workspace):
    workspace.write("Ada: ok", importance=0.0)
    with_intent(workspace, 1.0)
    answer = workspace.ask("zebra", channels=(Channel.LEXICAL, Channel.GRAPH), min_relevance=0.0)
    assert state_of(answer) is ChannelState.OFF


def test_a_question_that_the_best_hit_answers_needs_no_graph(workspace):
    fill(workspace)
    answer = workspace.ask(SINGLE)
    assert state_of(answer) is ChannelState.OFF
    assert not answer.degraded


def test_a_question_about_nothing_stored_needs_no_graph(workspace):
    fill(workspace)
    assert state_of(workspace.ask("Which wallpaper did the dentist choose for the hallway?")) is ChannelState.OFF
    assert state_of(workspace.ask("?!")) is ChannelState.OFF


@pytest.mark.parametrize(("probability", "question", "state"), [
    (0.9, SINGLE, ChannelState.OK),
    (0.1, QUESTION, ChannelState.OFF),
    (0.45, QUESTION, ChannelState.OK),
    (0.45, SINGLE, ChannelState.OFF),
])  # fmt: skip
def test_the_intent_of_a_question_decides_before_its_words(workspace, probability, question, state):
    fill(workspace)
    workspace.embed()
    with_intent(workspace, probability)
    assert state_of(workspace.ask(question)) is state


def test_linked_memory_is_relevant_only_if_the_question_asks_for_links(workspace):
    _, service, _ = fill(workspace)
    workspace.embed()
    relevances = []
    for probability in (0.9, 0.45):
        with_intent(workspace, probability)
        workspace.write(f"another state of the workspace {probability}")
        best, *others = workspace.ask(QUESTION, min_relevance=0).hits
        relevances.append(next(hit.relevance for hit in others if hit.memory.id == service) / best.relevance)
    assert relevances[0] > relevances[1]
    assert relevances[1] <= 0.5


def test_late_graph_channel_is_reported_and_the_answer_is_not_cached(workspace, monkeypatch):
    host, *_ = fill(workspace)
    run, late_s = workspace.channels.run, [0.0]

    def run_slowly(*arguments):
        found = run(*arguments)
        late_s[0] = 60.0
        return found

    monkeypatch.setattr(workspace.channels, "run", run_slowly)
    deadline = Deadline(10_000, clock=lambda: time.perf_counter() + late_s[0])
    answer = search(workspace.reader, Query(QUESTION), deadline)
    assert state_of(answer) is ChannelState.LATE
    assert answer.degraded
    assert answer.hits[0].memory.id == host
    assert state_of(workspace.ask(QUESTION)) is ChannelState.OK


def test_an_explanation_names_the_hit_that_a_memory_is_linked_to(workspace):
    host, service, _ = fill(workspace)
    hits = {hit.memory.id: hit for hit in workspace.ask(QUESTION, explain=True).hits}
    signals = hits[service].signals
    assert signals.parts["linked"] > 0
    assert signals.channels[Channel.GRAPH].rank is not None
    assert signals.channels[Channel.GRAPH].contribution == pytest.approx(signals.parts["linked"])
    assert [lift.memory_id for lift in signals.lifted_by if lift.part == "linked"] == [host]


def test_a_memory_that_is_not_found_says_why_the_graph_did_not_find_it(workspace):
    fill(workspace)
    other = workspace.write("a giraffe")
    assert "graph: not linked to the best results" in workspace.why(QUESTION, other).reasons
    closed = workspace.why(SINGLE, other).reasons
    assert "graph: not searched, because the best results answer the question" in closed


def test_graph_walk_follows_stored_edges(workspace):
    host, *_ = fill(workspace)
    cause = workspace.write("the roof leaked")
    unrelated = workspace.write("the gutter is green")
    with workspace.database.write() as db:
        edges.add(db, workspace.seq(cause), EdgeKind.CAUSE, workspace.seq(host), "test", utc_now())
        edges.add(db, workspace.seq(unrelated), EdgeKind.CONTRADICTS, workspace.seq(host), "test", utc_now())
    answer = workspace.ask(QUESTION)
    assert place_of(answer, cause) is not None
    assert place_of(answer, unrelated) is None


def test_links_among_other_memories_do_not_displace_the_best_hit(workspace):
    for number in range(12):
        workspace.write(f"an ordinary note about topic{number} and nothing else")
    # No other memory shares a word with it that the question does not have.
    port = workspace.write("harbor listens on port 7443")
    weaker = workspace.write("we decided that no port of harbor is mirrored")
    unrelated = workspace.write("we decided against the sidecar")
    with workspace.database.write() as db:
        edges.add(db, workspace.seq(unrelated), EdgeKind.SUPPORTS, workspace.seq(weaker), "test", utc_now())
    answer = workspace.ask("Which port does the harbor service use in production?")
    assert state_of(answer) is ChannelState.OK
    assert [place_of(answer, memory) for memory in (port, weaker, unrelated)] == [1, 2, 3]


def test_graph_walk_follows_entities_with_different_spellings(workspace):
    host, *_ = fill(workspace)
    other = workspace.write("the storehouse of our accounts is slow")
    assert place_of(workspace.ask(QUESTION), other) is None
    with workspace.database.write() as db:
        mention = EntityMention(EntityKind.IDENTIFIER, "ledger-db", "ledger-db", 0, 9)
        for memory in (host, other):
            entities.link(db, workspace.seq(memory), [mention])
    # Entities are linked without a change that would outdate a cached answer.
    workspace.write("another state of the workspace")
    assert place_of(workspace.ask(QUESTION), other) is not None


ALICE = Scope(ScopeKind.USER, "alice")


def test_a_memory_of_another_user_is_neither_found_nor_a_bridge(workspace):
    for number in range(12):
        workspace.write(f"an ordinary note about topic{number} and nothing else")
    workspace.write(HOST)
    private = workspace.write(SERVICE, scope=ALICE)
    behind = workspace.write(OWNER)
    own, other = (Filter(viewer=Viewer(user=name)) for name in ("alice", "bob"))
    seen = workspace.ask(QUESTION, wanted=own)
    assert place_of(seen, private) is not None
    assert place_of(seen, behind) is not None
    hidden = workspace.ask(QUESTION, wanted=other)
    assert state_of(hidden) is ChannelState.OK
    assert place_of(hidden, private) is None
    assert place_of(hidden, behind) is None
    assert workspace.why(QUESTION, private, wanted=other).reasons == (NOT_VISIBLE,)


def test_an_archived_memory_is_no_bridge(workspace):
    _, service, owner = fill(workspace)
    revise.archive(workspace.database, service)
    answer = workspace.ask(QUESTION)
    assert place_of(answer, service) is None
    assert place_of(answer, owner) is None
