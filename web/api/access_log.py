"""The access log: who read and wrote what; for the home's owner and for admins."""

from typing import Annotated

from pydantic import Field, StringConstraints

from pipeline.records import Page
from pipeline.services.people import MAX_NAME_CHARS
from pipeline.store.access_log import AccessEntry, AccessQuery
from pipeline.write.fields import Moment
from web.access import Access
from web.api import bodies
from web.api.answers import Answer, PageAnswer
from web.endpoint import Api, Call, Endpoint

api = Api("access_log")


class AccessLogQuery(bodies.PageQuery):
    """Whose requests, to which workspace, since when."""

    person: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)] | None = None
    workspace: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    since: Moment | None = None

    def record(self) -> AccessQuery:
        """Return the record of what is sought."""
        return AccessQuery(self.person, self.workspace, self.since)


class AccessEntryAnswer(Answer):
    """One request of a person; `memories` counts what it told or wrote, of which the first have their ids here."""

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
    """List what people asked, the latest first; without a word of any memory."""
    return call.container.access_log.page(query.record(), query.limit, query.before)
