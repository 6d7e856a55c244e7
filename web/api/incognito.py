"""Off the record: sessions of which nothing is stored."""

from typing import Any

from pipeline.store import incognito as table
from pipeline.write.silence import go_off_the_record, return_to_the_record
from web.api import bodies
from web.api.answers import Answer
from web.endpoint import Api, Call, Endpoint

api = Api("incognito")


class IncognitoBody(bodies.Body):
    """A session, and whether it goes off the record or comes back."""

    session_id: bodies.SessionId
    on: bool = True


class IncognitoAnswer(Answer):
    """A session and since when it is off the record, null when it is not."""

    session_id: str
    since: str | None


class IncognitoPage(Answer):
    """The sessions that are off the record."""

    items: list[IncognitoAnswer]
    next_cursor: str | None


@api.route(
    Endpoint(
        "POST",
        "/v1/incognito",
        "Take a session off the record, or put it back",
        body=IncognitoBody,
        answer=IncognitoAnswer,
        problems=(503,),
    )
)
def set_incognito(call: Call) -> dict[str, Any]:
    """Change whether a session is stored."""
    body: IncognitoBody = call.body
    database = call.front.databases.get(call.workspace_id, create=True)
    if body.on:
        return {"session_id": body.session_id, "since": go_off_the_record(database, body.session_id)}
    return_to_the_record(database, body.session_id)
    return {"session_id": body.session_id, "since": None}


@api.route(
    Endpoint("GET", "/v1/incognito", "List the sessions that are off the record", answer=IncognitoPage, problems=(404,))
)
def list_incognito(call: Call) -> dict[str, Any]:
    """List the sessions that are off the record."""
    with call.front.databases.get(call.workspace_id).read() as db:
        found = table.page(db)
    return {"items": [{"session_id": session, "since": since} for session, since in found], "next_cursor": None}
