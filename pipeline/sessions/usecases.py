"""Answer from past sessions: what fixed an error, which command works, who changed a file, what often fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Literal

from pipeline.kernel.records import Filter, Kind, Memory
from pipeline.kernel.records.recall import Query
from pipeline.kernel.store import action_history, conclusions, memories, session_archive
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.recall.annotations import drop_superseded
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.usecases import measure_recall
from pipeline.sessions.file_history import CommitTime, FileSession, find_file_history
from pipeline.sessions.invocations import Invocation, find_invocations
from pipeline.sessions.questions import Question, Stated, make_questions
from pipeline.sessions.remedies import Remedy, find_explanation, find_fixes, find_remedy_of
from pipeline.sessions.search_usecases import search_sessions

# An error in fewer sessions is no friction.
LEAST_SESSIONS = 3


@dataclass(frozen=True, slots=True)
class ReportedRemedy:
    """A remedy with the name of its session, and the agent's sentence that explains it."""

    remedy: Remedy
    session_name: str | None
    explanation: str | None


@dataclass(frozen=True, slots=True)
class ReportedSession:
    """A session behind a file, with its name."""

    session: FileSession
    session_name: str | None


@dataclass(frozen=True, slots=True)
class Friction:
    """A frequent error with the remedy that worked, if one is known."""

    error: action_history.ErrorCount
    remedy: ReportedRemedy | None


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The answer to one question; lists that do not belong to it are empty."""

    occurrences: int = 0
    remedies: Sequence[ReportedRemedy] = ()
    commands: Sequence[Invocation] = ()
    sessions: Sequence[ReportedSession] = ()
    memories: Sequence[Memory] = ()
    errors: Sequence[Friction] = ()


def find_fix(workspace: Workspace, error: str, limit: int) -> HistoryReport:
    """Find what was done about an error in past sessions."""
    with workspace.database.read() as db:
        fixes = find_fixes(db, error, workspace.person_id, limit)
        return HistoryReport(len(fixes.occurrences), _report(db, fixes.remedies))


def find_commands(workspace: Workspace, about: str, limit: int) -> HistoryReport:
    """Find the commands that work for a tool or a task."""
    with workspace.database.read() as db:
        return HistoryReport(commands=find_invocations(db, about, workspace.person_id, limit))


def explain_file(workspace: Workspace, path: str, commit: CommitTime | None, limit: int) -> HistoryReport:
    """Find the sessions and decisions behind a file; with the commit of a line, first the session that made it."""
    with workspace.database.read() as db:
        history = find_file_history(db, path, workspace.onlooker, limit, commit)
        names = conclusions.list_titles(db, [session.session_id for session in history.sessions])
    sessions = [ReportedSession(session, names.get(session.session_id)) for session in history.sessions]
    return HistoryReport(sessions=sessions, memories=history.memories)


def list_friction(workspace: Workspace, limit: int) -> HistoryReport:
    """List the errors that occurred in several sessions, with the remedy that worked last."""
    person = workspace.person_id
    with workspace.database.read() as db:
        frequent = action_history.list_frequent_errors(db, person, LEAST_SESSIONS, limit)
        remedies = {error.signature: find_remedy_of(db, error.signature, person) for error in frequent}
        reported = {signature: _report(db, [remedy])[0] for signature, remedy in remedies.items() if remedy is not None}
    return HistoryReport(errors=[Friction(error, reported.get(error.signature)) for error in frequent])


def _report(db: Connection, remedies: Sequence[Remedy]) -> list[ReportedRemedy]:
    names = conclusions.list_titles(db, [remedy.failure.session_id for remedy in remedies])
    return [
        ReportedRemedy(remedy, names.get(remedy.failure.session_id), find_explanation(db, remedy))
        for remedy in remedies
    ]


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
        imported = session_archive.list_imported(db, SESSIONS, utc_now(), workspace.person_id)
        current = conclusions.list_current(db, CONCLUSIONS, workspace.person_id)
        criteria = Filter(kinds=(Kind.DECISION,), viewer=workspace.onlooker)
        captured = drop_superseded(db, memories.page(db, criteria, CONCLUSIONS, None))
    ids = {session.id for session in imported}
    decided = [
        Stated(conclusion.session_id, conclusion.content, conclusion.topic)
        for conclusion in current
        if conclusion.kind != conclusions.ConclusionKind.OPEN and conclusion.session_id in ids
    ]
    decided += [
        Stated(memory.session_id, memory.content)
        for memory in captured
        if memory.session_id in ids and memory.may_be_injected
    ]
    # Without a conclusion, a session may have asked a question that stayed open.
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
