"""The inbox: candidates, possible duplicates, automatic changes, and refused memories that were offered again."""

from typing import Annotated

from pydantic import AliasPath, Field

from pipeline.features.capture import usecases as turns
from pipeline.features.review import conflicts, usecases as review
from pipeline.features.review.store import Decision
from pipeline.kernel.records import Memory, Outcome, Page
from pipeline.kernel.records.people import Role
from pipeline.kernel.store.audit import AuditEntry
from web.http import bodies
from web.http.answers import AdmissionAnswer, Answer, MemoryAnswer, MemoryPage, PageAnswer
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("review", 65)


class PairBody(bodies.Body):
    """Whether to merge a pair or to keep both memories."""

    action: Annotated[review.PairVerdict, Field(strict=False)]


class CandidateBody(bodies.Body):
    """Whether to accept or to reject a candidate."""

    action: Annotated[review.CandidateVerdict, Field(strict=False)]


class ConflictBody(bodies.Body):
    """Whether to archive the second of two contradicting memories, or to keep both."""

    action: Annotated[conflicts.ConflictAction, Field(strict=False)]


class AdmissionsQuery(bodies.ViewerQuery):
    """Filters of a list of decisions."""

    outcome: Outcome | None = None


class PairAnswer(Answer, of=review.DuplicatePair):
    """Two possible duplicates, the older memory first, and why they were not merged automatically."""


class PairsAnswer(PageAnswer[PairAnswer]):
    """A page of pairs."""


class ConflictSideAnswer(Answer, of=conflicts.ConflictSide):
    """A memory of a conflict, the tool or source that it is from, and its standing in the order of precedence."""

    origin: str


class ConflictAnswer(Answer, of=conflicts.MemoryConflict, without=("denying_id",)):
    """Two memories that contradict each other; the leading one comes first in the order of precedence."""


class ConflictsAnswer(PageAnswer[ConflictAnswer]):
    """A page of conflicts."""


class SettlementAnswer(Answer, of=conflicts.Settlement, without=("denial_by", "reverse_by")):
    """The archived memory, if any, and the entry of the audit trail that undoes it."""


class AuditAnswer(Answer, of=AuditEntry, without=("seq", "detail")):
    """An automatic change of a memory; `other_id` is the memory that it was merged into or replaced by."""


class AuditPage(PageAnswer[AuditAnswer]):
    """A page of the audit trail."""


class AdmissionPage(PageAnswer[AdmissionAnswer]):
    """A page of decisions."""


@api.route(Endpoint("GET", "/v1/duplicates", answer=PairsAnswer, problems=(404,)))
def list_pairs(call: Call, query: bodies.ViewerQuery) -> Page[review.DuplicatePair]:
    """List the possible duplicates that wait for a decision, newest first."""
    return review.list_pairs(call.workspace, query.viewer(call.caller), query.limit, query.before)


@api.route(Endpoint("POST", "/v1/duplicates/{pair_id}", answer=MemoryAnswer, problems=(404, 409), needs=Role.OWNER))
def settle_pair(call: Call, body: PairBody, pair_id: str) -> Memory:
    """Merge a pair into the memory that was stated last, or keep both."""
    return review.settle_pair(call.workspace, pair_id, body.action)


@api.route(Endpoint("GET", "/v1/conflicts", answer=ConflictsAnswer, problems=(404,), needs=Role.OWNER))
def list_conflicts(call: Call, query: bodies.PageQuery) -> Page[conflicts.MemoryConflict]:
    """List memories that contradict each other, each with its origin and its precedence, latest first."""
    return conflicts.list_conflicts(call.workspace, query.limit, query.before)


@api.route(
    Endpoint(
        "POST",
        "/v1/conflicts/{kept_id}/{other_id}",
        answer=SettlementAnswer,
        problems=(404, 409),
        needs=Role.OWNER,
    )
)
def settle_conflict(call: Call, body: ConflictBody, kept_id: str, other_id: str) -> conflicts.Settlement:
    """Keep the first of two contradicting memories and archive the second, or keep both."""
    return conflicts.settle_conflict(call.workspace, kept_id, other_id, body.action)


