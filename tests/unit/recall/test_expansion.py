"""A query finds memories by other names of its terms, says by which, and stops when a bridge is removed."""

from datetime import UTC, datetime

from hypothesis import given, strategies as st

from pipeline.index.expansions import Expansion
from pipeline.recall.expansion import MOST_EXPANSIONS, RARE, expand
from pipeline.recall.query import parse_query
from pipeline.records import Filter, Scope, ScopeKind
from pipeline.store import bridges as store
from pipeline.store.bridges import BridgeSource, MinedBridge
from pipeline.write.revise import archive
from tests.fakes.recall_workspace import open_recall_workspace

AT = "2026-11-26T00:00:00.000Z"
NOTE = "Rollouts: we go live on Kubernetes with Helm"
QUESTION = "k8s rollouts"
tokens = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=8)


def connect(workspace, memory_id, first="k8s", second="Kubernetes", source=BridgeSource.SHORT_FORM):
    with workspace.database.write() as db:
        (seq,) = db.execute("SELECT seq FROM memory WHERE id = ?", (memory_id,)).fetchone()
        store.replace(db, [MinedBridge(first, second, source, seq)], AT)
        return MinedBridge(first, second, source, seq).id


def relevance_of(workspace, memory_id, question=QUESTION):
    hits = workspace.ask(question, min_relevance=0.0).hits
    return next((hit.relevance for hit in hits if hit.memory.id == memory_id), 0.0)


def test_a_query_finds_a_memory_by_the_other_name(workspace):
    memory_id = workspace.write(NOTE)
    assert workspace.find_ids("k8s") == []
    connect(workspace, memory_id)
    assert workspace.find_ids("k8s") == [memory_id]


def test_relevance_counts_the_other_name(workspace):
    memory_id = workspace.write(NOTE)
    for number in range(5):
        workspace.write(f"Invoice {number} is printed by Ilka")
    workspace.embed()
    before = relevance_of(workspace, memory_id)
    connect(workspace, memory_id)
    assert relevance_of(workspace, memory_id) > before


def test_the_querys_own_word_counts_more(workspace):
    other = workspace.write("Kubernetes nodes are rebooted on Monday")
    own = workspace.write("k8s nodes are rebooted on Tuesday")
    connect(workspace, other)
    assert workspace.find_ids("k8s") == [own, other]


def test_an_explanation_names_the_bridge_and_its_memory(workspace):
    memory_id = workspace.write(NOTE)
    bridge_id = connect(workspace, memory_id)
    [hit] = workspace.ask("k8s", explain=True).hits
    [used] = hit.signals.bridges
    assert (used.id, used.term, used.other, used.memory_id) == (bridge_id, "k8s", "Kubernetes", memory_id)
    assert workspace.why("k8s", memory_id).signals.bridges == hit.signals.bridges
    [hit] = workspace.ask("Kubernetes", explain=True).hits
    assert hit.signals.bridges == ()


def test_a_removed_bridge_is_not_used_and_a_cached_answer_is_not_shown(workspace):
    memory_id = workspace.write(NOTE)
    bridge_id = connect(workspace, memory_id)
    assert workspace.find_ids("k8s") == [memory_id]
    with workspace.database.write() as db:
        store.remove(db, bridge_id, "owner", AT)
    assert workspace.find_ids("k8s") == []
    with workspace.database.write() as db:
        store.restore(db, bridge_id)
    assert workspace.find_ids("k8s") == [memory_id]


def test_a_bridge_of_a_memory_that_is_gone_is_not_used(workspace):
    defines = workspace.write("k8s means Kubernetes")
    memory_id = workspace.write(NOTE)
    connect(workspace, defines)
    assert memory_id in workspace.find_ids("k8s")
    archive(workspace.database, defines)
    assert workspace.find_ids("k8s") == []


def test_a_bridge_shows_no_memory_of_another_user(workspace):
    memory_id = workspace.write(NOTE)
    hidden = workspace.write("Kubernetes costs of Ada", scope=Scope(ScopeKind.AGENT, "ada"))
    connect(workspace, memory_id)
    assert workspace.find_ids("k8s", wanted=Filter()) == [memory_id]
    assert hidden != memory_id


def test_a_file_name_is_no_short_form(workspace):
    workspace.write("We threw out moment.js last year")
    own = workspace.write("JavaScript is only tolerated in legacy folders")
    connect(workspace, own, "js", "JavaScript")
    assert workspace.find_ids("JavaScript") == [own]
    assert own in workspace.find_ids("js")


def test_a_long_name_needs_all_its_words(workspace):
    both = workspace.write("The edge proxy ends TLS")
    workspace.write("The edge of the map is blank")
    connect(workspace, both, "gangway", "edge proxy", BridgeSource.DEFINITION)
    assert workspace.find_ids("gangway") == [both]


def test_plurals_of_a_short_form_are_known():
    with open_recall_workspace() as workspace:
        memory_id = workspace.write("Pull requests need two reviews")
        connect(workspace, memory_id, "pr", "pull request")
        assert workspace.find_ids("PRs") == [memory_id]
        assert workspace.find_ids("PR") == [memory_id]


def test_a_bridge_of_common_words_of_similar_meaning_is_not_used():
    names = {("largest",): [Expansion("b1", ("largest",), ("biggest",), is_alias=False)]}
    question = parse_query("largest", datetime(2026, 1, 1, tzinfo=UTC))
    assert question.tokens == ("largest",)
    assert len(expand(question, names, lambda _token: RARE)) == 1
    assert expand(question, names, lambda _token: RARE + 1) == []


@given(tokens, st.lists(st.tuples(tokens, tokens), max_size=12))
def test_only_terms_of_the_question_are_expanded(asked, pairs):
    names = {}
    for number, (term, other) in enumerate(pairs):
        names.setdefault(tuple(term), []).append(Expansion(f"b{number}", tuple(term), tuple(other)))
    question = parse_query(" ".join(f"zz{token}" for token in asked), datetime(2026, 1, 1, tzinfo=UTC))
    question = type(question)(
        question.text, tuple(asked), (), None, personal=False, asks_time=False, asked_attributes=frozenset()
    )
    expansions = expand(question, names, lambda _token: 0)
    assert len(expansions) <= MOST_EXPANSIONS
    joined = " ".join(asked)
    for expansion in expansions:
        assert " ".join(expansion.term) in joined
        assert not set(expansion.other) <= set(asked)
