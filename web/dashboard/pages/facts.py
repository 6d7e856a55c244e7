"""Facts that change: what holds of whom, what held at any moment, and what will."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from flask import url_for
from pydantic import BaseModel, Field
from werkzeug.wrappers import Response

from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.recall.annotations import find_annotations
from pipeline.records import Draft, FactKey, Memory, Outcome, Receipt, Scope
from pipeline.store import facts as table
from pipeline.store import memories
from pipeline.store import subjects as listing
from pipeline.store.subjects import ScopedKey, Subject
from pipeline.text.names import canonical_name
from pipeline.times import parse, utc_text
from pipeline.write.facts import end_fact, reopen_fact, set_fact, take_back_fact
from pipeline.write.keyed import fact_key
from web.api import bodies
from web.dashboard.filters import minute, preview, words
from web.dashboard.time_axis import TimeAxis, axis_over
from web.dashboard.view import PAGE_SIZE, Moment, Paged, Search, Section, View, back, cut, show

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


class FactQuery(SubjectQuery):
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
    """A value on a line of time: where it stands, in per cent, and what it is at present."""

    fact: Memory
    x: float
    width: float
    state: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A key of a subject: what it held at the moment that is asked about, what holds now, and its last values."""

    key: ScopedKey
    then: Memory | None
    now: Memory | None
    stretches: Sequence[Stretch]


@section.page("/facts", SubjectsQuery)
def subjects(view: View) -> str:
    """List what facts are about, by name, with what holds."""
    now = utc_text(view.now)
    with view.read() as db:
        found = listing.page(db, _words(view.query.q), PAGE_SIZE + 1, view.query.before)
        items, next_url = cut(found, lambda subject: subject.seq)
        holding = [_shown(listing.current(db, one.name, now, SHOWN_OF_SUBJECT + 1)) for one in items]
        latest = [] if view.query.q or view.query.before else listing.latest(db, LATEST)
    listed: list[tuple[Subject, Any]] = list(zip(items, holding, strict=True))
    return show("facts.html", view, title="Facts", subjects=listed, latest=latest, next_url=next_url, **HOW_TO_SAY)


@section.page("/facts/of", SubjectQuery)
def subject(view: View) -> str:
    """Show what holds of a subject, or held at a moment."""
    name = canonical_name(view.query.subject)
    now = utc_text(view.now)
    moment = view.query.as_of or now
    with view.read() as db:
        extent = listing.extent(db, name)
        if extent is None:
            raise NotFound("Nothing is known about this.")
        found, next_url = cut(listing.keys(db, name, PAGE_SIZE + 1, view.query.before), lambda key: key.seq)
        line = axis_over((*extent, now))
        lanes = [
            Lane(
                one,
                table.holding(db, one.key, one.scope, moment),
                table.holding(db, one.key, one.scope, now),
                _stretches(line, listing.values(db, one.key, one.scope, LANE_VALUES, None), now),
            )
            for one in found
        ]
        turns = listing.turns(db, name, moment)
    return show(
        "subject.html",
        view,
        title=words(name),
        subject=name,
        lanes=lanes,
        next_url=next_url,
        asked=_asked(view, extent, turns),
        line=line,
        **HOW_TO_SAY,
    )


@section.page("/facts/one", FactQuery)
def fact(view: View) -> str:
    """Show all values of a fact in time, and the one that held at a moment."""
    one = _key_of(view.query)
    key, scope = one.key, one.scope
    now = utc_text(view.now)
    moment = view.query.as_of or now
    with view.read() as db:
        extent = listing.extent(db, key.subject, one)
        waiting = listing.waiting(db, key, scope, WAITING)
        if extent is None and not waiting:
            raise NotFound("Nothing is known about this.")
        found = listing.values(db, key, scope, PAGE_SIZE + 1, view.query.before)
        values, next_url = cut(found, lambda value: value.seq)
        then, holds = (table.holding(db, key, scope, at) for at in (moment, now))
        remarks = find_annotations(db, values)
        denied_by = {
            identity: memory
            for remark in remarks.values()
            for identity in remark.contradicted_by
            if (memory := memories.get(db, identity)) is not None
        }
        turns = listing.turns(db, key.subject, moment, one)
    line = axis_over(_moments(values, [now] if view.query.before is None else []) or [now])
    return show(
        "fact.html",
        view,
        title=f"{words(key.attribute)} of {words(key.subject)}",
        key=key,
        scope=scope,
        then=then,
        holds=holds,
        stretches=_stretches(line, values, now),
        line=line,
        next_url=next_url,
        asked=_asked(view, extent or (now, now), turns),
        waiting=waiting,
        remarks=remarks,
        denied_by=denied_by,
        **HOW_TO_SAY,
    )


