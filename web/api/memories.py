"""Memories: write, read, change, forget, and say how they bear on each other."""

from typing import Annotated, Any, ClassVar

from flask import Response, after_this_request
from pydantic import AliasPath, BeforeValidator, Field, StringConstraints

from config.paths import WORKSPACE_ID
from pipeline.records import MAX_BATCH, EdgeKind, EntityKind, Memory, Page, Receipt, Source, Trust
from pipeline.records.people import Role, shown_name
from pipeline.services import memories, sharing
from pipeline.store.edges import Edge
from pipeline.write.state import state_tag
from web.api import answers, bodies
from web.api.answers import Answer, MemoryAnswer, PageAnswer, ReceiptAnswer
from web.endpoint import Api, Call, Endpoint, workspace_of_request

api = Api("memories")


class BatchBody(bodies.Body):
    """Memories to store in one transaction, and whose they shall be: without `to` this machine's own."""

    items: Annotated[list[bodies.MemoryBody], Field(max_length=MAX_BATCH)]
    team: bodies.TeamName | None = Field(default=None, alias="to")


class MoveBody(bodies.Body):
    """Where a memory shall go."""

    workspace: Annotated[str, StringConstraints(pattern=f"^(?:{WORKSPACE_ID.pattern})$")]


class ShareBody(bodies.Body):
    """With which workspace: the header's, unless another one is named."""

    workspace: Annotated[str, StringConstraints(pattern=f"^(?:{WORKSPACE_ID.pattern})$")] | None = None


class DeleteQuery(bodies.QueryString):
    """Whether to archive or to purge."""

    hard: bool = False


class ReadQuery(bodies.QueryString):
    """Whose memory is read: without `from` one of this machine's own."""

    team: bodies.TeamName | None = Field(default=None, alias="from")


class EraseQuery(bodies.QueryString):
    """Which edge to take away: its kind and the memory that it points to."""

    kind: EdgeKind
    to: bodies.MemoryId


class BatchAnswer(Answer):
    """What became of each write of a batch, in its order."""

    results: list[ReceiptAnswer]


class ProvenanceAnswer(Answer):
    """Where a memory came from."""

    source: Source = Field(validation_alias=AliasPath("memory", "source"))
    trust: Trust = Field(validation_alias=AliasPath("memory", "trust"))
    session_id: answers.Name | None = Field(validation_alias=AliasPath("memory", "session_id"))
    author: str | None = Field(
        default=None, validation_alias=AliasPath("memory", "author"), exclude_if=answers.is_missing
    )
    written_at: str = Field(validation_alias=AliasPath("memory", "created_at"))
    admission: answers.AdmissionAnswer | None


class EntityAnswer(Answer):
    """An entity as a memory mentions it."""

    id: str
    kind: EntityKind
    name: str
    surface: str


def _name_sessions(detail: dict[str, Any]) -> dict[str, Any]:
    if "session_id" not in detail:
        return detail
    return {**detail, "session_id": shown_name(detail["session_id"])}


class HistoryAnswer(Answer):
    """An earlier state of a memory."""

    at: str
    event: str
    content: str | None
    detail: Annotated[dict[str, Any], BeforeValidator(_name_sessions)]
    author: str | None = Field(default=None, exclude_if=answers.is_missing)


class RecordAnswer(MemoryAnswer):
    """A memory with everything that is known of it."""

    provenance: ProvenanceAnswer
    edges: list[answers.EdgeAnswer]
    entities: list[EntityAnswer]
    history: list[HistoryAnswer]
    chain: list[answers.ChainLink]


class ForgottenAnswer(Answer):
    """What became of a deletion."""

    names_memory: ClassVar[bool] = True

    id: str
    purged: bool
    archived_at: str | None


class EdgesAnswer(PageAnswer[answers.EdgeAnswer]):
    """A memory's edges."""


def _name_state(memory: Memory) -> Memory:
    """Let the answer's ETag name the state of a memory."""
    tag = state_tag(memory)

    def add(response: Response) -> Response:
        response.set_etag(tag)
        return response

    after_this_request(add)
    return memory


@api.route(Endpoint("POST", "/v1/memories", answer=ReceiptAnswer, status=201, of_team=True))
def remember(call: Call, body: bodies.RememberBody) -> Receipt:
    """Store a memory; once answered it is durable and findable."""
    return memories.write_memory(call.workspace, body.record(call.caller))


@api.route(Endpoint("POST", "/v1/memories/batch", answer=BatchAnswer, of_team=True))
def remember_batch(call: Call, body: BatchBody) -> BatchAnswer:
    """Store up to 1000 memories in one transaction, all or none."""
    receipts = memories.write_memories(call.workspace, [item.record(call.caller) for item in body.items])
    return BatchAnswer(results=[ReceiptAnswer.model_validate(receipt) for receipt in receipts])


