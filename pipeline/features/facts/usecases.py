"""Keyed facts: current values, earlier values, and their times."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from pipeline.index.encoder import Encoder
from pipeline.kernel.errors import EncoderUnavailable, FieldError, InvalidField, NotFound
from pipeline.kernel.records import Draft, FactKey, Memory, Outcome, Page, Receipt, Scope, page_of
from pipeline.kernel.records.recall import Annotations
from pipeline.kernel.store import facts, memories
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace, find_home
from pipeline.recall.annotations import find_annotations
from pipeline.recall.fact_names import FactNames, KeyMatch
from pipeline.text.names import canonical_name
from pipeline.text.personal_facts import USER
from pipeline.text.quoting import quote
from pipeline.write import facts as writing
from pipeline.write.fact_placement import fact_key
from pipeline.write.fields import resolve_scope
from pipeline.write.prepare import prepare_fact


class FactKeyResolver:
    """Find the known key that a name means; without an encoder, compare only the spelling."""

    def __init__(self, encoder: Callable[[], Encoder]) -> None:
        self._encoder = encoder
        self._names = FactNames()

    def match(self, workspace: Workspace, asked: FactKey, scope: Scope) -> KeyMatch:
        """Return the known key that a name means and similar keys; raise NotFound if there is no workspace."""
        with workspace.database.read() as db:
            known = facts.keys(db, scope)
        try:
            encoder = self._encoder()
        except EncoderUnavailable:
            encoder = None
        return self._names.match(asked, known, encoder)

    def require_key(self, workspace: Workspace, asked: FactKey, scope: Scope) -> FactKey:
        """Return the meant key; raise NotFound with similar keys for an unknown one."""
        match = self.match(workspace, asked, scope)
        if match.similar:
            # Any client may have chosen these names, and an agent may read this sentence.
            others = ", ".join(quote(f"{key.subject}/{key.attribute}") for key in match.similar)
            raise NotFound(f"no such fact; did you mean {others}?")
        return match.key


@dataclass(frozen=True, slots=True)
class FactSetting:
    """Result of setting a value: the key, the fact if it was stored, and keys that may be the same."""

    key: FactKey
    value: Any
    receipt: Receipt
    fact: Memory | None
    similar: tuple[FactKey, ...]

    @property
    def is_new(self) -> bool:
        """Return whether a new fact was stored, which can be undone."""
        return self.receipt.outcome in (Outcome.CREATED, Outcome.CANDIDATE)


@dataclass(frozen=True, slots=True)
class SubjectSummary:
    """A subject, its first current facts, and whether it has more."""

    name: str
    holding: Sequence[Memory]
    has_more: bool


@dataclass(frozen=True, slots=True)
class KeyView:
    """A key of a subject: its value at the requested time, its current value, and its last values."""

    key: facts.ScopedKey
    then: Memory | None
    now: Memory | None
    values: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class SubjectView:
    """A subject: the times of its first and last change, and its changes before and after a time."""

    name: str
    extent: tuple[str, str]
    turns: tuple[str | None, str | None]
    keys: Page[KeyView]


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact with its values, its candidates for review, and the memories that contradict values."""

    then: Memory | None
    now: Memory | None
    values: Page[Memory]
    waiting: Sequence[Memory]
    extent: tuple[str, str] | None
    turns: tuple[str | None, str | None]
    remarks: Mapping[int, Annotations]
    denied_by: Mapping[str, Memory]


class Remaining(StrEnum):
    """What is left after a value was undone: other values, other facts of its subject, or nothing."""

    FACT = "fact"
    SUBJECT = "subject"
    NOTHING = "nothing"


def set_fact(workspace: Workspace, resolver: FactKeyResolver, asked: FactKey, value: Any, draft: Draft) -> FactSetting:
    """Set the value of a key from the draft's time on; end the previous value, but keep it."""
    scope = resolve_scope(draft.scope, draft.session_id, "scope.id")
    _check(asked, value, draft)
    store, scope = _locate(workspace, asked, scope)
    sessions = [] if draft.session_id is None else [draft.session_id]
    policy = workspace.write_policy() if store is workspace else workspace.personal_write_policy(sessions)
    # Create the store only for a valid value.
    database, draft = store.create(), replace(draft, scope=scope)
    match = resolver.match(store, asked, scope)
    receipt = writing.set_fact(database, match.key, value, draft, policy)
    with database.read() as db:
        stored = facts.by_id(db, receipt.id)
    kept_value = value if stored is None else stored.details["value"]
    return FactSetting(match.key, kept_value, receipt, stored, match.similar)


