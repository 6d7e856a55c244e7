"""Answer from past sessions: what fixed an error, which command works, who changed a file, what often fails."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.records import Memory
from pipeline.sessions.explanations import find_explanation
from pipeline.sessions.file_history import CommitTime, FileSession, find_file_history
from pipeline.sessions.invocations import Invocation, find_invocations
from pipeline.sessions.remedies import Remedy, find_fixes, find_remedy_of
from pipeline.store import action_history
from pipeline.workspace import Workspace

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
        names = _list_names(db, (session.session_id for session in history.sessions))
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
    names = _list_names(db, (remedy.failure.session_id for remedy in remedies))
    return [
        ReportedRemedy(remedy, names.get(remedy.failure.session_id), find_explanation(db, remedy))
        for remedy in remedies
    ]


def _list_names(db: Connection, session_ids: Iterable[str]) -> Mapping[str, str]:
    return action_history.list_names(db, list(session_ids))