@api.route(Endpoint("GET", "/v1/memories", answer=answers.MemoryPage, problems=(404,)))
def list_memories(call: Call, query: bodies.ListQuery) -> Page[Memory]:
    """List memories, newest first."""
    return memories.list_memories(call.workspace, query.filter(call.caller), query.limit, query.before)


@api.route(Endpoint("GET", "/v1/memories/{memory_id}", answer=RecordAnswer, problems=(404,), of_team=True))
def read_memory(call: Call, memory_id: str, query: ReadQuery) -> RecordAnswer:  # noqa: ARG001 - says of whose server
    """Read one memory with provenance, edges, entities and history."""
    record = memories.read_record(call.workspace, memory_id)
    _name_state(record.memory)
    known = {
        "provenance": record,
        "edges": record.edges,
        "entities": record.entities,
        "history": record.history,
        "chain": record.chain,
    }
    return RecordAnswer.model_validate({**dict(MemoryAnswer.model_validate(record.memory)), **known})


@api.route(Endpoint("PATCH", "/v1/memories/{memory_id}", answer=MemoryAnswer, problems=(404, 409)))
def edit_memory(call: Call, body: bodies.PatchBody, memory_id: str) -> Memory:
    """Change a memory; old texts, tags and metadata stay in the history."""
    return _name_state(memories.edit(call.workspace, memory_id, body.record(), call.expected))


@api.route(Endpoint("DELETE", "/v1/memories/{memory_id}", answer=ForgottenAnswer, problems=(404,)))
def forget_memory(call: Call, query: DeleteQuery, memory_id: str) -> ForgottenAnswer:
    """Archive a memory, or with hard=true purge every trace of it; purging it again changes nothing."""
    if query.hard:
        call.require(Role.OWNER)
        memories.purge(call.workspace, call.container.feedback, memory_id, call.may_write, call.expected)
        return ForgottenAnswer(id=memory_id, purged=True, archived_at=None)
    memory = memories.archive(call.workspace, memory_id, call.expected)
    return ForgottenAnswer(id=memory.id, purged=False, archived_at=memory.archived_at)


@api.route(Endpoint("POST", "/v1/memories/{memory_id}/restore", answer=MemoryAnswer, problems=(404, 409)))
def restore_memory(call: Call, memory_id: str) -> Memory:
    """Undo an archive."""
    return _name_state(memories.restore(call.workspace, memory_id, call.expected))


@api.route(Endpoint("POST", "/v1/memories/{memory_id}/move", answer=ReceiptAnswer, problems=(404, 409)))
def move_memory(call: Call, body: MoveBody, memory_id: str) -> Receipt:
    """Move a memory to another workspace; in this one it goes to the archive."""
    return memories.move(call.workspace, call.enter(body.workspace, Role.WRITER), memory_id)


@api.route(
    Endpoint(
        "POST",
        "/v1/memories/{memory_id}/share",
        answer=MemoryAnswer,
        body_required=False,
        problems=(404, 409),
    )
)
def share_memory(call: Call, body: ShareBody, memory_id: str) -> Memory:
    """Let everybody in a workspace see what is yours alone."""
    target = call.enter(body.workspace or workspace_of_request(), Role.WRITER)
    return sharing.share_memory(call.workspace, target, memory_id)


@api.route(Endpoint("DELETE", "/v1/memories/{memory_id}/share", answer=MemoryAnswer, problems=(404, 409)))
def withdraw_memory(call: Call, memory_id: str) -> Memory:
    """Let what was shared be its person's own again."""
    is_owner = call.caller.may(call.workspace_id, Role.OWNER)
    return sharing.withdraw_memory(call.workspace, memory_id, is_owner=is_owner)


@api.route(Endpoint("POST", "/v1/memories/{memory_id}/edges", answer=EdgesAnswer, status=201, problems=(404,)))
def add_edge(call: Call, body: bodies.EdgeBody, memory_id: str) -> Page[Edge]:
    """Say how a memory bears on another."""
    return Page(memories.add_edge(call.workspace, memory_id, body.record()))


@api.route(Endpoint("DELETE", "/v1/memories/{memory_id}/edges", answer=EdgesAnswer, problems=(404, 409)))
def remove_edge(call: Call, query: EraseQuery, memory_id: str) -> Page[Edge]:
    """Take an edge back."""
    return Page(memories.remove_edge(call.workspace, memory_id, query.kind, query.to))
