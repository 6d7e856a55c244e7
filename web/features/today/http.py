"""What a day changed."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from config.paths import WORKSPACE_ID
from pipeline.features.today import usecases as today
from pipeline.kernel.times import local_day_start, parse
from pipeline.write.fields import Moment
from web.http import bodies
from web.http.access import Right
from web.http.answers import Answer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("today", 85)


class DayQuery(bodies.QueryString):
    """A time, `since` inclusive and `until` exclusive, and one workspace or all.

    Without `since`, the day of the server starts the time; without `until`, it has no end.
    """

    since: Moment | None = None
    until: Moment | None = None
    workspace: Annotated[str, StringConstraints(pattern=f"^{WORKSPACE_ID.pattern}$")] | None = None


class UndoAnswer(Answer, of=today.Undo):
    """How to undo a change.

    `audit`: undo this entry of the audit trail. `restore` and `archive`: do this with the memory. `value`: set the
    earlier value of this fact (`subject/attribute`) again. `text`: restore this entry of the memory's history.
    """


class DayChangeAnswer(Answer, of=today.DayChange, without=("part",)):
    """A change: the memory as it is now, null if it was purged, and the sentence that it replaced, if any."""


class WorkspaceDayAnswer(Answer, of=today.WorkspaceDay):
    """The day of a workspace, the last change first. Many imported memories are counted in `imported` only.

    `more` means that the day had more changes than are listed.
    """

    imported: dict[today.DayPart, int] = Field(default_factory=dict)


class DayAnswer(Answer):
    """The workspaces in which something happened."""

    items: list[WorkspaceDayAnswer]


@api.route(Endpoint("GET", "/v1/today", answer=DayAnswer, needs=Right.ANYBODY))
def read_day(call: Call, query: DayQuery) -> dict[str, list[today.WorkspaceDay]]:
    """List what was learned, changed and forgotten in a day, by workspace."""
    since = local_day_start(datetime.now().astimezone().date()) if query.since is None else parse(query.since)
    # Not until now: this would leave out changes of this millisecond, and those stamped by a clock ahead of ours.
    until = datetime.max.replace(tzinfo=UTC) if query.until is None else parse(query.until)
    written = today.list_written_since(call.container.databases, since)
    names = [name for name in written if query.workspace in (None, name) and call.may_enter(name)]
    return {"items": today.list_day(map(call.enter, names), since, until)}
