"""The access log: which person read and wrote which memories. For the owner of the data directory and for admins."""

from typing import Annotated

from pydantic import Field, StringConstraints

from pipeline.records import Page
from pipeline.services.people import MAX_NAME_CHARS
from pipeline.store.access_log import AccessEntry, AccessQuery
from pipeline.write.fields import Moment
from web.access import Access
from web.api import bodies
from web.api.answers import Answer, PageAnswer
from web.call import Call
from web.endpoint import Api, Endpoint

api = Api("access_log")


class AccessLogQuery(bodies.PageQuery):
    """Filters of the access log: person, workspace and time."""

    person: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)] | None = None
    workspace: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    since: Moment | None = None

    def record(self) -> AccessQuery:
        """Return the filters as a record."""
        return AccessQuery(self.person, self.workspace, self.since)


class AccessEntryAnswer(Answer):
    """One request of a person; `memories` counts the memories that it returned or wrote; the list has the first ids."""

    at: str
    request_id: str
    person: str
    token_id: str | None
    workspace: str | None
    action: str
    status: int
    memory_ids: list[str] = Field(default_factory=list)
    memories: int


class AccessLogPage(PageAnswer[AccessEntryAnswer]):
    """A page of the access log."""


@api.route(Endpoint("GET", "/v1/access-log", answer=AccessLogPage, needs=Access.ADMIN))
def list_accesses(call: Call, query: AccessLogQuery) -> Page[AccessEntry]:
    """List the requests of people, newest first. The entries contain no text of a memory."""
    return call.container.access_log.page(query.record(), query.limit, query.before)
