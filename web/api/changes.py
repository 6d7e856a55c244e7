"""The change log, as one Reverie reads another's and adds to it."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from pipeline.records.people import Role
from web.access import Access
from web.api import bodies
from web.api.answers import Answer
from web.endpoint import Api, Call, Endpoint

# Also opened by the token of the circle that a home's devices are in.
api = Api("changes")

MOST_ITEMS = 1000
MOST_CARDS = 200

# A notice is sealed to each device that stays.
MAX_NOTICE_CHARS = 100_000

Line = Annotated[str, StringConstraints(max_length=256)]


class CardBody(bodies.Body):
    """A device, and the signature of the circle that vouches for it."""

    node: Line
    name: Line
    verify_key: Line
    recipient: Line
    revoked_at: Line | None = None
    signature: Line


Cards = Annotated[list[CardBody], Field(max_length=MOST_CARDS)]
Notice = Annotated[str, StringConstraints(max_length=MAX_NOTICE_CHARS)]


class ChangesQuery(bodies.QueryString):
    """Which operations to list: those after a cursor, at most so many."""

    after: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] = "0"
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 500


class ChangesAnswer(Answer):
    """Operations in the order in which they were logged here, each signed; the first of each device bears its card."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class ChangesBody(bodies.Body):
    """Operations as another home gave them."""

    items: Annotated[list[Any], Field(max_length=MOST_ITEMS)]


class PutAsideAnswer(Answer):
    """An operation that was not taken, by its place, and why."""

    index: int
    reason: str


class MergedAnswer(Answer):
    """How many operations were new and how many were known, and which were put aside."""

    applied: int
    known: int
    put_aside: list[PutAsideAnswer]


class DevicesBody(bodies.Body):
    """The devices that a home knows, and the notices of new keys."""

    cards: Cards = Field(default_factory=list)
    notices: Annotated[list[Notice], Field(max_length=MOST_CARDS, default_factory=list)]


class DevicesAnswer(Answer):
    """The devices that this home knows, the notices of new keys, and the workspaces that it has."""

    cards: list[dict[str, Any]]
    notices: list[str]
    workspaces: list[str]


@api.route(Endpoint("GET", "/v1/changes", answer=ChangesAnswer, problems=(404,), needs=Access.HOME))
def list_changes(call: Call, query: ChangesQuery) -> ChangesAnswer:
    """List the operations of a workspace that travel, the first logged first."""
    call.require(Role.READER)
    items = call.container.sync.list_changes(call.workspace_id, int(query.after), query.limit)
    return ChangesAnswer(items=items, next_cursor=items[-1]["cursor"] if items else None)


@api.route(Endpoint("POST", "/v1/changes", answer=MergedAnswer, problems=(404,), needs=Access.HOME))
def take_changes(call: Call, body: ChangesBody) -> MergedAnswer:
    """Merge operations that another home wrote; one that cannot be taken keeps no other from being."""
    call.require(Role.WRITER)
    merged = call.container.sync.take_in(call.workspace_id, body.items)
    refused = [PutAsideAnswer(index=place, reason=reason) for place, reason in merged.put_aside]
    return MergedAnswer(applied=merged.applied, known=merged.known, put_aside=refused)


@api.route(Endpoint("POST", "/v1/devices", answer=DevicesAnswer, keeps_memories=True, needs=Access.HOME))
def meet_devices(call: Call, body: DevicesBody) -> DevicesAnswer:
    """Exchange which devices belong to the circle, and which keys are new."""
    given = [card.values() for card in body.cards]
    cards, notices, workspaces = call.container.sync.meet(given, body.notices)
    return DevicesAnswer(cards=cards, notices=notices, workspaces=workspaces)
