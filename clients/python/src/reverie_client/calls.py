"""The API calls of the clients: one function per call, from its arguments to its request."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, Required, TypedDict, Unpack

from . import answers
from .request import Listing, Request, build_listing, build_path, build_request, encode_query
from .watching import Watch

Kind = Literal[
    "fact", "decision", "lesson", "goal", "activity", "milestone", "qa", "code", "document", "episode", "keyed_fact"
]
EventType = Literal["written", "changed", "superseded", "archived", "restored", "purged", "candidate", "job_done"]
Source = Literal["user", "agent", "ambient", "import", "sync"]
GoalStatus = Literal["open", "in_progress", "done", "dropped"]
FactValue = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The viewer: their private memories are included, in addition to those of the workspace."""

    user: str | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None


Sensitivity = Literal["normal", "private", "secret-adjacent"]
Disposition = Literal["store", "review", "drop"]


class MemoryFields(TypedDict, total=False):
    """The optional fields of a memory."""

    kind: Kind
    importance: float
    scope: answers.Scope
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    session_id: str
    source: Source
    occurred_at: datetime
    details: Mapping[str, Any]
    branch: str
    anchor: Mapping[str, Any]
    expires_at: datetime
    sensitivity: Sensitivity
    edges: Sequence[Mapping[str, str]]
    value: FactValue
    evidence: str
    confidence: float
    disposition: Disposition
    # A ULID. A write that is repeated with the same id returns the first receipt.
    id: str


class NewMemory(MemoryFields, total=False):
    """One memory of a batch."""

    content: Required[str]


class MemoryChanges(TypedDict, total=False):
    """The fields of a memory that can be changed; the old text stays in its history."""

    content: str
    pinned: bool
    importance: float
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    details: Mapping[str, Any]
    branch: str
    anchor: Mapping[str, Any]
    expires_at: datetime
    sensitivity: Sensitivity
    trust: Literal["trusted", "evidence"]


class RecallFields(TypedDict, total=False):
    """The optional parameters of a recall."""

    k: int
    kinds: Sequence[Kind]
    scope: answers.Scope
    session_id: str
    since: datetime
    until: datetime
    as_of: datetime
    branch: str
    tags: Sequence[str]
    viewer: Viewer
    budget_ms: int
    explain: bool
    min_relevance: float
    history: bool


class GoalFields(TypedDict, total=False):
    """The optional fields of a goal."""

    status: GoalStatus
    progress: float
    due_at: datetime
    importance: float
    scope: answers.Scope
    tags: Sequence[str]
    session_id: str
    source: Source
    to: str


class GoalChanges(TypedDict, total=False):
    """The fields of a goal that can be changed."""

    title: str
    status: GoalStatus
    progress: float
    due_at: datetime


def health() -> Request[answers.Health]:
    """Check that the server answers, and whether its encoder is loaded."""
    return build_request("GET", "/healthz", answers.Health)


def remember(content: str, *, to: str | None = None, **fields: Unpack[MemoryFields]) -> Request[answers.Receipt]:
    """Store a memory; `to` names a team. After the answer it is durable, and the next recall can find it."""
    return build_request("POST", "/v1/memories", answers.Receipt, {"content": content, "to": to} | fields)


def remember_all(memories: Sequence[NewMemory], *, to: str | None = None) -> Request[answers.BatchAnswer]:
    """Store up to 1000 memories in one transaction, all or none; `to` names a team."""
    return build_request("POST", "/v1/memories/batch", answers.BatchAnswer, {"items": memories, "to": to})


def memories(
    *,
    kind: Kind | None = None,
    scope: answers.Scope | None = None,
    session_id: str | None = None,
    archived: bool | None = None,
    branch: str | None = None,
    tag: str | None = None,
    limit: int | None = None,
) -> Listing[answers.Memory]:
    """List memories, newest first."""
    query = {"kind": kind, "scope": _name_scope(scope), "session_id": session_id, "archived": archived}
    return build_listing("/v1/memories", answers.Memory, limit, query | {"branch": branch, "tag": tag})


def memory(memory_id: str, *, from_: str | None = None) -> Request[answers.MemoryRecord]:
    """Fetch a memory with provenance, edges, entities and history; for a team's memory pass the hit's `from_`."""
    return build_request("GET", build_path("memories", memory_id), answers.MemoryRecord, query={"from": from_})


def edit(memory_id: str, **changes: Unpack[MemoryChanges]) -> Request[answers.Memory]:
    """Change some fields of a memory."""
    return build_request("PATCH", build_path("memories", memory_id), answers.Memory, changes)


def archive(memory_id: str) -> Request[answers.Forgotten]:
    """Archive a memory; `restore` undoes that."""
    return build_request("DELETE", build_path("memories", memory_id), answers.Forgotten)


def restore(memory_id: str) -> Request[answers.Memory]:
    """Restore an archived memory."""
    return build_request("POST", build_path("memories", memory_id, "restore"), answers.Memory)


def purge(memory_id: str) -> Request[answers.Forgotten]:
    """Delete every trace of a memory permanently."""
    return build_request("DELETE", build_path("memories", memory_id), answers.Forgotten, query={"hard": True})


def recall(query: str, **fields: Unpack[RecallFields]) -> Request[answers.RecallAnswer]:
    """Search memories, best first; an empty query lists them by importance and recency."""
    return build_request("POST", "/v1/recall", answers.RecallAnswer, {"query": query} | fields, safe=True)


