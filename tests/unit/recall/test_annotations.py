"""Beside what is recalled stands who denies it and whether its code has changed."""

import pytest

from pipeline.features.citations import store as broken_citations
from pipeline.kernel.records import Anchor, EdgeDraft, EdgeKind, Kind, Scope, ScopeKind
from pipeline.kernel.records.recall import Annotations
from pipeline.kernel.store import memories
from pipeline.recall.annotations import find_annotations
from pipeline.write import revise

PORT = {"subject": "billing", "attribute": "port", "value": 8123}


@pytest.fixture
def annotations(workspace):
    """Return the annotations on memories, by their number in the call."""

    def run(*memory_ids):
        with workspace.database.read() as db:
            shown = [memories.get(db, memory_id) for memory_id in memory_ids]
            found = find_annotations(db, shown)
        return {shown.index(memory): found[memory.seq] for memory in shown if memory.seq in found}

    return run


def make_contradictions(*memory_ids):
    return tuple(EdgeDraft(EdgeKind.CONTRADICTS, memory_id) for memory_id in memory_ids)


def test_most_memories_have_no_annotation(workspace, annotations):
    one = workspace.write("The port is 1")
    workspace.write("The port is quiet", edges=(EdgeDraft(EdgeKind.SUPPORTS, one),))
    assert annotations(one) == {}
    assert annotations() == {}


def test_both_sides_of_a_denial_say_so(workspace, annotations):
    one = workspace.write("The port is 1")
    two = workspace.write("The port is 2", edges=make_contradictions(one))
    assert annotations(one, two) == {0: Annotations((two,)), 1: Annotations((one,))}


def test_every_contradicting_memory_is_named_once(workspace, annotations):
    one = workspace.write("The port is 1")
    two = workspace.write("The port is 2", edges=make_contradictions(one))
    three = workspace.write("The port is 3", edges=make_contradictions(one, two))
    assert annotations(one)[0].contradicted_by == (two, three)


def test_archived_memory_contradicts_nothing_until_restored(workspace, annotations):
    one = workspace.write("The port is 1")
    two = workspace.write("The port is 2", edges=make_contradictions(one))
    revise.archive(workspace.database, two)
    assert annotations(one) == {}
    revise.restore(workspace.database, two)
    assert annotations(one) == {0: Annotations((two,))}


def test_purged_memory_contradicts_nothing(workspace, annotations):
    one = workspace.write("The port is 1")
    two = workspace.write("The port is 2", edges=make_contradictions(one))
    revise.purge(workspace.database, two)
    assert annotations(one) == {}


def test_candidate_contradicts_nothing(workspace, annotations):
    one = workspace.write("The port is 1")
    two = workspace.write("The port is 2", edges=make_contradictions(one))
    with workspace.database.write() as db:
        memories.update(db, memories.get(db, two).seq, {"candidate": 1}, "2026-01-01T00:00:00.000Z")
    assert annotations(one) == {}


def test_current_fact_settles_a_contradiction(workspace, annotations):
    text = workspace.write("Billing listens on 9000")
    fact = workspace.write("-", kind=Kind.KEYED_FACT, details=PORT, edges=make_contradictions(text))
    assert annotations(text, fact) == {0: Annotations((fact,), settled=True), 1: Annotations((text,))}


def test_a_fact_that_ended_denies_nothing(workspace, annotations):
    text = workspace.write("Billing listens on 9000")
    workspace.write("-", kind=Kind.KEYED_FACT, details=PORT, edges=make_contradictions(text))
    workspace.write("-", kind=Kind.KEYED_FACT, details=PORT | {"value": 9000})
    assert annotations(text) == {}


def test_a_denial_stays_within_its_scope(workspace, annotations):
    shared = workspace.write("The port is 1")
    own = workspace.write("The port is 2", scope=Scope(ScopeKind.AGENT, "a"), edges=make_contradictions(shared))
    assert annotations(shared, own) == {1: Annotations((shared,))}


def test_code_that_changed_is_stale(workspace, annotations, tmp_path):
    file = tmp_path / "code.py"
    file.write_text("one\ntwo\n")
    memory = workspace.write("The second line is two", kind=Kind.CODE, anchor=Anchor(str(file), 2, 2))
    assert annotations(memory) == {0: Annotations(stale=False)}
    file.write_text("one\n2\n")
    assert annotations(memory) == {0: Annotations(stale=True)}


def test_code_without_a_reachable_file_gets_no_annotation(workspace, annotations):
    memory = workspace.write("The second line is two", kind=Kind.CODE, anchor=Anchor("src/code.py", 2, 2, "0" * 64))
    assert annotations(memory) == {}


def test_stale_and_contradicted_are_both_annotated(workspace, annotations, tmp_path):
    file = tmp_path / "code.py"
    file.write_text("one\n")
    memory = workspace.write("The line is one", kind=Kind.CODE, anchor=Anchor(str(file)))
    other = workspace.write("The line is two", edges=make_contradictions(memory))
    file.unlink()
    assert annotations(memory) == {0: Annotations((other,), stale=True, missing=True)}


@pytest.mark.parametrize("fold", [False, True])
def test_superseded_memory_ranks_below_its_successor_and_is_annotated(workspace, fold):
    old = workspace.write("The gateway of billing speaks HTTP", session_id="a")
    edge = EdgeDraft(EdgeKind.SUPERSEDES, old)
    new = workspace.write("It speaks gRPC by now, which was decided in May", session_id="b", edges=(edge,))
    workspace.embed()
    if fold:
        workspace.fold()
    hits = workspace.ask("What does the gateway of billing speak?", min_relevance=0.0).hits
    assert [hit.memory.id for hit in hits] == [new, old]
    assert [hit.annotations.superseded_by for hit in hits] == [None, new]
    # Also where words would never have found it.
    assert workspace.find_ids("billing gateway HTTP", min_relevance=0.0) == [new, old]


def test_broken_memory_is_demoted_although_the_answer_is_cached(workspace):
    one, two = workspace.write("The lexer reads a token"), workspace.write("The lexer reads a token twice")
    workspace.embed()
    first, second = (hit.memory for hit in workspace.ask("lexer token").hits)
    assert {first.id, second.id} == {one, two}
    mark = broken_citations.text_mark(first.content)
    with workspace.database.write() as db:
        broken_citations.replace_all(db, {first.id: broken_citations.BrokenText(mark, ("lexer.py: gone",))})
    hits = workspace.ask("lexer token").hits
    assert [(hit.memory.id, hit.annotations.broken) for hit in hits] == [
        (second.id, ()),
        (first.id, ("lexer.py: gone",)),
    ]
    with workspace.database.write() as db:
        broken_citations.replace_all(db, {})
    assert workspace.ask("lexer token").hits[0].memory.id == first.id


def test_purge_deletes_the_broken_citations_of_the_memory(workspace):
    cited, other = workspace.write("The lexer is in lexer.py"), workspace.write("The parser is in parser.py")
    with workspace.database.write() as db:
        found = {
            memory_id: broken_citations.BrokenText("mark", (f"{name} is gone",))
            for memory_id, name in ((cited, "lexer.py"), (other, "parser.py"))
        }
        broken_citations.replace_all(db, found)
    revise.purge(workspace.database, cited)
    with workspace.database.read() as db:
        assert broken_citations.read_all(db) == {other: found[other]}
        assert "lexer.py" not in str(db.execute("SELECT * FROM meta").fetchall())