@api.route(Endpoint("GET", "/v1/candidates", answer=MemoryPage, problems=(404,)))
def list_candidates(call: Call, query: bodies.ViewerQuery) -> Page[Memory]:
    """List the memories that wait for review, newest first."""
    page = review.list_candidates(call.workspace, query.viewer(call.caller), query.limit, query.before)
    return Page([candidate.memory for candidate in page.items], page.next_cursor)


@api.route(Endpoint("POST", "/v1/candidates/{memory_id}", answer=MemoryAnswer, problems=(404, 409), needs=Role.OWNER))
def settle_candidate(call: Call, body: CandidateBody, memory_id: str) -> Memory:
    """Accept a candidate, or reject it, which archives it."""
    return review.settle_candidate(call.workspace, memory_id, body.action)


@api.route(Endpoint("GET", "/v1/audit", answer=AuditPage, problems=(404,), needs=Role.OWNER))
def list_acts(call: Call, query: bodies.PageQuery) -> Page[AuditEntry]:
    """List automatic merges, archives and ends of facts, newest first."""
    page = review.list_acts(call.workspace, query.limit, query.before)
    return Page([act.entry for act in page.items], page.next_cursor)


@api.route(Endpoint("POST", "/v1/audit/{entry_id}/undo", answer=MemoryAnswer, problems=(404, 409), needs=Role.OWNER))
def undo_act(call: Call, entry_id: str) -> Memory:
    """Undo an automatic merge, archive or end of a fact."""
    return review.undo_act(call.workspace, entry_id)


class RefusedAnswer(Answer, of=review.RefusedOffer, flat="refusal", without=("mark", "memory_id")):
    """A memory that was offered again although a person refused it; a purged one has no memory here."""

    id: str = Field(validation_alias=AliasPath("refusal", "memory_id"))
    offered_at: str = Field(validation_alias=AliasPath("refusal", "offered_at"))


class RefusedAnswers(Answer):
    """Memories that were offered again, most recent first."""

    items: list[RefusedAnswer]


class AcceptedAnswer(Answer):
    """The result of undoing a refusal: the memory, if it still exists, is active again."""

    id: str
    memory: MemoryAnswer | None


class RefusedQuery(bodies.QueryString):
    """The number of entries to list."""

    limit: Annotated[int, Field(ge=1, le=bodies.MAX_PAGE)] = 50


@api.route(Endpoint("GET", "/v1/refused", answer=RefusedAnswers, problems=(404,), needs=Role.OWNER))
def list_refused(call: Call, query: RefusedQuery) -> RefusedAnswers:
    """List memories that were offered again although a person rejected, archived or purged them."""
    offers = review.list_refused_offers(call.workspace, query.limit)
    return RefusedAnswers(items=[RefusedAnswer.model_validate(offer) for offer in offers])


@api.route(
    Endpoint("POST", "/v1/refused/{refused_id}/accept", answer=AcceptedAnswer, problems=(404, 409), needs=Role.OWNER)
)
def accept_refused(call: Call, refused_id: str) -> AcceptedAnswer:
    """Undo a refusal: the memory becomes active again; a purged one may be offered again."""
    memory = review.accept_refused(call.workspace, refused_id)
    return AcceptedAnswer(id=refused_id, memory=None if memory is None else MemoryAnswer.model_validate(memory))


@api.route(Endpoint("GET", "/v1/admissions", answer=AdmissionPage, problems=(404,)))
def list_admissions(call: Call, query: AdmissionsQuery) -> Page[Decision]:
    """List the decisions of the write policy and their reasons, newest first."""
    return review.list_admissions(call.workspace, query.viewer(call.caller), query.outcome, query.limit, query.before)


class UnsavedStatementAnswer(Answer, of=turns.UnsavedStatement):
    """A sentence of a prompt that capture considered and did not store: its class, its probability and the reason."""


class UnsavedStatementsAnswer(Answer):
    """The statements that were considered and not stored, newest first."""

    items: list[UnsavedStatementAnswer]


@api.route(Endpoint("GET", "/v1/unsaved-statements", answer=UnsavedStatementsAnswer))
def list_unsaved_statements(call: Call, query: RefusedQuery) -> UnsavedStatementsAnswer:
    """List sentences of your last prompts that capture considered and did not store, and why."""
    statements = turns.list_unsaved_statements(call.workspace, query.limit)
    return UnsavedStatementsAnswer(items=[UnsavedStatementAnswer.model_validate(statement) for statement in statements])
