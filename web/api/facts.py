"""Keyed facts: what holds, what held, and since when."""

from typing import Annotated, Any

from pydantic import Field

from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.records import Draft, FactKey, Memory, Scope, Source, Trust
from pipeline.store import facts as table
from pipeline.times import utc_now
from pipeline.write.facts import end_fact, set_fact
from pipeline.write.fields import Value, resolve_scope
from pipeline.write.keyed import fact_key
from pipeline.write.prepare import prepare_fact
from web.api import bodies
from web.api.answers import Answer, ScopeAnswer
from web.api.render import page_json
from web.endpoint import Api, Call, Endpoint

api = Api("facts")

ONE = "/v1/facts/{subject}/{attribute}"


class FactBody(bodies.Body):
    """A value and when it begins to hold, now by default."""

    value: Value
    valid_from: bodies.Moment | None = None
    source: Annotated[Source, Field(strict=False)] = Source.USER
    scope: bodies.ScopeBody | None = None
    session_id: bodies.SessionId | None = None


class FactQuery(bodies.QueryString):
    """Of which moment and scope a fact is asked."""

    as_of: bodies.Moment | None = None
    scope: bodies.ScopeText | None = None


class EndQuery(bodies.QueryString):
    """When a value ends, now by default, and in which scope."""

    valid_to: bodies.Moment | None = None
    scope: bodies.ScopeText | None = None


class HistoryQuery(bodies.QueryString):
    """In which scope a history is asked."""

    scope: bodies.ScopeText | None = None


class FactsQuery(bodies.ScopeQuery):
    """Which facts to list: of a subject, and with `as_of` only what held then."""

    subject: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    as_of: bodies.Moment | None = None


class KeyAnswer(Answer):
    """A subject and an attribute, canonical."""

    subject: str
    attribute: str


class FactAnswer(KeyAnswer):
    """A value and the time in which it holds: from `valid_from` to before `valid_to`."""

    id: str
    value: str | int | float | bool
    valid_from: str
    valid_to: str | None
    source: Source
    trust: Trust
    scope: ScopeAnswer


class SetAnswer(KeyAnswer):
    """What became of a value: the fact that it ended, and other names that may mean the same."""

    id: str
    value: str | int | float | bool
    outcome: str
    valid_from: str | None = None
    valid_to: str | None = None
    replaced: str | None = None
    reason: str | None = None
    similar: list[KeyAnswer]


class FactsAnswer(Answer):
    """A page of facts."""

    items: list[FactAnswer]
    next_cursor: str | None


@api.route(
    Endpoint(
        "PUT",
        ONE,
        "Give a fact a value; the value before is ended, never overwritten",
        body=FactBody,
        answer=SetAnswer,
        problems=(422, 503),
    )
)
def put_fact(call: Call, subject: str, attribute: str) -> dict[str, Any]:
    """Set a value."""
    body: FactBody = call.body
    asked = fact_key(subject, attribute)
    draft = Draft(
        content="",
        scope=None if body.scope is None else body.scope.record(),
        source=body.source,
        session_id=body.session_id,
        occurred_at=bodies.as_text(body.valid_from),
    )
    scope = resolve_scope(draft.scope, draft.session_id, "scope.id")
    _check(asked, body.value, draft)
    database = call.front.databases.get(call.workspace_id, create=True)
    match = call.front.fact_names(call.workspace_id, asked, scope)
    receipt = set_fact(database, match.key, body.value, draft, call.workspace.write_policy())
    with database.read() as db:
        stored = table.by_id(db, receipt.id)
    answer: dict[str, Any] = {
        "id": receipt.id,
        "subject": match.key.subject,
        "attribute": match.key.attribute,
        "value": body.value if stored is None else stored.details["value"],
        "outcome": receipt.outcome,
        "similar": [_key_json(key) for key in match.similar],
    }
    if stored is not None:
        answer |= {"valid_from": stored.valid_from, "valid_to": stored.valid_to}
    return answer | {name: told for name in ("replaced", "reason") if (told := getattr(receipt, name)) is not None}


