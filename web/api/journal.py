"""The journal: actions of agents, as their hosts reported them."""

from pydantic import Field

from pipeline.records import Page
from pipeline.services import agent_history
from pipeline.store.agent_sessions import ActionType, JournalRow
from web.api import bodies
from web.api.answers import Answer, Name, PageAnswer
from web.api.caller_scope import session_of
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("journal")


class JournalQuery(bodies.PageQuery):
    """Filters of a list of actions."""

    session_id: bodies.SessionId | None = None


class ActionAnswer(Answer):
    """One action of an agent, on a file or by a command, and whether it succeeded."""

    id: int = Field(validation_alias="seq")
    at: str
    session_id: Name
    agent_id: Name | None
    tool: str
    type: ActionType
    target: str
    ok: bool


class JournalPage(PageAnswer[ActionAnswer]):
    """A page of the journal."""


@api.route(Endpoint("GET", "/v1/journal", answer=JournalPage, problems=(404,)))
def list_actions(call: Call, query: JournalQuery) -> Page[JournalRow]:
    """List the actions of agents, newest first."""
    return agent_history.list_actions(
        call.workspace, session_of(query.session_id, call.caller), query.limit, query.before
    )
