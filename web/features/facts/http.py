"""Keyed facts: current values, earlier values and their times."""

from dataclasses import replace
from typing import Annotated

from pydantic import AliasPath, Field

from pipeline.features.facts import usecases as facts
from pipeline.kernel.records import Draft, FactKey, Memory, Page, Source
from pipeline.text.names import MAX_NAME_CHARS
from pipeline.write.fact_placement import fact_key
from pipeline.write.fields import Moment, Value
from web.http import bodies
from web.http.access import list_readable, require_readable, scope_of_query, session_of
from web.http.answers import Answer, PageAnswer, StatementAnswer, is_missing
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("facts", 65)

ONE = "/v1/facts/{subject}/{attribute}"


class FactBody(bodies.Body):
    """A value and when it becomes valid (default: now); `to` names a team to store it for."""

    value: Value
    valid_from: Moment | None = None
    source: bodies.GivenSource = Source.USER
    scope: bodies.ScopeBody | None = None
    session_id: bodies.SessionId | None = None
    team: bodies.TeamName | None = Field(default=None, alias="to")


class HistoryQuery(bodies.QueryString):
    """The scope of a history."""

    scope: bodies.ScopeText | None = None


class FactQuery(HistoryQuery):
    """The time and the scope for which to read a fact."""

    as_of: Moment | None = None


class EndQuery(HistoryQuery):
    """When a value ends (default: now), and its scope."""

    valid_to: Moment | None = None


class FactsQuery(bodies.PageQuery):
    """Filters of a list of facts: a subject, and with `as_of` only the values that were valid then.

    `scope` is `<kind>` or `<kind>:<id>`; without it the scope of the workspace.
    """

    scope: bodies.ScopeText | None = None
    subject: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)] | None = None
    as_of: Moment | None = None


def _is_unset(moment: str | None) -> bool:
    return moment == ""


class KeyAnswer(Answer, of=FactKey):
    """The canonical subject and attribute of a fact."""


class FactAnswer(StatementAnswer):
    """A value and when it is valid: from `valid_from` until before `valid_to`."""

    subject: str = Field(validation_alias=AliasPath("key", "subject"))
    attribute: str = Field(validation_alias=AliasPath("key", "attribute"))
    value: str | int | float | bool = Field(validation_alias=AliasPath("details", "value"))
    valid_from: str
    valid_to: str | None
    said_by: str | None = Field(default=None, exclude_if=is_missing)


class SetAnswer(Answer, names_memory=True):
    """The result of setting a value: the fact that it replaced, and other names that may mean the same fact."""

    id: str = Field(validation_alias=AliasPath("receipt", "id"))
    subject: str = Field(validation_alias=AliasPath("key", "subject"))
    attribute: str = Field(validation_alias=AliasPath("key", "attribute"))
    value: str | int | float | bool
    outcome: str = Field(validation_alias=AliasPath("receipt", "outcome"))
    similar: list[KeyAnswer]
    # A fact that was not stored has no times.
    valid_from: str = Field(default="", validation_alias=AliasPath("fact", "valid_from"), exclude_if=_is_unset)
    valid_to: str | None = Field(default="", validation_alias=AliasPath("fact", "valid_to"), exclude_if=_is_unset)
    replaced: str | None = Field(default=None, validation_alias=AliasPath("receipt", "replaced"), exclude_if=is_missing)
    reason: str | None = Field(default=None, validation_alias=AliasPath("receipt", "reason"), exclude_if=is_missing)


class FactsAnswer(PageAnswer[FactAnswer]):
    """A page of facts."""


@api.route(Endpoint("PUT", ONE, answer=SetAnswer, problems=(422,), of_team=True))
def put_fact(call: Call, body: FactBody, subject: str, attribute: str) -> facts.FactSetting:
    """Set the value of a fact. The previous value ends and stays in the history."""
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
    """Return the current value of a fact, or its value at an earlier time."""
    scope, as_of = scope_of_query(query.scope, call.caller), query.as_of
    fact = facts.get_fact(call.workspace, call.container.fact_keys, fact_key(subject, attribute), scope, as_of)
    require_readable(fact, call.caller)
    return fact


@api.route(Endpoint("GET", f"{ONE}/history", answer=FactsAnswer, problems=(404,)))
def fact_history(call: Call, query: HistoryQuery, subject: str, attribute: str) -> Page[Memory]:
    """List all values of a fact, oldest first."""
    scope = scope_of_query(query.scope, call.caller)
    values = facts.list_history(call.workspace, call.container.fact_keys, fact_key(subject, attribute), scope)
    return Page(list_readable(values, call.caller))


@api.route(Endpoint("GET", "/v1/facts", answer=FactsAnswer, problems=(404,)))
def list_facts(call: Call, query: FactsQuery) -> Page[Memory]:
    """List facts with all their values."""
    scope, as_of = scope_of_query(query.scope, call.caller), query.as_of
    page = facts.list_facts(call.workspace, scope, query.subject, as_of, query.limit, query.before)
    return replace(page, items=list_readable(page.items, call.caller))


@api.route(Endpoint("DELETE", ONE, answer=FactAnswer, problems=(404,)))
def delete_fact(call: Call, query: EndQuery, subject: str, attribute: str) -> Memory:
    """End the value of a fact without setting a new one."""
    scope, moment = scope_of_query(query.scope, call.caller), query.valid_to
    return facts.end_fact(call.workspace, call.container.fact_keys, fact_key(subject, attribute), scope, moment).fact
