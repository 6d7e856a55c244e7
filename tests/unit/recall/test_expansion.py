"""A query finds memories by other names of its terms, and says by which."""

from datetime import UTC, datetime

from hypothesis import given, strategies as st

from pipeline.features.bridges import store
from pipeline.features.bridges.store import BridgeSource, MinedBridge
from pipeline.index.expansions import Expansion
from pipeline.kernel.records import Filter, Scope, ScopeKind
from pipeline.kernel.records.recall import UsedBridge
from pipeline.recall.expansion import MOST_EXPANSIONS, expand
from pipeline.recall.query import parse_query
from pipeline.write.revise import archive

AT = "2026-11-26T00:00:00.000Z"
NOTE = "Rollouts: we go live on Kubernetes with Helm"
QUESTION = "k8s rollouts"
tokens = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=8)


def connect(workspace, memory_id, first="gangway", second="edge proxy"):
    with workspace.database.write() as db:
        (seq,) = db.execute("SELECT seq FROM memory WHERE id = ?", (memory_id,)).fetchone()
        store.replace(db, [MinedBridge(first, second, BridgeSource.DEFINITION, seq)])


def relevance_of(workspace, memory_id, question=QUESTION):
    hits = workspace.ask(question, min_relevance=0.0).hits
    return next((hit.relevance for hit in hits if hit.memory.id == memory_id), 0.0)


def test_a_query_finds_a_memory_by_a_defined_name(workspace):
    memory_id = workspace.write("The edge proxy ends TLS")
    workspace.write("The edge of the map is blank")
    assert workspace.find_ids("gangway") == []
    connect(workspace, memory_id)
    assert workspace.find_ids("gangway") == [memory_id]


def test_common_short_forms_are_known_in_every_workspace(workspace):
    memory_id = workspace.write(NOTE)
    for number in range(5):
        workspace.write(f"Invoice {number} is printed by Ilka")
    workspace.embed()
    assert workspace.find_ids("k8s") == [memory_id]
    assert relevance_of(workspace, memory_id) > relevance_of(workspace, memory_id, "k9s rollouts")


def test_the_querys_own_word_counts_more(workspace):
    other = workspace.write("Kubernetes nodes are rebooted on Monday")
    own = workspace.write("k8s nodes are rebooted on Tuesday")
    assert workspace.find_ids("k8s") == [own, other]


def test_an_explanation_names_the_bridge_and_its_memory(workspace):
    memory_id = workspace.write("The edge proxy runs on Kubernetes")
    connect(workspace, memory_id)
    [hit] = workspace.ask("k8s gangway", explain=True).hits
    assert {(used.term, used.other, used.source, used.memory_id) for used in hit.signals.bridges} == {
        ("k8s", "Kubernetes", "short_form", None),
        ("gangway", "edge proxy", "definition", memory_id),
    }
    assert workspace.why("k8s gangway", memory_id).signals.bridges == hit.signals.bridges
    [hit] = workspace.ask("Kubernetes", explain=True).hits
    assert hit.signals.bridges == ()


def test_a_definition_is_preferred_to_a_common_short_form(workspace):
    layer = workspace.write("The anti-corruption layer translates SOAP")
    bucket = workspace.write("An access control list guards the bucket")
    assert workspace.find_ids("ACL") == [bucket]
    connect(workspace, layer, "anti-corruption layer", "ACL")
    assert workspace.find_ids("ACL") == [layer]


def test_a_bridge_of_a_memory_that_is_gone_is_not_used(workspace):
    defines = workspace.write("gangway means edge proxy")
    memory_id = workspace.write("The edge proxy ends TLS")
    connect(workspace, defines)
    assert memory_id in workspace.find_ids("gangway")
    archive(workspace.database, defines)
    assert workspace.find_ids("gangway") == []


def test_a_bridge_shows_no_memory_of_another_user(workspace):
    memory_id = workspace.write(NOTE)
    workspace.write("Kubernetes costs of Ada", scope=Scope(ScopeKind.AGENT, "ada"))
    assert workspace.find_ids("k8s", wanted=Filter()) == [memory_id]


def test_a_file_name_is_no_short_form(workspace):
    workspace.write("We threw out moment.js last year")
    own = workspace.write("JavaScript is only tolerated in legacy folders")
    assert workspace.find_ids("JavaScript") == [own]
    assert own in workspace.find_ids("js")


def test_plurals_of_a_short_form_are_known(workspace):
    memory_id = workspace.write("Pull requests need two reviews")
    assert workspace.find_ids("PRs") == [memory_id]
    assert workspace.find_ids("PR") == [memory_id]


@given(tokens, st.lists(st.tuples(tokens, tokens), max_size=12))
def test_only_terms_of_the_question_are_expanded(asked, pairs):
    names = {}
    for term, other in pairs:
        bridge = UsedBridge(" ".join(term), " ".join(other), "definition", None)
        names.setdefault(tuple(term), []).append(Expansion(tuple(term), tuple(other), bridge))
    question = parse_query(" ".join(f"zz{token}" for token in asked), datetime(2026, 1, 1, tzinfo=UTC))
    question = type(question)(question.text, tuple(asked), (), None, personal=False, asked_attributes=frozenset())
    expansions = expand(question, names)
    assert len(expansions) <= MOST_EXPANSIONS
    joined = " ".join(asked)
    for expansion in expansions:
        assert " ".join(expansion.term) in joined
        assert not set(expansion.other) <= set(asked)
