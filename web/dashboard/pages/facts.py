"""Facts that change: what holds of whom, what held at any moment, and what will."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from flask import g, url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.errors import FieldError, InvalidField
from pipeline.records import Draft, FactKey, Memory, Outcome, Scope
from pipeline.services import facts
from pipeline.services.facts import FactSetting, KeyView, Remaining, ScopedKey, fact_key
from pipeline.times import parse, utc_text
from web.api import bodies
from web.api.of_caller import scope_of_query
from web.dashboard.filters import minute, preview, words
from web.dashboard.time_axis import TimeAxis, axis_over
from web.dashboard.view import PAGE_SIZE, Moment, Paged, Search, Section, View, back, next_page, show

section = Section("facts")

SHOWN_OF_SUBJECT = 6
LATEST = 8
LANE_VALUES = 30
WAITING = 20
SLIDER_STEPS = 500
MAX_NAME_CHARS = 500
MAX_VALUE_CHARS = 2000

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]


class Reading(StrEnum):
    """What a value that was typed in is."""

    TEXT = "text"
    NUMBER = "number"
    TRUTH = "truth"


class SubjectsQuery(Paged):
    """Which subjects to list: those of which a fact holds these words."""

    q: Search = ""


class SubjectQuery(Paged):
    """Of which subject the facts are asked, and of which moment."""

    subject: Name
    as_of: Moment | None = None


class FactPageQuery(SubjectQuery):
    """Which fact is asked."""

    attribute: Name
    scope: bodies.ScopeText | None = None


class KeyForm(BaseModel):
    """Which fact is meant."""

    subject: Name
    attribute: Name
    scope: bodies.ScopeText | None = None


class ValueForm(KeyForm):
    """A value and when it begins to hold, now by default."""

    value: Annotated[str, Field(max_length=MAX_VALUE_CHARS)]
    reading: Reading = Reading.TEXT
    valid_from: Moment | None = None


class EndForm(KeyForm):
    """When a value ends, now by default."""

    valid_to: Moment | None = None


class TakeBackForm(BaseModel):
    """Which fact is taken back."""

    fact_id: str


class ReopenForm(TakeBackForm):
    """Which fact holds again, and until when; for good by default."""

    until: Moment | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A value on an axis of time: where it stands, in per cent, and what it is at present."""

    fact: Memory
    x: float
    width: float
    state: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A key of a subject, and its last values on an axis of time."""

    view: KeyView
    stretches: Sequence[Stretch]


@section.page("/facts", SubjectsQuery)
def subjects(view: View) -> str:
    """List what facts are about, by name, with what holds."""
    query: SubjectsQuery = view.query
    now = utc_text(view.now)
    page = facts.list_subjects(view.workspace, query.q, now, PAGE_SIZE, query.before, SHOWN_OF_SUBJECT)
    latest = [] if query.q or query.before else facts.list_latest(view.workspace, LATEST)
    next_url = next_page(page.next_cursor)
    return show("facts.html", view, title="Facts", subjects=page.items, latest=latest, next_url=next_url, **HOW_TO_SAY)


@section.page("/facts/of", SubjectQuery)
def subject(view: View) -> str:
    """Show what holds of a subject, or held at a moment."""
    query: SubjectQuery = view.query
    now = utc_text(view.now)
    found = facts.read_subject(
        view.workspace, query.subject, query.as_of or now, now, PAGE_SIZE, query.before, LANE_VALUES
    )
    axis = axis_over((*found.extent, now))
    return show(
        "subject.html",
        view,
        title=words(found.name),
        subject=found.name,
        lanes=[Lane(one, _stretches(axis, one.values, now)) for one in found.keys.items],
        next_url=next_page(found.keys.next_cursor),
        asked=_describe_moment(view, found.extent, found.turns),
        axis=axis,
        **HOW_TO_SAY,
    )


@section.page("/facts/one", FactPageQuery)
def fact(view: View) -> str:
    """Show all values of a fact in time, and the one that held at a moment."""
    query: FactPageQuery = view.query
    one, now = _key_of(query), utc_text(view.now)
    found = facts.read_fact(view.workspace, one, query.as_of or now, now, PAGE_SIZE, query.before, WAITING)
    axis = axis_over(_moments(found.values.items, [now] if query.before is None else []) or [now])
    return show(
        "fact.html",
        view,
        title=f"{words(one.key.attribute)} of {words(one.key.subject)}",
        key=one.key,
        scope=one.scope,
        then=found.then,
        holds=found.now,
        waiting=found.waiting,
        remarks=found.remarks,
        denied_by=found.denied_by,
        stretches=_stretches(axis, found.values.items, now),
        axis=axis,
        next_url=next_page(found.values.next_cursor),
        asked=_describe_moment(view, found.extent or (now, now), found.turns),
        **HOW_TO_SAY,
    )


@section.action("/facts/value", ValueForm)
def set_value(view: View) -> Response:
    """Give a fact a value; the value before is ended."""
    form: ValueForm = view.form
    one = _key_of(form)
    draft = Draft(content="", scope=one.scope, occurred_at=form.valid_from)
    setting = facts.set_fact(view.workspace, view.container.fact_keys, one.key, _value(form), draft)
    message = _format_setting(setting, form.valid_from)
    if setting.similar:
        others = ", ".join(f"{words(key.attribute)} of {words(key.subject)}" for key in setting.similar[:3])
        message += f" Possible duplicate of {preview(others, 120)}."
    undo = (url_for("dashboard.facts_take_back"), {"fact_id": setting.receipt.id})
    return back(view, message, to=_address(setting.key, one.scope), undo=undo if setting.is_new else None)


@section.action("/facts/end", EndForm)
def end(view: View) -> Response:
    """Say that a value holds no longer, without another."""
    form: EndForm = view.form
    one = _key_of(form)
    ended = facts.end_fact(view.workspace, view.container.fact_keys, one.key, one.scope, form.valid_to)
    assert ended.fact.valid_to is not None
    undo = {"fact_id": ended.fact.id} | ({} if ended.held_until is None else {"until": ended.held_until})
    return back(
        view,
        f"{_name(ended.fact.key or one.key)} has no value from {minute(form.valid_to or ended.fact.valid_to)} UTC.",
        undo=(url_for("dashboard.facts_reopen"), undo),
    )


@section.action("/facts/take-back", TakeBackForm)
def take_back(view: View) -> Response:
    """Undo the setting of a value."""
    taken, remaining = facts.take_back_fact(view.workspace, view.form.fact_id)
    assert taken.key is not None
    where = {
        Remaining.FACT: None,
        Remaining.SUBJECT: url_for("dashboard.facts_subject", subject=taken.key.subject),
        Remaining.NOTHING: url_for("dashboard.facts_subjects"),
    }
    return back(view, f"The value of {_name(taken.key)} was removed.", to=where[remaining])


@section.action("/facts/reopen", ReopenForm)
def reopen(view: View) -> Response:
    """Undo the end of a value."""
    opened = facts.reopen_fact(view.workspace, view.form.fact_id, view.form.until)
    assert opened.key is not None
    return back(view, f"{_name(opened.key)} has its previous value again.")


def _key_of(named: Any) -> ScopedKey:
    key = fact_key(named.subject, named.attribute)
    return ScopedKey(0, key, scope_of_query(named.scope, g.caller))


def _stretches(axis: TimeAxis, values: Sequence[Memory], now: str) -> list[Stretch]:
    return [Stretch(one, *axis.stretch(one.valid_from or now, one.valid_to), _state(one, now)) for one in values]


def _state(value: Memory, now: str) -> str:
    assert value.valid_from is not None
    if value.valid_from == value.valid_to:
        return "never"
    if value.valid_from > now:
        return "future"
    return "now" if value.valid_to is None or value.valid_to > now else "past"


def _moments(values: Sequence[Memory], more: list[str]) -> list[str]:
    return [at for value in values for at in (value.valid_from, value.valid_to) if at is not None] + more


def _describe_moment(view: View, extent: tuple[str, str], turns: tuple[str | None, str | None]) -> dict[str, Any]:
    """Return the moment that is asked about, what a slider can reach, and the changes before and after."""
    asked = parse(view.query.as_of) if view.query.as_of else view.now
    first, last = (int(parse(at).timestamp()) for at in extent)
    last = max(last, int(view.now.timestamp())) + 1
    step = -(-(last - first) // SLIDER_STEPS)
    return {
        "moment": view.query.as_of or utc_text(view.now),
        "is_now": view.query.as_of is None,
        "low": first,
        # A whole number of steps away, or the slider would end before the last value.
        "high": first + -(-(last - first) // step) * step,
        "step": step,
        "value": int(asked.timestamp()),
        "before": turns[0],
        "after": turns[1],
    }


def _value(form: ValueForm) -> str | int | float | bool:
    if form.reading is Reading.TEXT:
        return form.value
    given = form.value.strip().lower()
    if form.reading is Reading.TRUTH:
        if given not in ("true", "yes", "false", "no"):
            raise InvalidField(FieldError("value", "must be true or false"))
        return given in ("true", "yes")
    try:
        return int(given)
    except ValueError:
        return _number(given)


def _number(given: str) -> float:
    try:
        return float(given)
    except ValueError as error:
        raise InvalidField(FieldError("value", "must be a number")) from error


def _format_setting(setting: FactSetting, valid_from: str | None) -> str:
    outcome, name = setting.receipt.outcome, _name(setting.key)
    if outcome is Outcome.REJECTED:
        return f"Not stored: {setting.receipt.reason}."
    if outcome is Outcome.MERGED:
        return f"{name} already has this value."
    since = f" from {minute(valid_from)} UTC" if valid_from else ""
    review = " after review" if outcome is Outcome.CANDIDATE else ""
    return f"{name} is {preview(_format_value(setting.value), 80)}{since}{review}."


def _name(key: FactKey) -> str:
    return preview(f"{words(key.attribute)} of {words(key.subject)}", 120)


def _address(key: FactKey, scope: Scope) -> str:
    named = scope_text(scope) or None
    return url_for("dashboard.facts_fact", subject=key.subject, attribute=key.attribute, scope=named)


def scope_text(scope: Scope) -> str:
    """Return a scope as a query string names it; the workspace's is named by nothing."""
    if scope == Scope():
        return ""
    return str(scope.kind) if scope.id is None else f"{scope.kind}:{scope.id}"


def _format_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# What every template on facts says things with.
HOW_TO_SAY = {"readings": Reading, "said": _format_value, "scope_text": scope_text}
