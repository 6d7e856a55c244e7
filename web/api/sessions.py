"""Conversations of sessions: store turns, and read sessions."""

from typing import Annotated

from pydantic import Field, StringConstraints

from pipeline.records import Page, Receipt, Viewer
from pipeline.records.hooks import AgentSession
from pipeline.records.people import Role, qualified_name
from pipeline.services import agent_history, distill, session_search
from pipeline.services.agent_history import SessionRecord
from pipeline.services.turns import obey
from pipeline.store.agent_sessions import ActionType, SessionSummary
from pipeline.store.conclusions import ConclusionKind
from pipeline.store.turns import Message, Role as SpeakerRole
from pipeline.times import utc_now
from pipeline.write.fields import Moment
from web.api import bodies
from web.api.answers import (
    Answer,
    Cursor,
    FoundSessionAnswer,
    MemoryAnswer,
    Name,
    PageAnswer,
    ReceiptAnswer,
    is_missing,
)
from web.api.caller_scope import viewer_of
from web.api.hook_runs import RunAnswer
from web.call import Call, workspace_of_folder
from web.endpoint import Api, Endpoint
from web.limits import check_queue

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


class TurnsQuery(bodies.QueryString):
    """A page of a session's messages."""

    cursor: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] | None = None

    @property
    def before(self) -> int | None:
        """Return the row number before which the page starts."""
        return None if self.cursor is None else int(self.cursor)


class SearchQuery(bodies.QueryString):
    """The words to search for, and the maximum number of sessions."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=bodies.MAX_QUERY_CHARS, strip_whitespace=True)]
    limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 10


class QueuedAnswer(Answer):
    """The number of messages queued for extracting memories, and the results of memory commands in them."""

    queued: int
    done: list[str]


class SessionAnswer(Answer):
    """A session: its name, agent and branch, its start, its last activity, and its numbers of records."""

    id: Name
    name: str | None
    agent: str | None
    branch: str | None
    first_at: str
    last_at: str
    turns: int
    actions: int
    memories: int


class SessionPage(PageAnswer[SessionAnswer]):
    """A page of sessions."""


class FoundSessions(Answer):
    """Sessions that are about a query, best first."""

    items: list[FoundSessionAnswer]


class TurnAnswer(Answer):
    """One message of a conversation."""

    role: SpeakerRole
    content: str
    at: str


class DeedAnswer(Answer):
    """One action of an agent, on a file or by a command, and whether it succeeded; of a failure, what was printed."""

    at: str
    tool: str
    type: ActionType
    target: str
    ok: bool
    exit_code: int | None = Field(default=None, exclude_if=is_missing)
    error: str | None = Field(default=None, exclude_if=is_missing)


class ConclusionAnswer(Answer):
    """What a session concluded, and whether a later session replaced it."""

    kind: ConclusionKind
    content: str
    at: str
    is_current: bool


class SessionRecordAnswer(Answer):
    """A session with its latest messages, injected memories, actions and new memories, each newest first.

    `concluded` lists its decisions, rules, rejected alternatives and open ends, the most important first.
    """

    session: SessionAnswer
    said: list[TurnAnswer]
    told: list[RunAnswer]
    did: list[DeedAnswer]
    learnt: list[MemoryAnswer]
    concluded: list[ConclusionAnswer]
    next_cursor: Cursor


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
    done += [result.says for content in asked for result in obey(workspace, call.container.contexts, session, content)]
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
def read_session(call: Call, query: TurnsQuery, session_id: str) -> SessionRecord:
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
