"""Sessions: store and read conversations, their actions (the journal), incognito, and the import of past sessions."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from pipeline.features.capture import distill
from pipeline.features.capture.usecases import run_memory_commands
from pipeline.kernel.records import Page, Receipt, Viewer
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.people import Role, qualified_name
from pipeline.kernel.store.agent_sessions import Action, IncognitoSession, JournalRow, SessionSummary
from pipeline.kernel.store.conclusions import NewConclusion
from pipeline.kernel.store.turns import Message, Role as SpeakerRole
from pipeline.kernel.times import utc_now
from pipeline.prompt import history as agent_history
from pipeline.sessions import incognito, search_usecases as session_search
from pipeline.sessions.import_progress import read_imported_sessions
from pipeline.sessions.usecases import StarterQuestion, find_questions
from pipeline.write.fields import Moment
from web.features.prompt.hook_runs import RunAnswer
from web.http import bodies
from web.http.access import Right, session_of, viewer_of
from web.http.answers import Answer, Cursor, FoundSessionAnswer, Name, PageAnswer, ReceiptAnswer
from web.http.call import Call, workspace_of_folder
from web.http.endpoint import Api, Endpoint
from web.http.limits import check_queue

api = Api("sessions")

MOST_MESSAGES = 200
MAX_MESSAGE_CHARS = 100_000
MAX_NAME_CHARS = 200
MOST_FOUND = 50
# The number of entries of each kind that one answer shows.
SHOWN = 100


class MessageBody(bodies.Body):
    """One message of a conversation."""

    role: Annotated[SpeakerRole, Field(strict=False)]
    content: Annotated[str, StringConstraints(max_length=MAX_MESSAGE_CHARS)]
    at: Moment | None = None


class TurnsBody(bodies.Body):
    """The messages of a session, in order, and the folder of the session."""

    session_id: bodies.SessionId
    messages: Annotated[list[MessageBody], Field(min_length=1, max_length=MOST_MESSAGES)]
    cwd: bodies.Folder = ""


class NameBody(bodies.Body):
    """The new name of a session."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, strip_whitespace=True)]


class SearchQuery(bodies.QueryString):
    """The words to search for, and the maximum number of sessions."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=bodies.MAX_QUERY_CHARS, strip_whitespace=True)]
    limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 10


class QueuedAnswer(Answer):
    """The number of messages queued for extracting memories, and the results of memory commands in them."""

    queued: int
    done: list[str]


class SessionAnswer(Answer, of=SessionSummary):
    """A session: its name, agent and branch, its start, its last activity, and its numbers of records.

    `parent` is the session that started it as a subagent.
    """

    id: Name
    parent: Name | None


class SessionPage(PageAnswer[SessionAnswer]):
    """A page of sessions."""


class FoundSessions(Answer):
    """Sessions that are about a query, best first."""

    items: list[FoundSessionAnswer]


class TurnAnswer(Answer, of=Message, without=("session_id",)):
    """One message of a conversation."""


class DeedAnswer(
    Answer,
    of=Action,
    without=("session_id", "agent_id", "error_signature", "replaced_hash"),
    optional=("exit_code", "error"),
):
    """One action of an agent, on a file or by a command, and whether it succeeded; of a failure, what was printed."""


class ConclusionAnswer(Answer, of=NewConclusion, without=("session_id", "turn_seq", "topic")):
    """What a session concluded, and whether a later session replaced it."""

    is_current: bool


class SessionRecordAnswer(Answer, of=agent_history.SessionRecord):
    """A session with its latest messages, injected memories, actions and new memories, each newest first.

    `concluded` lists its decisions, rules, rejected alternatives and open ends, the most important first.
    """

    told: list[RunAnswer]
    next_cursor: Cursor
    subagents: list[Name]


class DistilledAnswer(Answer):
    """The result for each lesson that a session suggested."""

    proposed: list[ReceiptAnswer]


@api.route(
    Endpoint(
        "POST",
        "/v1/turns",
        answer=QueuedAnswer,
        status=202,
        of_folder=True,
        keeps_memories=True,
        needs=Role.WRITER,
    )
)
def store_turns(call: Call, body: TurnsBody) -> QueuedAnswer:
    """Store the messages of a session; workers extract memories from them."""
    workspace = workspace_of_folder(call, body.cwd, to_write=True)
    check_queue(workspace)
    session_id = qualified_name(call.caller.person_id, body.session_id) or body.session_id
    session = AgentSession(session_id, cwd=body.cwd, viewer=viewer_of(Viewer(session=body.session_id), call.caller))
    now = utc_now()
    messages = [Message(session_id, message.role, message.content, message.at or now) for message in body.messages]
    queued, stored, done = call.container.agents.sessions.no_save.take_messages(workspace, session, messages)
    asked = [message.content for message in stored if message.role is SpeakerRole.USER]
    done += [
        result.says
        for content in asked
        for result in run_memory_commands(workspace, call.container.contexts, session, content)
    ]
    return QueuedAnswer(queued=queued, done=done)


@api.route(Endpoint("GET", "/v1/sessions", answer=SessionPage, problems=(404,)))
def list_sessions(call: Call, query: bodies.PageQuery) -> Page[SessionSummary]:
    """List sessions, most recently active first."""
    return agent_history.list_sessions(call.workspace, query.limit, query.before or 0)


@api.route(Endpoint("GET", "/v1/sessions/search", answer=FoundSessions, problems=(404,)))
def search_sessions(call: Call, query: SearchQuery) -> FoundSessions:
    """Search sessions by what was said in them, best first; each with a quote."""
    hits = session_search.search_sessions(
        call.workspace,
        call.container.contexts,
        query.query,
        query.limit,
        only_normal=call.caller.is_agent,
    )
    return FoundSessions(items=[FoundSessionAnswer.model_validate(hit) for hit in hits])


@api.route(Endpoint("GET", "/v1/sessions/{session_id}", answer=SessionRecordAnswer, problems=(404,)))
def read_session(call: Call, query: bodies.CursorQuery, session_id: str) -> agent_history.SessionRecord:
    """Read the messages, injected memories, actions, conclusions and new memories of a session."""
    return agent_history.read_session(call.workspace, call.container.agents.hook_runs, session_id, SHOWN, query.before)


@api.route(Endpoint("PATCH", "/v1/sessions/{session_id}", answer=SessionAnswer, problems=(404,)))
def rename_session(call: Call, body: NameBody, session_id: str) -> SessionSummary:
    """Rename a session."""
    return agent_history.rename_session(call.workspace, session_id, body.name)


@api.route(Endpoint("POST", "/v1/sessions/{session_id}/distill", answer=DistilledAnswer, problems=(404,)))
def distill_session(call: Call, session_id: str) -> DistilledAnswer:
    """Propose lessons from a session; they wait for a person's review."""
    receipts: list[Receipt] = distill.distill_session(call.workspace, session_id, asks_model=True)
    return DistilledAnswer(proposed=[ReceiptAnswer.model_validate(receipt) for receipt in receipts])


