"""The change log: another server of the same circle reads it and adds to it."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from pipeline.kernel.records.people import Role
from web.http import bodies
from web.http.access import Right
from web.http.answers import Answer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

# The token of the circle of devices opens these routes too.
api = Api("changes", 135)

MOST_ITEMS = 1000
MOST_CARDS = 200

# A notice is encrypted for each device that stays in the circle.
MAX_NOTICE_CHARS = 100_000

Line = Annotated[str, StringConstraints(max_length=256)]


class CardBody(bodies.Body):
    """A device, with the signature by which the circle confirms it."""

    node: Line
    name: Line
    verify_key: Line
    recipient: Line
    revoked_at: Line | None = None
    signature: Line


Cards = Annotated[list[CardBody], Field(max_length=MOST_CARDS)]
Notice = Annotated[str, StringConstraints(max_length=MAX_NOTICE_CHARS)]


class ChangesQuery(bodies.QueryString):
    """The cursor after which to list operations, and their maximum number."""

    after: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] = "0"
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 500


class ChangesAnswer(Answer):
    """Signed operations in the order of this log; the first operation of each device includes its card."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class ChangesBody(bodies.Body):
    """Operations that another device sent."""

    items: Annotated[list[Any], Field(max_length=MOST_ITEMS)]


class PutAsideAnswer(Answer):
    """An operation that was not accepted: its position and the reason."""

    index: int
    reason: str


class MergedAnswer(Answer):
    """Number of new and of known operations, and the quarantined operations."""

    applied: int
    known: int
    put_aside: list[PutAsideAnswer]


class DevicesBody(bodies.Body):
    """The devices that a data directory knows, and the notices of new keys."""

    cards: Cards = Field(default_factory=list)
    notices: Annotated[list[Notice], Field(max_length=MOST_CARDS, default_factory=list)]


class DevicesAnswer(Answer):
    """The devices that this data directory knows, the notices of new keys, and its workspaces."""

    cards: list[dict[str, Any]]
    notices: list[str]
    workspaces: list[str]


@api.route(Endpoint("GET", "/v1/changes", answer=ChangesAnswer, problems=(404,), needs=Right.HOME))
def list_changes(call: Call, query: ChangesQuery) -> ChangesAnswer:
    """List the operations of a workspace that are synced, oldest first."""
    call.require(Role.READER)
    items = call.container.sync.list_changes(call.workspace_id, int(query.after), query.limit)
    return ChangesAnswer(items=items, next_cursor=items[-1]["cursor"] if items else None)


@api.route(Endpoint("POST", "/v1/changes", answer=MergedAnswer, problems=(404,), needs=Right.HOME))
def take_changes(call: Call, body: ChangesBody) -> MergedAnswer:
    """Merge operations of another device. An operation that is not accepted does not stop the others."""
    call.require(Role.WRITER)
    merged = call.container.sync.take_in(call.workspace_id, body.items)
    refused = [PutAsideAnswer(index=index, reason=reason) for index, reason in merged.put_aside]
    return MergedAnswer(applied=merged.applied, known=merged.known, put_aside=refused)


@api.route(Endpoint("POST", "/v1/devices", answer=DevicesAnswer, keeps_memories=True, needs=Right.HOME))
def meet_devices(call: Call, body: DevicesBody) -> DevicesAnswer:
    """Exchange the devices of the circle and the notices of new keys."""
    devices = [card.values() for card in body.cards]
    cards, notices, workspaces = call.container.sync.meet(devices, body.notices)
    return DevicesAnswer(cards=cards, notices=notices, workspaces=workspaces)
