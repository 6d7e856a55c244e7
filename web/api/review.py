"""The inbox: candidates, pairs that may be one, what was done without asking, and what was turned away."""

from typing import Annotated, Any

from pydantic import Field

from pipeline.records import Filter, Memory, Outcome
from pipeline.store import admissions, audit, memories, pairs
from pipeline.store.pairs import Pair
from pipeline.write.review import CandidateVerdict, PairVerdict, settle_candidate, settle_pair, undo
from web.api import bodies
from web.api.answers import AdmissionAnswer, Answer, MemoryAnswer, MemoryPage
from web.api.render import decision_json, memory_json, page_json
from web.endpoint import Api, Call, Endpoint

api = Api("review")


class PairBody(bodies.Body):
    """Whether a pair is one."""

    action: Annotated[PairVerdict, Field(strict=False)]


class CandidateBody(bodies.Body):
    """Whether a candidate becomes a memory."""

    action: Annotated[CandidateVerdict, Field(strict=False)]


class AdmissionsQuery(bodies.PageQuery):
    """Which decisions to list."""

    outcome: Outcome | None = None


class PairAnswer(Answer):
    """Two memories that may say the same, the older first, and why they were not merged at once."""

    id: str
    cosine: float
    reasons: list[str]
    at: str
    older: MemoryAnswer
    newer: MemoryAnswer


class PairsAnswer(Answer):
    """A page of pairs."""

    items: list[PairAnswer]
    next_cursor: str | None


class AuditAnswer(Answer):
    """An automatic act on a memory; for a merge, `other_id` is the one that it went into."""

    id: str
    at: str
    actor: str
    action: audit.Action
    memory_id: str
    other_id: str | None
    undone_at: str | None


class AuditPage(Answer):
    """A page of the audit trail."""

    items: list[AuditAnswer]
    next_cursor: str | None


class AdmissionPage(Answer):
    """A page of decisions."""

    items: list[AdmissionAnswer]
    next_cursor: str | None


@api.route(
    Endpoint(
        "GET",
        "/v1/duplicates",
        "List the pairs that wait for a verdict, newest first",
        query=bodies.ViewerQuery,
        answer=PairsAnswer,
        problems=(404,),
    )
)
def list_pairs(call: Call) -> dict[str, Any]:
    """List a page of pairs."""
    with call.front.databases.get(call.workspace_id).read() as db:
        found = pairs.waiting(db, call.query.viewer(), call.query.limit + 1, call.query.before)
        texts = memories.by_seqs(db, {seq for pair in found for seq in (pair.older_seq, pair.newer_seq)})
    return dict(page_json(found, call.query.limit, lambda pair: pair.seq, lambda pair: _pair_json(pair, texts)))


@api.route(
    Endpoint(
        "POST",
        "/v1/duplicates/{pair_id}",
        "Merge a pair into its older memory, or keep both",
        body=PairBody,
        answer=MemoryAnswer,
        problems=(404, 409, 503),
    )
)
def judge_pair(call: Call, pair_id: str) -> dict[str, Any]:
    """Settle a pair."""
    return memory_json(settle_pair(call.front.databases.get(call.workspace_id), pair_id, call.body.action))


@api.route(
    Endpoint(
        "GET",
        "/v1/candidates",
        "List the memories that wait for review, newest first",
        query=bodies.ViewerQuery,
        answer=MemoryPage,
        problems=(404,),
    )
)
def list_candidates(call: Call) -> dict[str, Any]:
    """List a page of candidates."""
    wanted = Filter(candidates=True, viewer=call.query.viewer())
    with call.front.databases.get(call.workspace_id).read() as db:
        found = memories.page(db, wanted, call.query.limit + 1, call.query.before)
    return dict(page_json(found, call.query.limit, lambda memory: memory.seq, memory_json))


@api.route(
    Endpoint(
        "POST",
        "/v1/candidates/{memory_id}",
        "Let a candidate in, or archive it",
        body=CandidateBody,
        answer=MemoryAnswer,
        problems=(404, 409, 503),
    )
)
def judge_candidate(call: Call, memory_id: str) -> dict[str, Any]:
    """Settle a candidate."""
    memory = settle_candidate(call.front.databases.get(call.workspace_id), memory_id, call.body.action)
    return memory_json(memory)


@api.route(
    Endpoint(
        "GET",
        "/v1/audit",
        "List what was merged or archived without being asked, newest first",
        query=bodies.PageQuery,
        answer=AuditPage,
        problems=(404,),
    )
)
def list_audit(call: Call) -> dict[str, Any]:
    """List a page of the audit trail."""
    with call.front.databases.get(call.workspace_id).read() as db:
        found = audit.page(db, call.query.limit + 1, call.query.before)
    return dict(page_json(found, call.query.limit, lambda entry: entry.seq, _audit_json))


@api.route(
    Endpoint(
        "POST",
        "/v1/audit/{entry_id}/undo",
        "Take back an automatic merge or archive",
        answer=MemoryAnswer,
        problems=(404, 409, 503),
    )
)
def undo_entry(call: Call, entry_id: str) -> dict[str, Any]:
    """Undo one act and return the memory that came back."""
    return memory_json(undo(call.front.databases.get(call.workspace_id), entry_id))


@api.route(
    Endpoint(
        "GET",
        "/v1/admissions",
        "List what the door decided about writes, and why, newest first",
        query=AdmissionsQuery,
        answer=AdmissionPage,
        problems=(404,),
    )
)
def list_admissions(call: Call) -> dict[str, Any]:
    """List a page of decisions."""
    query: AdmissionsQuery = call.query
    with call.front.databases.get(call.workspace_id).read() as db:
        found = admissions.page(db, query.outcome, query.limit + 1, query.before)
    return dict(page_json(found, query.limit, lambda row: row[0], lambda row: decision_json(row[1])))


def _pair_json(pair: Pair, texts: dict[int, Memory]) -> dict[str, Any]:
    return {
        "id": pair.id,
        "cosine": pair.cosine,
        "reasons": list(pair.reasons),
        "at": pair.at,
        "older": memory_json(texts[pair.older_seq]),
        "newer": memory_json(texts[pair.newer_seq]),
    }


def _audit_json(entry: audit.Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "memory_id": entry.memory_id,
        "other_id": entry.other_id,
        "undone_at": entry.undone_at,
    }