@api.route(
    Endpoint("GET", ONE, "The value that holds now, or held then", query=FactQuery, answer=FactAnswer, problems=(404,))
)
def get_fact(call: Call, subject: str, attribute: str) -> dict[str, Any]:
    """Read a value."""
    scope = bodies.scope_of_query(call.query.scope)
    key = _known(call, subject, attribute, scope)
    with call.front.databases.get(call.workspace_id).read() as db:
        found = table.holding(db, key, scope, bodies.as_text(call.query.as_of) or utc_now())
    if found is None:
        raise NotFound("no value holds")
    return fact_json(found)


@api.route(
    Endpoint(
        "GET",
        f"{ONE}/history",
        "All values that a fact had, the first first",
        query=HistoryQuery,
        answer=FactsAnswer,
        problems=(404,),
    )
)
def fact_history(call: Call, subject: str, attribute: str) -> dict[str, Any]:
    """List a fact's values."""
    scope = bodies.scope_of_query(call.query.scope)
    key = _known(call, subject, attribute, scope)
    with call.front.databases.get(call.workspace_id).read() as db:
        found = table.history(db, key, scope)
    if not found:
        raise NotFound("no such fact")
    return {"items": [fact_json(fact) for fact in found], "next_cursor": None}


@api.route(
    Endpoint(
        "GET", "/v1/facts", "List facts with all their values", query=FactsQuery, answer=FactsAnswer, problems=(404,)
    )
)
def list_facts(call: Call) -> dict[str, Any]:
    """List a page of facts."""
    query: FactsQuery = call.query
    subject = None if query.subject is None else fact_key(query.subject, "x").subject
    with call.front.databases.get(call.workspace_id).read() as db:
        found = table.page(db, query.record(), subject, bodies.as_text(query.as_of), query.limit + 1, query.before)
    return dict(page_json(found, query.limit, lambda fact: fact.seq, fact_json))


@api.route(
    Endpoint(
        "DELETE",
        ONE,
        "End a fact's value without giving it another",
        query=EndQuery,
        answer=FactAnswer,
        problems=(404, 503),
    )
)
def delete_fact(call: Call, subject: str, attribute: str) -> dict[str, Any]:
    """End a value."""
    scope = bodies.scope_of_query(call.query.scope)
    key = _known(call, subject, attribute, scope)
    database = call.front.databases.get(call.workspace_id)
    return fact_json(end_fact(database, key, scope, bodies.as_text(call.query.valid_to)))


def fact_json(fact: Memory) -> dict[str, Any]:
    """Render a keyed fact."""
    assert fact.key is not None
    return {
        "id": fact.id,
        **_key_json(fact.key),
        "value": fact.details["value"],
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to,
        "source": fact.source,
        "trust": fact.trust,
        "scope": {"kind": fact.scope.kind, "id": fact.scope.id},
    }


def _check(key: FactKey, value: Any, draft: Draft) -> None:
    """Raise InvalidField for a value that cannot be taken: such a one must not make a workspace."""
    try:
        prepare_fact(key, value, draft)
    except InvalidField as error:
        # A memory has its typed fields in `details`, this request has them at its top.
        told = (FieldError(one.loc.removeprefix("details."), one.msg) for one in error.errors)
        raise InvalidField(*told) from error


def _key_json(key: FactKey) -> dict[str, Any]:
    return {"subject": key.subject, "attribute": key.attribute}


def _known(call: Call, subject: str, attribute: str, scope: Scope) -> FactKey:
    """Return the key that is meant; raise NotFound, naming what else may be, for one that nobody knows."""
    call.front.databases.get(call.workspace_id)
    match = call.front.fact_names(call.workspace_id, fact_key(subject, attribute), scope)
    if match.similar:
        others = ", ".join(f"{key.subject}/{key.attribute}" for key in match.similar)
        raise NotFound(f"no such fact; did you mean {others}?")
    return match.key