journal_api = Api("journal")


class JournalQuery(bodies.PageQuery):
    """Filters of a list of actions."""

    session_id: bodies.SessionId | None = None


class ActionAnswer(Answer, of=JournalRow, without=("seq", "exit_code", "error", "error_signature", "replaced_hash")):
    """One action of an agent, on a file or by a command, and whether it succeeded."""

    id: int = Field(validation_alias="seq")


class JournalPage(PageAnswer[ActionAnswer]):
    """A page of the journal."""


@journal_api.route(Endpoint("GET", "/v1/journal", answer=JournalPage, problems=(404,)))
def list_actions(call: Call, query: JournalQuery) -> Page[JournalRow]:
    """List the actions of agents, newest first."""
    return agent_history.list_actions(
        call.workspace, session_of(query.session_id, call.caller), query.limit, query.before
    )


incognito_api = Api("incognito")


class IncognitoBody(bodies.Body):
    """A session, and whether to turn incognito on or off."""

    session_id: bodies.SessionId
    on: bool = True


class IncognitoAnswer(Answer, of=IncognitoSession):
    """A session and the time since which it is incognito; null if it is not."""


class IncognitoPage(PageAnswer[IncognitoAnswer]):
    """The incognito sessions."""


@incognito_api.route(Endpoint("POST", "/v1/incognito", answer=IncognitoAnswer, keeps_memories=True))
def set_incognito(call: Call, body: IncognitoBody) -> IncognitoSession:
    """Turn incognito on or off for a session."""
    session_id = qualified_name(call.caller.person_id, body.session_id) or body.session_id
    if body.on:
        return incognito.begin_incognito(call.workspace, session_id)
    incognito.end_incognito(call.workspace, session_id)
    return IncognitoSession(session_id, None)


@incognito_api.route(Endpoint("GET", "/v1/incognito", answer=IncognitoPage, problems=(404,)))
def list_incognito(call: Call) -> Page[IncognitoSession]:
    """List the incognito sessions."""
    return Page(incognito.list_incognito(call.workspace))


session_import_api = Api("session_import")

QUESTIONS = 3


class ImportProgressAnswer(Answer):
    """The imported sessions of all workspaces, and the files of the running or last import.

    `text` says in one line how far the import is, or what was imported. It is null before the first import.
    `workspaces` is the number of imported sessions by workspace.
    """

    text: str | None
    running: bool
    sessions: int
    first_at: str | None
    last_at: str | None
    files: int
    files_total: int
    workspaces: dict[str, int]


class QuestionAnswer(Answer, of=StarterQuestion):
    """A question for `POST /v1/recall`, or a task for `GET /v1/history?ask=how`."""


class QuestionsAnswer(Answer):
    """Questions that past sessions answer."""

    questions: list[QuestionAnswer]


@session_import_api.route(Endpoint("GET", "/v1/sessions/import", answer=ImportProgressAnswer, needs=Right.ADMIN))
def read_progress(call: Call) -> ImportProgressAnswer:
    """Report the progress of the import of sessions, and what was imported."""
    container = call.container
    workspaces = [call.enter(name) for name in container.databases.ids() if call.may_enter(name)]
    imported = read_imported_sessions(workspaces, container.stores.transcripts)
    progress, count = imported.progress, imported.count
    return ImportProgressAnswer(
        text=imported.describe(datetime.now(UTC)),
        running=progress is not None and progress.is_running,
        sessions=count.sessions,
        first_at=count.first_at,
        last_at=count.last_at,
        files=0 if progress is None else progress.files,
        files_total=0 if progress is None else progress.files_total,
        workspaces=dict(imported.by_workspace),
    )


@session_import_api.route(Endpoint("GET", "/v1/sessions/questions", answer=QuestionsAnswer, problems=(404,)))
def list_questions(call: Call) -> QuestionsAnswer:
    """Return questions that imported sessions of the workspace answer with the first result, for a new user."""
    questions = find_questions(call.workspace, call.container.contexts, QUESTIONS)
    return QuestionsAnswer(questions=[QuestionAnswer.model_validate(question) for question in questions])
