"""Questions for a new user: what the imported sessions of a workspace answer, each checked by asking it."""

from dataclasses import dataclass
from typing import Literal

from pipeline.recall.annotations import drop_superseded
from pipeline.recall.contexts import SearchContexts
from pipeline.records import Filter, Kind
from pipeline.records.recall import Query
from pipeline.services.recall import measure_recall
from pipeline.services.session_search import search_sessions
from pipeline.sessions.invocations import find_invocations
from pipeline.sessions.questions import Question, Stated, make_questions
from pipeline.store import memories, session_history
from pipeline.times import utc_now
from pipeline.workspace import Workspace

# The most recent conclusions and sessions of which questions are made, and the questions that are asked.
CONCLUSIONS, SESSIONS, ASKED = 200, 100, 40
TESTS = "tests"
# Number of results among which another session's answer would come first.
RESULTS = 3


@dataclass(frozen=True, slots=True)
class StarterQuestion:
    """A question for `recall`, or a task for `how`."""

    ask: Literal["recall", "how"]
    text: str


def find_questions(workspace: Workspace, contexts: SearchContexts, limit: int) -> list[StarterQuestion]:
    """Return questions that imported sessions of the workspace answer with the first result; each of another session.

    The last one asks for the command that runs the tests, if there is one. The list is empty if nothing suits, or
    while the sessions are not indexed yet. Raises NotFound for a workspace that does not exist.
    """
    with workspace.database.read() as db:
        runs_tests = bool(find_invocations(db, TESTS, workspace.person_id, 1))
    questions: dict[str, Question] = {}
    for number, question in enumerate(_make_questions(workspace)):
        if number >= ASKED or len(questions) >= limit - runs_tests:
            break
        if question.session_id not in questions and _is_answered(workspace, contexts, question):
            questions[question.session_id] = question
    asked = [StarterQuestion("recall", question.text) for question in questions.values()]
    return [*asked, StarterQuestion("how", TESTS)] if runs_tests else asked


def _make_questions(workspace: Workspace) -> list[Question]:
    with workspace.database.read() as db:
        imported = session_history.list_imported(db, SESSIONS, utc_now(), workspace.person_id)
        current = session_history.list_current_conclusions(db, CONCLUSIONS, workspace.person_id)
        criteria = Filter(kinds=(Kind.DECISION,), viewer=workspace.onlooker)
        captured = drop_superseded(db, memories.page(db, criteria, CONCLUSIONS, None))
    ids = {session.id for session in imported}
    decided = [
        Stated(conclusion.session_id, conclusion.content, conclusion.topic)
        for conclusion in current
        if conclusion.kind != session_history.OPEN and conclusion.session_id in ids
    ]
    decided += [
        Stated(memory.session_id, memory.content)
        for memory in captured
        if memory.session_id in ids and memory.may_be_injected
    ]
    # Without a conclusion, a session may have asked a question that nobody answered.
    concluded = {conclusion.session_id for conclusion in decided}
    titles = [Stated(session.id, session.name) for session in imported if session.name and session.id in concluded]
    return list(make_questions(decided, titles))


def _is_answered(workspace: Workspace, contexts: SearchContexts, question: Question) -> bool:
    """Return whether the question's session comes first, among the memories as well, if any answer at all."""
    sessions = search_sessions(workspace, contexts, question.text, RESULTS, relevant_only=True)
    if not sessions or sessions[0].session_id != question.session_id:
        return False
    hits = measure_recall(workspace, contexts, Query(question.text, k=RESULTS)).hits
    return not hits or hits[0].memory.session_id == question.session_id
