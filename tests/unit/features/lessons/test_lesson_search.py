"""The lessons that a message is shown, from a store: current ones only, also with the scores of another search."""

from pipeline.features.lessons.search import find_lessons_for
from pipeline.kernel.records import EdgeDraft, EdgeKind, Kind, Viewer
from pipeline.kernel.records.recall import Channel, Query
from pipeline.recall.query_scores import QueryScores
from pipeline.recall.search import search
from pipeline.write import revise
from tests.fakes.recall_workspace import LONG_MS

PUSH = "Run make check before every push"
MESSAGE = "push the branch, run make check first"


def find(workspace, scores=None, message=MESSAGE):
    return [hit.memory.content for hit in find_lessons_for(workspace.reader, Viewer(), message, LONG_MS, scores=scores)]


def search_first(workspace, message=MESSAGE):
    scores = QueryScores()
    search(workspace.reader, Query(message, budget_ms=LONG_MS), scores=scores)
    return scores


def test_applicable_lesson_is_found_with_and_without_earlier_scores(workspace):
    workspace.write(PUSH, kind=Kind.LESSON)
    workspace.write("Mails are sent at noon", kind=Kind.LESSON)
    workspace.embed()
    scores = search_first(workspace)
    assert set(scores.find_last(MESSAGE)) == {Channel.LEXICAL, Channel.DENSE}
    assert find(workspace, scores) == [PUSH]
    # The answer to the first message is cached.
    assert find(workspace, message=f"{MESSAGE} ") == [PUSH]


def test_a_superseded_lesson_is_not_chosen(workspace):
    old = workspace.write(PUSH, kind=Kind.LESSON)
    new = "Run make check and make lint before every push"
    workspace.write(new, kind=Kind.LESSON, edges=(EdgeDraft(EdgeKind.SUPERSEDES, old),))
    workspace.embed()
    assert find(workspace) == [new]


def test_scores_of_an_earlier_state_are_not_used_after_a_write(workspace):
    old = workspace.write(PUSH, kind=Kind.LESSON)
    workspace.embed()
    scores = search_first(workspace)
    new = "Before every push run make check twice"
    workspace.write(new, kind=Kind.LESSON)
    assert set(find(workspace, scores)) == {PUSH, new}
    revise.archive(workspace.database, old)
    assert find(workspace, scores) == [new]


def test_without_lessons_nothing_is_found(workspace):
    workspace.write("We push on Fridays")
    assert find(workspace) == find(workspace, search_first(workspace)) == []
