"""People who share this data directory, their tokens and roles, and the access log. For its owner and for admins."""

from datetime import timedelta
from typing import Annotated

from pydantic import AliasPath, Field, StringConstraints

from config.paths import WORKSPACE_ID
from pipeline.features.people import usecases as people
from pipeline.kernel.records import Page
from pipeline.kernel.records.people import Person, Role
from pipeline.kernel.store.people import AccessEntry, AccessQuery, Token
from pipeline.write.fields import Moment
from web.http import bodies
from web.http.access import Right
from web.http.access_log import note_workspace
from web.http.answers import Answer, PageAnswer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("people", 135)

MOST_DAYS = 3660
# The longest lifetime that the command line accepts, 99,999 weeks.
MOST_HOURS = 99_999 * 7 * 24

PersonName = Annotated[str, StringConstraints(min_length=1, max_length=people.MAX_NAME_CHARS)]
ProviderName = Annotated[str, StringConstraints(min_length=1, max_length=people.MAX_EMAIL_CHARS)]


class TokenBody(bodies.Body):
    """The purpose of a token, and in how many days and hours it expires (default: never)."""

    device: PersonName | None = None
    expires_days: Annotated[int, Field(ge=1, le=MOST_DAYS), bodies.Whole] | None = None
    expires_hours: Annotated[int, Field(ge=1, le=MOST_HOURS), bodies.Whole] | None = None

    @property
    def lifetime(self) -> timedelta | None:
        """Return how long the token is valid, None for a token that does not expire."""
        return timedelta(days=self.expires_days or 0, hours=self.expires_hours or 0) or None


class PersonBody(TokenBody):
    """A person to add; a known person gets another token. The role applies in the `workspace`.

    The `new_role` is only for a new person who is no admin.
    """

    name: PersonName
    role: Annotated[Role, Field(strict=False)] | None = None
    new_role: Annotated[Role, Field(strict=False)] | None = None
    workspace: Annotated[str, StringConstraints(pattern=f"^(?:{WORKSPACE_ID.pattern})$")] | None = None
    admin: bool = False
    email: ProviderName | None = None
    subject: ProviderName | None = None


class RoleBody(bodies.Body):
    """The role of a person in a workspace."""

    role: Annotated[Role, Field(strict=False)]


class TokenQuery(bodies.Body):
    """Tokens to revoke: that of a device, that with an id, or all."""

    device: PersonName | None = None
    token: Annotated[str, StringConstraints(max_length=people.MAX_ID_CHARS)] | None = None


class TokenAnswer(Answer, of=Token, without=("person",)):
    """Information about a token, without the token; the time of its last use is rounded to the hour."""


class TokensAnswer(PageAnswer[TokenAnswer]):
    """Tokens of a person."""


class PersonAnswer(Answer, of=people.PersonRecord, flat="person", without=("is_admin",)):
    """A person with their roles and tokens."""

    admin: bool = Field(validation_alias=AliasPath("person", "is_admin"))


class PeopleAnswer(PageAnswer[PersonAnswer]):
    """All people."""


class NewTokenAnswer(Answer):
    """A new token, and the role that its person got with it. Only this answer contains the token."""

    person: str = Field(validation_alias=AliasPath("person", "id"))
    name: str = Field(validation_alias=AliasPath("person", "name"))
    admin: bool = Field(validation_alias=AliasPath("person", "is_admin"))
    grants: dict[str, Role]
    token_id: str = Field(validation_alias=AliasPath("token", "id"))
    device: str = Field(validation_alias=AliasPath("token", "device"))
    created_at: str = Field(validation_alias=AliasPath("token", "created_at"))
    expires_at: str | None = Field(validation_alias=AliasPath("token", "expires_at"))
    token: str = Field(validation_alias="secret")


class RevokedAnswer(Answer):
    """The ids of the revoked tokens."""

    revoked: list[str]


class CallerAnswer(Answer):
    """The caller (null for the owner of the data directory), and their granted roles by workspace."""

    id: str | None
    name: str | None
    admin: bool
    grants: dict[str, Role]


@api.route(Endpoint("GET", "/v1/people", answer=PeopleAnswer, needs=Right.ADMIN))
def list_people(call: Call) -> Page[people.PersonRecord]:
    """List all people with their roles and tokens."""
    return Page(people.list_people(call.container.people))


@api.route(Endpoint("GET", "/v1/people/me", answer=CallerAnswer, needs=Right.ANYBODY))
def tell_caller(call: Call) -> CallerAnswer:
    """Return the person whose token the request has."""
    who = call.caller.person
    name = None if who is None else who.name
    return CallerAnswer(id=call.caller.person_id, name=name, admin=call.caller.is_admin, grants=dict(call.caller.roles))


