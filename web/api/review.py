"""The inbox: candidates, pairs that may be one, what was done without asking, and what was turned away."""

from typing import Annotated

from pydantic import AliasPath, Field

from pipeline.records import Memory, Outcome, Page
from pipeline.records.people import Role
from pipeline.services import review
from pipeline.services.review import CandidateVerdict, DuplicatePair, PairVerdict
from pipeline.store.audit import AuditAction, AuditEntry
from pipeline.store.refusals import RefusedBy
from pipeline.store.review import Decision
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


class AdmissionsQuery(bodies.ViewerQuery):
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


@api.route(Endpoint("GET", "/v1/duplicates", answer=PairsAnswer, problems=(404,)))
def list_pairs(call: Call, query: bodies.ViewerQuery) -> Page[DuplicatePair]:
    """List the pairs that wait for a verdict, newest first."""
    return review.list_pairs(call.workspace, query.viewer(call.caller), query.limit, query.before)


@api.route(Endpoint("POST", "/v1/duplicates/{pair_id}", answer=MemoryAnswer, problems=(404, 409), needs=Role.OWNER))
def settle_pair(call: Call, body: PairBody, pair_id: str) -> Memory:
    """Merge a pair into its older memory, or keep both."""
    return review.settle_pair(call.workspace, pair_id, body.action)


@api.route(Endpoint("GET", "/v1/candidates", answer=MemoryPage, problems=(404,)))
def list_candidates(call: Call, query: bodies.ViewerQuery) -> Page[Memory]:
    """List the memories that wait for review, newest first."""
    page = review.list_candidates(call.workspace, query.viewer(call.caller), query.limit, query.before)
    return Page([candidate.memory for candidate in page.items], page.next_cursor)


@api.route(Endpoint("POST", "/v1/candidates/{memory_id}", answer=MemoryAnswer, problems=(404, 409), needs=Role.OWNER))
def settle_candidate(call: Call, body: CandidateBody, memory_id: str) -> Memory:
    """Let a candidate in, or archive it."""
    return review.settle_candidate(call.workspace, memory_id, body.action)


@api.route(Endpoint("GET", "/v1/audit", answer=AuditPage, problems=(404,), needs=Role.OWNER))
def list_acts(call: Call, query: bodies.PageQuery) -> Page[AuditEntry]:
    """List what was merged or archived without being asked, newest first."""
    page = review.list_acts(call.workspace, query.limit, query.before)
    return Page([act.entry for act in page.items], page.next_cursor)


@api.route(Endpoint("POST", "/v1/audit/{entry_id}/undo", answer=MemoryAnswer, problems=(404, 409), needs=Role.OWNER))
def undo_act(call: Call, entry_id: str) -> Memory:
    """Take back an automatic merge or archive."""
    return review.undo_act(call.workspace, entry_id)


class RefusedAnswer(Answer):
    """What was offered again although a person refused it; without the memory, it was purged."""

    id: str = Field(validation_alias=AliasPath("refusal", "memory_id"))
    how: RefusedBy = Field(validation_alias=AliasPath("refusal", "how"))
    at: str = Field(validation_alias=AliasPath("refusal", "at"))
    offers: int = Field(validation_alias=AliasPath("refusal", "offers"))
    offered_at: str = Field(validation_alias=AliasPath("refusal", "offered_at"))
    memory: MemoryAnswer | None


class RefusedAnswers(Answer):
    """What was offered again, the last offered first."""

    items: list[RefusedAnswer]


class AcceptedAnswer(Answer):
    """What became of a refusal that was taken back: the memory, if it is still there, is active again."""

    id: str
    memory: MemoryAnswer | None


class RefusedQuery(bodies.QueryString):
    """How many to list."""

    limit: Annotated[int, Field(ge=1, le=bodies.MAX_PAGE)] = 50


@api.route(Endpoint("GET", "/v1/refused", answer=RefusedAnswers, problems=(404,), needs=Role.OWNER))
def list_refused(call: Call, query: RefusedQuery) -> RefusedAnswers:
    """List what was offered again although a person rejected, archived or purged it."""
    found = review.list_refused_offers(call.workspace, query.limit, None)
    return RefusedAnswers(items=[RefusedAnswer.model_validate(one) for one in found])


@api.route(
    Endpoint("POST", "/v1/refused/{refused_id}/accept", answer=AcceptedAnswer, problems=(404, 409), needs=Role.OWNER)
)
def accept_refused(call: Call, refused_id: str) -> AcceptedAnswer:
    """Change one's mind: what was refused is active again, or may be offered again where it was purged."""
    memory = review.accept_refused(call.workspace, refused_id)
    return AcceptedAnswer(id=refused_id, memory=None if memory is None else MemoryAnswer.model_validate(memory))


@api.route(Endpoint("GET", "/v1/admissions", answer=AdmissionPage, problems=(404,)))
def list_admissions(call: Call, query: AdmissionsQuery) -> Page[Decision]:
    """List what the write policy decided about writes, and why, newest first."""
    return review.list_admissions(call.workspace, query.viewer(call.caller), query.outcome, query.limit, query.before)
