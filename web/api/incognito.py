"""Incognito sessions: nothing of them is stored."""

from pipeline.records import Page
from pipeline.records.people import qualified_name
from pipeline.services import incognito
from pipeline.store.agent_sessions import IncognitoSession
from web.api import bodies
from web.api.answers import Answer, Name, PageAnswer
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("incognito")


class IncognitoBody(bodies.Body):
    """A session, and whether to turn incognito on or off."""

    session_id: bodies.SessionId
    on: bool = True


class IncognitoAnswer(Answer):
    """A session and the time since which it is incognito; null if it is not."""

    session_id: Name
    since: str | None


class IncognitoPage(PageAnswer[IncognitoAnswer]):
    """The incognito sessions."""


@api.route(Endpoint("POST", "/v1/incognito", answer=IncognitoAnswer, keeps_memories=True))
def set_incognito(call: Call, body: IncognitoBody) -> IncognitoSession:
    """Turn incognito on or off for a session."""
    session_id = qualified_name(call.caller.person_id, body.session_id) or body.session_id
    if body.on:
        return incognito.begin_incognito(call.workspace, session_id)
    incognito.end_incognito(call.workspace, session_id)
    return IncognitoSession(session_id, None)


@api.route(Endpoint("GET", "/v1/incognito", answer=IncognitoPage, problems=(404,)))
def list_incognito(call: Call) -> Page[IncognitoSession]:
    """List the incognito sessions."""
    return Page(incognito.list_incognito(call.workspace))