@api.route(
    Endpoint(
        "POST",
        "/v1/people",
        answer=NewTokenAnswer,
        status=201,
        needs=Right.ADMIN,
        keeps_memories=True,
        problems=(409, 422),
    )
)
def add_person(call: Call, body: PersonBody) -> people.NewToken:
    """Add a person, or create another token for a known person. Only this answer contains the token."""
    settings = call.container.settings
    return people.admit(
        call.container.people,
        body.name,
        workspace=body.workspace or settings.workspace,
        role=body.role or (Role.WRITER if body.workspace and not body.new_role else None),
        new_role=body.new_role,
        is_admin=body.admin,
        email=body.email,
        issuer=settings.oidc_issuer,
        subject=body.subject,
        device=body.device,
        lifetime=body.lifetime,
    )


@api.route(
    Endpoint(
        "POST",
        "/v1/people/{person_id}/tokens",
        answer=NewTokenAnswer,
        status=201,
        needs=Right.ADMIN,
        keeps_memories=True,
        problems=(404, 409, 422),
    )
)
def add_token(call: Call, body: TokenBody, person_id: str) -> people.NewToken:
    """Create a token for another device of a person. Only this answer contains the token."""
    store = call.container.people
    return people.add_token(store, people.get_person(store, person_id), body.device, body.lifetime)


@api.route(
    Endpoint(
        "DELETE",
        "/v1/people/{person_id}/tokens",
        answer=TokensAnswer,
        needs=Right.ADMIN,
        keeps_memories=True,
        problems=(404,),
    )
)
def revoke_tokens(call: Call, query: TokenQuery, person_id: str) -> Page[Token]:
    """Revoke all tokens of a person, or that of a device. The next request with one is rejected."""
    store = call.container.people
    return Page(people.revoke(store, people.get_person(store, person_id), query.device, query.token))


@api.route(
    Endpoint(
        "DELETE",
        "/v1/people/{person_id}/tokens/{token_id}",
        answer=RevokedAnswer,
        needs=Right.ADMIN,
        keeps_memories=True,
        problems=(404,),
    )
)
def revoke_token(call: Call, person_id: str, token_id: str) -> RevokedAnswer:
    """Revoke a token. The next request with it is rejected."""
    store = call.container.people
    revoked = people.revoke(store, people.get_person(store, person_id), token_id=token_id)
    return RevokedAnswer(revoked=[token.id for token in revoked])


@api.route(
    Endpoint(
        "DELETE",
        "/v1/people/{person_id}",
        answer=CallerAnswer,
        needs=Right.ADMIN,
        keeps_memories=True,
        problems=(404,),
    )
)
def remove_person(call: Call, person_id: str) -> CallerAnswer:
    """Remove a person with all tokens and roles. Their memories stay; their personal memories stay inaccessible."""
    store = call.container.people
    person = people.get_person(store, person_id)
    people.remove_person(store, person)
    return CallerAnswer(id=person.id, name=person.name, admin=False, grants={})


@api.route(
    Endpoint(
        "PUT",
        "/v1/people/{person_id}/grants/{workspace}",
        answer=PersonAnswer,
        needs=Right.ADMIN,
        keeps_memories=True,
        problems=(404, 422),
    )
)
def grant_role(call: Call, body: RoleBody, person_id: str, workspace: str) -> people.PersonRecord:
    """Set the role of a person in a workspace."""
    store = call.container.people
    person = people.get_person(store, person_id)
    note_workspace(workspace, acts=True)
    people.grant(store, person, workspace, body.role)
    return _read_person(call, person)


@api.route(
    Endpoint(
        "DELETE",
        "/v1/people/{person_id}/grants/{workspace}",
        answer=PersonAnswer,
        needs=Right.ADMIN,
        keeps_memories=True,
        problems=(404,),
    )
)
def take_role(call: Call, person_id: str, workspace: str) -> people.PersonRecord:
    """Remove the role of a person in a workspace."""
    store = call.container.people
    person = people.get_person(store, person_id)
    note_workspace(workspace, acts=True)
    people.ungrant(store, person, workspace)
    return _read_person(call, person)


def _read_person(call: Call, person: Person) -> people.PersonRecord:
    return next(listed for listed in people.list_people(call.container.people) if listed.person.id == person.id)


access_log_api = Api("access_log", 135)


class AccessLogQuery(bodies.PageQuery):
    """Filters of the access log: person, workspace and time."""

    person: Annotated[str, StringConstraints(min_length=1, max_length=people.MAX_NAME_CHARS)] | None = None
    workspace: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    since: Moment | None = None

    def record(self) -> AccessQuery:
        """Return the filters as a record."""
        return AccessQuery(self.person, self.workspace, self.since)


class AccessEntryAnswer(Answer, of=AccessEntry, without=("seq",)):
    """One request of a person; `memories` counts the memories that it returned or wrote; the list has the first ids."""

    memory_ids: list[str] = Field(default_factory=list)


class AccessLogPage(PageAnswer[AccessEntryAnswer]):
    """A page of the access log."""


@access_log_api.route(Endpoint("GET", "/v1/access-log", answer=AccessLogPage, needs=Right.ADMIN))
def list_accesses(call: Call, query: AccessLogQuery) -> Page[AccessEntry]:
    """List the requests of people, newest first. The entries contain no text of a memory."""
    return call.container.access_log.page(query.record(), query.limit, query.before)
