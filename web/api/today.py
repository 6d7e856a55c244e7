"""A day: what was learned, changed and forgotten in all workspaces of the caller."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from config.paths import WORKSPACE_ID
from pipeline.services import today
from pipeline.services.today import UndoMethod, WorkspaceDay
from pipeline.times import local_day_start, parse
from pipeline.write.fields import Moment
from web.access import Access
from web.api import bodies
from web.api.answers import Answer, MemoryAnswer
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("today")


class DayQuery(bodies.QueryString):
    """A time, `since` inclusive and `until` exclusive, and one workspace or all.

    Without `since`, the day of the server starts the time; without `until`, it ends now.
    """

    since: Moment | None = None
    until: Moment | None = None
    workspace: Annotated[str, StringConstraints(pattern=f"^{WORKSPACE_ID.pattern}$")] | None = None


class UndoAnswer(Answer):
    """How to undo a change.

    `audit`: undo this entry of the audit trail. `restore` and `archive`: do this with the memory. `value`: set the
    earlier value of this fact (`subject/attribute`) again. `text`: restore this entry of the memory's history.
    """

    method: UndoMethod
    id: str


class DayChangeAnswer(Answer):
    """A change: the memory as it is now, null if it was purged, and the sentence that it replaced, if any."""

    at: str
    what: str
    memory: MemoryAnswer | None
    before: str | None
    undo: UndoAnswer | None


class WorkspaceDayAnswer(Answer):
    """The day of a workspace, the last change first. Many imported memories are counted in `imported` only.

    `more` means that the day had more changes than are listed.
    """

    workspace: str
    learned: list[DayChangeAnswer]
    changed: list[DayChangeAnswer]
    forgotten: list[DayChangeAnswer]
    imported: dict[today.DayPart, int] = Field(default_factory=dict)
    more: bool


class DayAnswer(Answer):
    """The workspaces in which something happened."""

    items: list[WorkspaceDayAnswer]


@api.route(Endpoint("GET", "/v1/today", answer=DayAnswer, needs=Access.ANYBODY))
def read_day(call: Call, query: DayQuery) -> dict[str, list[WorkspaceDay]]:
    """List what was learned, changed and forgotten in a day, by workspace."""
    now = datetime.now(UTC)
    since = local_day_start(now.astimezone().date()) if query.since is None else parse(query.since)
    until = now if query.until is None else parse(query.until)
    written = today.list_written_since(call.container.databases, since)
    names = [name for name in written if query.workspace in (None, name) and call.may_enter(name)]
    return {"items": today.list_day(map(call.enter, names), since, until)}
