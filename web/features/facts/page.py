"""Facts that change over time: current, past and future values by subject."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from flask import g, url_for
from pydantic import Field
from werkzeug.wrappers import Response

from pipeline.features.facts import usecases as facts
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import Draft, FactKey, Memory, Outcome, Scope
from pipeline.kernel.store.facts import ScopedKey
from pipeline.kernel.times import parse, utc_text
from pipeline.write.fact_placement import fact_key
from web.dashboard.filters import minute, preview, words
from web.dashboard.time_axis import TimeAxis, axis_over
from web.dashboard.view import PAGE_SIZE, Link, Moment, Paged, Search, Section, View, back, next_page, show
from web.http import bodies
from web.http.access import scope_of_query

section = Section("facts", link=Link("Facts", "facts_subjects", "Knowledge", 46))

SHOWN_OF_SUBJECT = 6
LATEST = 8
LANE_VALUES = 30
WAITING = 20
SLIDER_STEPS = 500
MAX_NAME_CHARS = 500
MAX_VALUE_CHARS = 2000

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]


class Reading(StrEnum):
    """Type of a submitted value."""

    TEXT = "text"
    NUMBER = "number"
    TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A value on a time axis: position and width in percent, and its state now."""

    fact: Memory
    x: float
    width: float
    state: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A key of a subject with its latest values on a time axis."""

    view: facts.KeyView
    stretches: Sequence[Stretch]


@section.page("/facts", Paged)
def subjects(view: View, *, q: Search = "") -> str:
    """List subjects by name with their current values, or those with facts that contain some words."""
    now, before = utc_text(view.now), view.query.before
    page = facts.list_subjects(view.workspace, q, now, PAGE_SIZE, before, SHOWN_OF_SUBJECT)
    latest = [] if q or before else facts.list_latest(view.workspace, now, LATEST)
    next_url = next_page(page.next_cursor)
    return show(
        "facts.html", view, title="Facts", subjects=page.items, latest=latest, next_url=next_url, **FACT_HELPERS
    )


@section.page("/facts/of", Paged)
def subject(view: View, *, subject: Name, as_of: Moment | None = None) -> str:
    """Show the values of a subject, now or at a given time."""
    now = utc_text(view.now)
    subject_facts = facts.read_subject(
        view.workspace, subject, as_of or now, now, PAGE_SIZE, view.query.before, LANE_VALUES
    )
    axis = axis_over((*subject_facts.extent, now))
    return show(
        "subject.html",
        view,
        title=words(subject_facts.name),
        subject=subject_facts.name,
        lanes=[Lane(key, _stretches(axis, key.values, now)) for key in subject_facts.keys.items],
        next_url=next_page(subject_facts.keys.next_cursor),
        asked=_describe_moment(view, subject_facts.extent, subject_facts.turns),
        axis=axis,
        **FACT_HELPERS,
    )


@section.page("/facts/one", Paged)
def fact(
    view: View, *, subject: Name, attribute: Name, as_of: Moment | None = None, scope: bodies.ScopeText | None = None
) -> str:
    """Show all values of a fact over time, and the value at a given time."""
    scoped, now, before = _find_key(subject, attribute, scope), utc_text(view.now), view.query.before
    values = facts.read_fact(view.workspace, scoped, as_of or now, now, PAGE_SIZE, before, WAITING)
    axis = axis_over(_moments(values.values.items, [now] if before is None else []) or [now])
    return show(
        "fact.html",
        view,
        title=f"{words(scoped.key.attribute)} of {words(scoped.key.subject)}",
        key=scoped.key,
        scope=scoped.scope,
        then=values.then,
        holds=values.now,
        waiting=values.waiting,
        remarks=values.remarks,
        denied_by=values.denied_by,
        stretches=_stretches(axis, values.values.items, now),
        axis=axis,
        next_url=next_page(values.values.next_cursor),
        asked=_describe_moment(view, values.extent or (now, now), values.turns),
        **FACT_HELPERS,
    )


@section.action("/facts/value")
def set_value(
    view: View,
    *,
    subject: Name,
    attribute: Name,
    scope: bodies.ScopeText | None = None,
    value: Annotated[str, Field(max_length=MAX_VALUE_CHARS)],
    reading: Reading = Reading.TEXT,
    valid_from: Moment | None = None,
) -> Response:
    """Set a new value of a fact, valid from now or a given time, and end the previous value."""
    scoped = _find_key(subject, attribute, scope)
    draft = Draft(content="", scope=scoped.scope, occurred_at=valid_from)
    setting = facts.set_fact(view.workspace, view.container.fact_keys, scoped.key, _parse(value, reading), draft)
    message = _format_setting(setting, valid_from)
    if setting.similar:
        others = ", ".join(f"{words(key.attribute)} of {words(key.subject)}" for key in setting.similar[:3])
        message += f" Possible duplicate of {preview(others, 120)}."
    undo = (url_for("dashboard.facts_take_back"), {"fact_id": setting.receipt.id})
    return back(view, message, to=_address(setting.key, scoped.scope), undo=undo if setting.is_new else None)


@section.action("/facts/end")
def end(
    view: View,
    *,
    subject: Name,
    attribute: Name,
    scope: bodies.ScopeText | None = None,
    valid_to: Moment | None = None,
) -> Response:
    """End the current value of a fact, now or at a given time, without a new value."""
    scoped = _find_key(subject, attribute, scope)
    ended = facts.end_fact(view.workspace, view.container.fact_keys, scoped.key, scoped.scope, valid_to)
    assert ended.fact.valid_to is not None
    undo = {"fact_id": ended.fact.id} | ({} if ended.previous_end is None else {"until": ended.previous_end})
    return back(
        view,
        f"{_name(ended.fact.key or scoped.key)} has no value from {minute(valid_to or ended.fact.valid_to)} UTC.",
        undo=(url_for("dashboard.facts_reopen"), undo),
    )


@section.action("/facts/take-back")
def take_back(view: View, *, fact_id: str) -> Response:
    """Undo the setting of a value."""
    taken, remaining = facts.take_back_fact(view.workspace, fact_id)
    assert taken.key is not None
    where = {
        facts.Remaining.FACT: None,
        facts.Remaining.SUBJECT: url_for("dashboard.facts_subject", subject=taken.key.subject),
        facts.Remaining.NOTHING: url_for("dashboard.facts_subjects"),
    }
    return back(view, f"The value of {_name(taken.key)} was removed.", to=where[remaining])


@section.action("/facts/reopen")
def reopen(view: View, *, fact_id: str, until: Moment | None = None) -> Response:
    """Undo the end of a value; it gets its earlier end, if it had one."""
    opened = facts.reopen_fact(view.workspace, fact_id, until)
    assert opened.key is not None
    return back(view, f"{_name(opened.key)} has its previous value again.")


def _find_key(subject: str, attribute: str, scope: str | None) -> ScopedKey:
    return ScopedKey(0, fact_key(subject, attribute), scope_of_query(scope, g.caller))


def _stretches(axis: TimeAxis, values: Sequence[Memory], now: str) -> list[Stretch]:
    return [
        Stretch(value, *axis.stretch(value.valid_from or now, value.valid_to), _state(value, now)) for value in values
    ]


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
    """Return the requested time, the range of the slider, and the changes before and after."""
    asked = parse(view.query.as_of) if view.query.as_of else view.now
    first, last = (int(parse(at).timestamp()) for at in extent)
    last = max(last, int(view.now.timestamp())) + 1
    step = -(-(last - first) // SLIDER_STEPS)
    return {
        "moment": view.query.as_of or utc_text(view.now),
        "is_now": view.query.as_of is None,
        "low": first,
        # Round up to full steps; otherwise the slider ends before the last value.
        "high": first + -(-(last - first) // step) * step,
        "step": step,
        "value": int(asked.timestamp()),
        "before": turns[0],
        "after": turns[1],
    }


def _parse(value: str, reading: Reading) -> str | int | float | bool:
    if reading is Reading.TEXT:
        return value
    typed = value.strip().lower()
    if reading is Reading.TRUTH:
        if typed not in ("true", "yes", "false", "no"):
            raise InvalidField(FieldError("value", "must be true or false"))
        return typed in ("true", "yes")
    try:
        return int(typed)
    except ValueError:
        return _number(typed)


def _number(typed: str) -> float:
    try:
        return float(typed)
    except ValueError as error:
        raise InvalidField(FieldError("value", "must be a number")) from error


def _format_setting(setting: facts.FactSetting, valid_from: str | None) -> str:
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
    """Return a scope as query text, "" for the workspace scope."""
    if scope == Scope():
        return ""
    return str(scope.kind) if scope.id is None else f"{scope.kind}:{scope.id}"


def _format_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# Values that all templates about facts need.
FACT_HELPERS = {"readings": Reading, "value_text": _format_value, "scope_text": scope_text}