def recall_sessions(query: str, **fields: Unpack[RecallFields]) -> Request[answers.SessionsAnswer]:
    """Search sessions, best first, each with its best memories."""
    body = {"query": query, "group": "session"} | fields
    return build_request("POST", "/v1/recall", answers.SessionsAnswer, body, safe=True)


def prepare(
    message: str, *, session_id: str | None = None, cwd: str | None = None, viewer: Viewer | None = None
) -> Request[answers.Briefing]:
    """Return the memories that an agent needs before it answers a message."""
    body = {"message": message, "session_id": session_id, "cwd": cwd, "viewer": viewer}
    return build_request("POST", "/v1/prepare", answers.Briefing, body)


def set_fact(
    subject: str,
    attribute: str,
    value: FactValue,
    *,
    valid_from: datetime | None = None,
    source: Source | None = None,
    scope: answers.Scope | None = None,
    session_id: str | None = None,
    to: str | None = None,
) -> Request[answers.FactReceipt]:
    """Set the value of a fact; `to` names a team. The previous value ends and stays in the history."""
    body = {"value": value, "valid_from": valid_from, "source": source, "scope": scope, "session_id": session_id}
    return build_request("PUT", build_path("facts", subject, attribute), answers.FactReceipt, body | {"to": to})


def fact(
    subject: str, attribute: str, *, as_of: datetime | None = None, scope: answers.Scope | None = None
) -> Request[answers.Fact]:
    """Fetch the value of a fact, now or at a time; raise NotFound if there is none."""
    query = {"as_of": as_of, "scope": _name_scope(scope)}
    return build_request("GET", build_path("facts", subject, attribute), answers.Fact, query=query)


def end_fact(
    subject: str, attribute: str, *, valid_to: datetime | None = None, scope: answers.Scope | None = None
) -> Request[answers.Fact]:
    """End the value of a fact, now or at a time, without setting a new one."""
    query = {"valid_to": valid_to, "scope": _name_scope(scope)}
    return build_request("DELETE", build_path("facts", subject, attribute), answers.Fact, query=query)


def fact_history(subject: str, attribute: str, *, scope: answers.Scope | None = None) -> Listing[answers.Fact]:
    """List all values of a fact with the time in which each was valid."""
    path = build_path("facts", subject, attribute, "history")
    return build_listing(path, answers.Fact, None, {"scope": _name_scope(scope)}, paged=False)


def facts(
    *,
    subject: str | None = None,
    as_of: datetime | None = None,
    scope: answers.Scope | None = None,
    limit: int | None = None,
) -> Listing[answers.Fact]:
    """List facts, optionally of one subject, newest first; with `as_of` only values that were valid then."""
    query = {"subject": subject, "as_of": as_of, "scope": _name_scope(scope)}
    return build_listing("/v1/facts", answers.Fact, limit, query)


def add_goal(title: str, **fields: Unpack[GoalFields]) -> Request[answers.Goal]:
    """Set a goal; `to` names a team."""
    return build_request("POST", "/v1/goals", answers.Goal, {"title": title} | fields)


def edit_goal(goal_id: str, **changes: Unpack[GoalChanges]) -> Request[answers.Goal]:
    """Change some fields of a goal."""
    return build_request("PATCH", build_path("goals", goal_id), answers.Goal, changes)


def goals(
    *, status: GoalStatus | None = None, viewer: Viewer | None = None, limit: int | None = None
) -> Listing[answers.Goal]:
    """List goals, of one status or all."""
    return build_listing("/v1/goals", answers.Goal, limit, {"status": status} | _name_viewer(viewer))


def lessons(
    about: str | None = None, *, viewer: Viewer | None = None, limit: int | None = None
) -> Listing[answers.Lesson]:
    """List lessons with their records; those about a text count as shown."""
    query = {"q": about} | _name_viewer(viewer)
    return build_listing("/v1/lessons", answers.Lesson, limit, query, safe=about is None)


def report_lesson(surface_id: str, *, followed: bool, note: str | None = None) -> Request[answers.LessonOutcome]:
    """Report whether a shown lesson was followed."""
    path = build_path("lessons", "surfaces", surface_id)
    return build_request("POST", path, answers.LessonOutcome, {"followed": followed, "note": note})


def workspaces() -> Listing[answers.WorkspaceSummary]:
    """List the workspaces of the data directory."""
    return build_listing("/v1/workspaces", answers.WorkspaceSummary, None, {}, paged=False)


def stats() -> Request[answers.Stats]:
    """Fetch the statistics of the workspace."""
    return build_request("GET", "/v1/stats", answers.Stats)


def queue() -> Request[answers.Queue]:
    """Fetch the pending work. If all counts are 0, every memory is fully processed."""
    return build_request("GET", "/v1/queue", answers.Queue)


def watch(
    after: str | None = None,
    *,
    types: Sequence[EventType] = (),
    kinds: Sequence[Kind] = (),
    titles: bool = False,
    viewer: Viewer | None = None,
) -> Watch:
    """Yield what happens in the workspace from now on, or after a cursor; `"0"` is the beginning.

    It does not end. It reconnects after the last event; `titles` adds the start of each memory's text.
    """
    query = {"type": ",".join(types), "kind": ",".join(kinds), "titles": titles or None, **_name_viewer(viewer)}
    return Watch(encode_query(query), after)


def _name_scope(scope: answers.Scope | None) -> str | None:
    if scope is None:
        return None
    return scope.kind if scope.id is None else f"{scope.kind}:{scope.id}"


def _name_viewer(viewer: Viewer | None) -> dict[str, str | None]:
    return {} if viewer is None else asdict(viewer)
