"""The inbox: candidates, pairs that may be one, what was done without asking, and what was turned away."""

from typing import Annotated

from pydantic import Field

from pipeline.records import Memory, Outcome, Page
from pipeline.services import review
from pipeline.services.review import AuditAction, AuditEntry, CandidateVerdict, Decision, DuplicatePair, PairVerdict
from web.api import bodies
from web.api.answers import AdmissionAnswer, Answer, MemoryAnswer, MemoryPage, PageAnswer
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


class PairsAnswer(PageAnswer[PairAnswer]):
    """A page of pairs."""


class AuditAnswer(Answer):
    """An automatic act on a memory; for a merge, `other_id` is the one that it went into."""

    id: str
    at: str
    actor: str
    action: AuditAction
    memory_id: str
    other_id: str | None
    undone_at: str | None


class AuditPage(PageAnswer[AuditAnswer]):
    """A page of the audit trail."""


class AdmissionPage(PageAnswer[AdmissionAnswer]):
    """A page of decisions."""


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
def list_pairs(call: Call) -> Page[DuplicatePair]:
    """List a page of pairs."""
    query: bodies.ViewerQuery = call.query
    return review.list_pairs(call.workspace, query.viewer(), query.limit, query.before)


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
def settle_pair(call: Call, pair_id: str) -> Memory:
    """Settle a pair."""
    return review.settle_pair(call.workspace, pair_id, call.body.action)


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
def list_candidates(call: Call) -> Page[Memory]:
    """List a page of candidates."""
    query: bodies.ViewerQuery = call.query
    page = review.list_candidates(call.workspace, query.viewer(), query.limit, query.before)
    return Page([candidate.memory for candidate in page.items], page.next_cursor)


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
def settle_candidate(call: Call, memory_id: str) -> Memory:
    """Settle a candidate."""
    return review.settle_candidate(call.workspace, memory_id, call.body.action)


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
def list_acts(call: Call) -> Page[AuditEntry]:
    """List a page of the audit trail."""
    page = review.list_acts(call.workspace, call.query.limit, call.query.before)
    return Page([act.entry for act in page.items], page.next_cursor)


@api.route(
    Endpoint(
        "POST",
        "/v1/audit/{entry_id}/undo",
        "Take back an automatic merge or archive",
        answer=MemoryAnswer,
        problems=(404, 409, 503),
    )
)
def undo_act(call: Call, entry_id: str) -> Memory:
    """Undo one act and return the memory that came back."""
    return review.undo_act(call.workspace, entry_id)


@api.route(
    Endpoint(
        "GET",
        "/v1/admissions",
        "List what the write policy decided about writes, and why, newest first",
        query=AdmissionsQuery,
        answer=AdmissionPage,
        problems=(404,),
    )
)
def list_admissions(call: Call) -> Page[Decision]:
    """List a page of decisions."""
    query: AdmissionsQuery = call.query
    return review.list_admissions(call.workspace, query.outcome, query.limit, query.before)
