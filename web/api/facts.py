"""Keyed facts: what holds, what held, and since when."""

from typing import Annotated, ClassVar

from pydantic import AliasPath, Field

from pipeline.records import Draft, Memory, Page, Source, Trust
from pipeline.services import facts
from pipeline.services.facts import FactSetting
from pipeline.text.names import MAX_NAME_CHARS
from pipeline.write.fields import Moment, Value
from pipeline.write.keyed import fact_key
from web.api import bodies
from web.api.answers import Answer, PageAnswer, ScopeAnswer, is_missing
from web.api.of_caller import scope_of_query, session_of
from web.endpoint import Api, Call, Endpoint

api = Api("facts")

ONE = "/v1/facts/{subject}/{attribute}"


class FactBody(bodies.Body):
    """A value and when it begins to hold, now by default; without `to` in this machine's own memory."""

    value: Value
    valid_from: Moment | None = None
    source: bodies.GivenSource = Source.USER
    scope: bodies.ScopeBody | None = None
    session_id: bodies.SessionId | None = None
    team: bodies.TeamName | None = Field(default=None, alias="to")


class FactQuery(bodies.QueryString):
    """Of which moment and scope a fact is asked."""

    as_of: Moment | None = None
    scope: bodies.ScopeText | None = None


class EndQuery(bodies.QueryString):
    """When a value ends, now by default, and in which scope."""

    valid_to: Moment | None = None
    scope: bodies.ScopeText | None = None


class HistoryQuery(bodies.QueryString):
    """In which scope a history is asked."""

    scope: bodies.ScopeText | None = None


class FactsQuery(bodies.ScopeQuery):
    """Which facts to list: of a subject, and with `as_of` only what held then."""

    subject: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)] | None = None
    as_of: Moment | None = None


def _is_unset(moment: str | None) -> bool:
    return moment == ""


class KeyAnswer(Answer):
    """A subject and an attribute, canonical."""

    subject: str
    attribute: str


class FactAnswer(Answer):
    """A value and the time in which it holds: from `valid_from` to before `valid_to`."""

    names_memory: ClassVar[bool] = True

    id: str
    subject: str = Field(validation_alias=AliasPath("key", "subject"))
    attribute: str = Field(validation_alias=AliasPath("key", "attribute"))
    value: str | int | float | bool = Field(validation_alias=AliasPath("details", "value"))
    valid_from: str
    valid_to: str | None
    source: Source
    trust: Trust
    instructs: bool
    scope: ScopeAnswer
    author: str | None = Field(default=None, exclude_if=is_missing)


class SetAnswer(Answer):
    """What became of a value: the fact that it ended, and other names that may mean the same."""

    names_memory: ClassVar[bool] = True

    id: str = Field(validation_alias=AliasPath("receipt", "id"))
    subject: str = Field(validation_alias=AliasPath("key", "subject"))
    attribute: str = Field(validation_alias=AliasPath("key", "attribute"))
    value: str | int | float | bool
    outcome: str = Field(validation_alias=AliasPath("receipt", "outcome"))
    similar: list[KeyAnswer]
    # Where no fact was stored there is no time in which it holds.
    valid_from: str = Field(default="", validation_alias=AliasPath("fact", "valid_from"), exclude_if=_is_unset)
    valid_to: str | None = Field(default="", validation_alias=AliasPath("fact", "valid_to"), exclude_if=_is_unset)
    replaced: str | None = Field(default=None, validation_alias=AliasPath("receipt", "replaced"), exclude_if=is_missing)
    reason: str | None = Field(default=None, validation_alias=AliasPath("receipt", "reason"), exclude_if=is_missing)


class FactsAnswer(PageAnswer[FactAnswer]):
    """A page of facts."""


@api.route(Endpoint("PUT", ONE, answer=SetAnswer, problems=(422,), of_team=True))
def put_fact(call: Call, body: FactBody, subject: str, attribute: str) -> FactSetting:
    """Give a fact a value; the value before is ended, never overwritten."""
    draft = Draft(
        content="",
        scope=None if body.scope is None else body.scope.record(call.caller, body.session_id),
        source=body.source,
        session_id=session_of(body.session_id, call.caller),
        occurred_at=body.valid_from,
    )
    return facts.set_fact(call.workspace, call.container.fact_keys, fact_key(subject, attribute), body.value, draft)


@api.route(Endpoint("GET", ONE, answer=FactAnswer, problems=(404,)))
def get_fact(call: Call, query: FactQuery, subject: str, attribute: str) -> Memory:
    """The value that holds now, or held then."""
    scope, as_of = scope_of_query(query.scope, call.caller), query.as_of
    return facts.get_fact(call.workspace, call.container.fact_keys, fact_key(subject, attribute), scope, as_of)


@api.route(Endpoint("GET", f"{ONE}/history", answer=FactsAnswer, problems=(404,)))
def fact_history(call: Call, query: HistoryQuery, subject: str, attribute: str) -> Page[Memory]:
    """All values that a fact had, the first first."""
    scope = scope_of_query(query.scope, call.caller)
    return Page(facts.list_history(call.workspace, call.container.fact_keys, fact_key(subject, attribute), scope))


@api.route(Endpoint("GET", "/v1/facts", answer=FactsAnswer, problems=(404,)))
def list_facts(call: Call, query: FactsQuery) -> Page[Memory]:
    """List facts with all their values."""
    as_of = query.as_of
    return facts.list_facts(call.workspace, query.record(call.caller), query.subject, as_of, query.limit, query.before)


@api.route(Endpoint("DELETE", ONE, answer=FactAnswer, problems=(404,)))
def delete_fact(call: Call, query: EndQuery, subject: str, attribute: str) -> Memory:
    """End a fact's value without giving it another."""
    scope, moment = scope_of_query(query.scope, call.caller), query.valid_to
    return facts.end_fact(call.workspace, call.container.fact_keys, fact_key(subject, attribute), scope, moment).fact