def get_fact(
    workspace: Workspace, resolver: FactKeyResolver, asked: FactKey, scope: Scope, as_of: str | None
) -> Memory:
    """Return the current value, or the value at a time; raise NotFound if there is none."""
    store, scope = _locate_existing(workspace, asked, scope)
    key = resolver.require_key(store, asked, scope)
    with store.database.read() as db:
        fact = facts.find_valid(db, key, scope, as_of or utc_now())
    if fact is None:
        raise NotFound("The fact has no current value.")
    return fact


def list_history(workspace: Workspace, resolver: FactKeyResolver, asked: FactKey, scope: Scope) -> list[Memory]:
    """List all values of a fact, oldest first; raise NotFound for an unknown fact."""
    store, scope = _locate_existing(workspace, asked, scope)
    key = resolver.require_key(store, asked, scope)
    with store.database.read() as db:
        values = facts.history(db, key, scope)
    if not values:
        raise NotFound("no such fact")
    return values


def list_facts(
    workspace: Workspace, scope: Scope, subject: str | None, as_of: str | None, limit: int, before: int | None
) -> Page[Memory]:
    """List facts newest first, of one subject or all, with `as_of` only those valid then.

    Without a subject, the first page starts with facts about the user, at most half of it.
    """
    if subject is not None:
        key = fact_key(subject, "x")
        store, scope = _locate_existing(workspace, key, scope)
        return _page_facts(store, scope, key.subject, as_of, limit, before)
    person, of_person = _locate(workspace, FactKey(USER, ""), scope)
    leading: list[Memory] = []
    if person.id != workspace.id and before is None and person.exists:
        leading = list(_page_facts(person, of_person, USER, as_of, max(1, limit // 2), None).items)
    if leading and not workspace.exists:
        return Page(leading)
    page = _page_facts(workspace, scope, None, as_of, max(1, limit - len(leading)), before)
    return Page([*leading, *page.items][:limit], page.next_cursor)


def _page_facts(
    workspace: Workspace, scope: Scope, subject: str | None, as_of: str | None, limit: int, before: int | None
) -> Page[Memory]:
    with workspace.database.read() as db:
        page = facts.page(db, scope, subject, as_of, limit + 1, before)
    return page_of(page, limit, lambda fact: fact.seq)


def _locate(workspace: Workspace, key: FactKey, scope: Scope) -> tuple[Workspace, Scope]:
    """Return the store and the scope of a key: facts about the user belong to the personal store."""
    if key.subject != USER or scope not in (Scope(), workspace.personal_scope):
        return workspace, scope
    if workspace.is_personal:
        return workspace, workspace.personal_scope
    return (workspace.person, workspace.personal_scope) if workspace.personal_memory_enabled else (workspace, scope)


def _locate_existing(workspace: Workspace, key: FactKey, scope: Scope) -> tuple[Workspace, Scope]:
    """Return the store and the scope of a key to read; the workspace while there is no personal store."""
    store, of_store = _locate(workspace, key, scope)
    return (store, of_store) if store.exists else (workspace, scope)


def end_fact(
    workspace: Workspace, resolver: FactKeyResolver, asked: FactKey, scope: Scope, moment: str | None
) -> writing.EndedFact:
    """End the value that is valid at a time, by default now, without a successor; raise NotFound if there is none."""
    store, scope = _locate_existing(workspace, asked, scope)
    key = resolver.require_key(store, asked, scope)
    store.access.require_change()
    return writing.end_fact(store.database, key, scope, moment)


def take_back_fact(workspace: Workspace, fact_id: str) -> tuple[Memory, Remaining]:
    """Undo the setting of a value; return the archived fact, and what is left of its subject."""
    store = find_home(workspace, fact_id)
    store.access.require_change()
    taken = writing.take_back_fact(store.database, fact_id)
    assert taken.key is not None
    scoped, who = facts.ScopedKey(0, taken.key, taken.scope), workspace.person_id
    with store.database.read() as db:
        if facts.find_extent(db, scoped.key.subject, scoped) or facts.list_waiting(db, scoped.key, scoped.scope, 1):
            return taken, Remaining.FACT
        return taken, Remaining.SUBJECT if facts.find_extent(db, scoped.key.subject, None, who) else Remaining.NOTHING


def reopen_fact(workspace: Workspace, fact_id: str, until: str | None) -> Memory:
    """Undo the end of a value: it is valid until a time, without limit, or until the next value starts."""
    store = find_home(workspace, fact_id)
    store.access.require_change()
    return writing.reopen_fact(store.database, fact_id, until)


def list_subjects(
    workspace: Workspace, text: str, now: str, limit: int, before: int | None, holding: int
) -> Page[SubjectSummary]:
    """List the subjects of facts by name, all or those with a fact that contains each word of a text."""
    # Split the text into words in the same way as the text of a fact.
    words = canonical_name(text).replace("_", " ").split() or text.split()
    with workspace.database.read() as db:
        page = page_of(
            facts.page_subjects(db, words, limit + 1, before, workspace.person_id), limit, lambda subject: subject.seq
        )
        current = [
            facts.list_current(db, subject.name, now, holding + 1, workspace.person_id) for subject in page.items
        ]
    items = [
        SubjectSummary(subject.name, held[:holding], len(held) > holding)
        for subject, held in zip(page.items, current, strict=True)
    ]
    return Page(items, page.next_cursor)


def list_latest(workspace: Workspace, now: str, limit: int) -> list[Memory]:
    """List the current facts that were set last."""
    with workspace.database.read() as db:
        return facts.list_latest(db, now, limit, workspace.person_id)


def read_subject(
    workspace: Workspace, subject: str, moment: str, now: str, limit: int, before: int | None, values: int
) -> SubjectView:
    """Return the current facts of a subject and those at a time; raise NotFound for an unknown subject."""
    name, who = canonical_name(subject), workspace.person_id
    with workspace.database.read() as db:
        extent = facts.find_extent(db, name, None, who)
        if extent is None:
            raise NotFound("nothing is known about this")
        page = page_of(facts.page_keys(db, name, limit + 1, before, who), limit, lambda key: key.seq)
        keys = [
            KeyView(
                key,
                facts.find_valid(db, key.key, key.scope, moment),
                facts.find_valid(db, key.key, key.scope, now),
                facts.page_values(db, key.key, key.scope, values, None),
            )
            for key in page.items
        ]
        return SubjectView(name, extent, facts.find_turns(db, name, moment, None, who), Page(keys, page.next_cursor))


def read_fact(
    workspace: Workspace, scoped: facts.ScopedKey, moment: str, now: str, limit: int, before: int | None, waiting: int
) -> FactView:
    """Return all values of a fact in time order, and the one at a time; raise NotFound for an unknown fact."""
    key, scope = scoped.key, scoped.scope
    with workspace.database.read() as db:
        extent = facts.find_extent(db, key.subject, scoped)
        candidates = facts.list_waiting(db, key, scope, waiting)
        if extent is None and not candidates:
            raise NotFound("nothing is known about this")
        values = page_of(facts.page_values(db, key, scope, limit + 1, before), limit, lambda value: value.seq)
        remarks = find_annotations(db, values.items)
        denying = {identity for remark in remarks.values() for identity in remark.contradicted_by}
        return FactView(
            facts.find_valid(db, key, scope, moment),
            facts.find_valid(db, key, scope, now),
            values,
            candidates,
            extent,
            facts.find_turns(db, key.subject, moment, scoped),
            remarks,
            {one_id: memory for one_id in denying if (memory := memories.get(db, one_id)) is not None},
        )


def _check(key: FactKey, value: Any, draft: Draft) -> None:
    """Raise InvalidField for an invalid value, before a workspace is created for it."""
    try:
        prepare_fact(key, value, draft)
    except InvalidField as error:
        # A memory has its typed fields in `details`; the arguments of a fact have no such prefix.
        raise InvalidField(
            *(FieldError(problem.loc.removeprefix("details."), problem.msg) for problem in error.errors)
        ) from error