@section.action("/facts/value", ValueForm)
def set_value(view: View) -> Response:
    """Give a fact a value; the value before is ended."""
    form: ValueForm = view.form
    scope = bodies.scope_of_query(form.scope)
    asked = fact_key(form.subject, form.attribute)
    value = _value(form)
    match = view.front.fact_names(view.workspace_id, asked, scope)
    draft = Draft(content="", scope=scope, occurred_at=form.valid_from)
    receipt = set_fact(view.database, match.key, value, draft, view.workspace.write_policy())
    message = _told(match.key, value, form.valid_from, receipt)
    if match.similar:
        others = ", ".join(f"{words(key.attribute)} of {words(key.subject)}" for key in match.similar[:3])
        message += f" It may be the same as {preview(others, 120)}."
    undo = (url_for("dashboard.facts_take_back"), {"fact_id": receipt.id})
    kept = receipt.outcome in (Outcome.CREATED, Outcome.CANDIDATE)
    return back(view, message, to=_address(match.key, scope), undo=undo if kept else None)


@section.action("/facts/end", EndForm)
def end(view: View) -> Response:
    """Say that a value holds no longer, without another."""
    form: EndForm = view.form
    one = _key_of(form)
    moment = form.valid_to or utc_text(datetime.now(UTC))
    with view.read() as db:
        holder = table.holding(db, one.key, one.scope, moment)
    ended = end_fact(view.database, one.key, one.scope, moment)
    assert holder is not None
    undo = {"fact_id": ended.id} | ({} if holder.valid_to is None else {"until": holder.valid_to})
    return back(
        view,
        f"{_name(one.key)} has no value from {minute(moment)} UTC on.",
        undo=(url_for("dashboard.facts_reopen"), undo),
    )


@section.action("/facts/take-back", TakeBackForm)
def take_back(view: View) -> Response:
    """Undo the setting of a value."""
    taken = take_back_fact(view.database, view.form.fact_id)
    assert taken.key is not None
    return back(view, f"The value of {_name(taken.key)} is taken back.", to=_what_is_left(view, taken.key, taken.scope))


@section.action("/facts/reopen", ReopenForm)
def reopen(view: View) -> Response:
    """Undo the end of a value."""
    opened = reopen_fact(view.database, view.form.fact_id, view.form.until)
    assert opened.key is not None
    return back(view, f"{_name(opened.key)} has its value again.")


def _what_is_left(view: View, key: FactKey, scope: Scope) -> str | None:
    """Return the page to go to once nothing is known of a key, None as long as something is."""
    with view.read() as db:
        if listing.extent(db, key.subject, ScopedKey(0, key, scope)) or listing.waiting(db, key, scope, 1):
            return None
        if listing.extent(db, key.subject):
            return url_for("dashboard.facts_subject", subject=key.subject)
    return url_for("dashboard.facts_subjects")


def _words(text: str) -> list[str]:
    """Return a search as the words that the text of a fact is made of."""
    return canonical_name(text).replace("_", " ").split() or text.split()


def _shown(found: list[Memory]) -> tuple[list[Memory], bool]:
    return found[:SHOWN_OF_SUBJECT], len(found) > SHOWN_OF_SUBJECT


def _key_of(named: Any) -> ScopedKey:
    key = fact_key(named.subject, named.attribute)
    return ScopedKey(0, key, bodies.scope_of_query(named.scope))


def _stretches(line: TimeAxis, values: Sequence[Memory], now: str) -> list[Stretch]:
    return [Stretch(one, *line.stretch(one.valid_from or now, one.valid_to), _state(one, now)) for one in values]


def _state(value: Memory, now: str) -> str:
    assert value.valid_from is not None
    if value.valid_from == value.valid_to:
        return "never"
    if value.valid_from > now:
        return "future"
    return "now" if value.valid_to is None or value.valid_to > now else "past"


def _moments(values: Sequence[Memory], more: list[str]) -> list[str]:
    return [at for value in values for at in (value.valid_from, value.valid_to) if at is not None] + more


def _asked(view: View, extent: tuple[str, str], turns: tuple[str | None, str | None]) -> dict[str, Any]:
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


def _told(key: FactKey, value: Any, valid_from: str | None, receipt: Receipt) -> str:
    if receipt.outcome is Outcome.REJECTED:
        return f"Not kept: {receipt.reason}."
    if receipt.outcome is Outcome.MERGED:
        return f"{_name(key)} has this value already."
    since = f" from {minute(valid_from)} UTC on" if valid_from else ""
    review = " once it is reviewed" if receipt.outcome is Outcome.CANDIDATE else ""
    return f"{_name(key)} is {preview(_said(value), 80)}{since}{review}."


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


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# What every template on facts says things with.
HOW_TO_SAY = {"readings": Reading, "said": _said, "scope_text": scope_text}
