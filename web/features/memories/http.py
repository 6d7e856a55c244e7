"""Memories: write, read, change, delete and link them."""

from typing import Annotated, Any

from pydantic import AliasPath, BeforeValidator, Field, StringConstraints

from config.paths import WORKSPACE_ID
from pipeline.features.entities.store import LinkedEntity
from pipeline.features.memories import usecases as memories
from pipeline.features.team import sharing
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import MAX_BATCH, EdgeKind, HistoryEntry, Memory, Page, Receipt, Source, Trust
from pipeline.kernel.records.people import Role, display_name
from pipeline.kernel.store.edges import Edge
from pipeline.kernel.times import utc_now
from pipeline.write.state import state_tag
from web.http import answers, bodies
from web.http.access import list_readable, require_readable
from web.http.call import DEFAULT_WORKSPACE, Call
from web.http.endpoint import Api, Endpoint, note_state

api = Api("memories")


class BatchBody(bodies.Body):
    """Memories to store in one transaction; `to` names a team to store them for."""

    items: Annotated[list[bodies.MemoryBody], Field(max_length=MAX_BATCH)]
    team: bodies.TeamName | None = Field(default=None, alias="to")


class MoveBody(bodies.Body):
    """The workspace to move a memory to."""

    workspace: Annotated[str, StringConstraints(pattern=f"^(?:{WORKSPACE_ID.pattern})$")]


class ShareBody(bodies.Body):
    """The workspace to share a memory with; the default is the workspace of the header."""

    workspace: Annotated[str, StringConstraints(pattern=f"^(?:{WORKSPACE_ID.pattern})$")] | None = None


class DeleteQuery(bodies.QueryString):
    """Whether to archive a memory or to purge it."""

    hard: bool = False


class ReadQuery(bodies.QueryString):
    """The team whose memory to read; without `from`, read one of this machine."""

    team: bodies.TeamName | None = Field(default=None, alias="from")


class EraseQuery(bodies.QueryString):
    """The edge to remove: its kind and the memory that it points to."""

    kind: EdgeKind
    to: bodies.MemoryId


class BatchAnswer(answers.Answer):
    """The result of each write of a batch, in the same order."""

    results: list[answers.ReceiptAnswer]


class ProvenanceAnswer(answers.Answer):
    """The origin of a memory."""

    source: Source = Field(validation_alias=AliasPath("memory", "source"))
    trust: Trust = Field(validation_alias=AliasPath("memory", "trust"))
    session_id: answers.Name | None = Field(validation_alias=AliasPath("memory", "session_id"))
    author: str | None = Field(
        default=None, validation_alias=AliasPath("memory", "author"), exclude_if=answers.is_missing
    )
    written_at: str = Field(validation_alias=AliasPath("memory", "created_at"))
    admission: answers.AdmissionAnswer | None


class EntityAnswer(answers.Answer, of=LinkedEntity):
    """An entity as a memory mentions it."""


def _name_sessions(detail: dict[str, Any]) -> dict[str, Any]:
    if "session_id" not in detail:
        return detail
    return {**detail, "session_id": display_name(detail["session_id"])}


class HistoryAnswer(answers.Answer, of=HistoryEntry):
    """An earlier state of a memory."""

    detail: Annotated[dict[str, Any], BeforeValidator(_name_sessions)]
    author: str | None = Field(default=None, exclude_if=answers.is_missing)


class RecordAnswer(answers.MemoryAnswer):
    """A memory with its provenance, edges, entities, history and chain."""

    provenance: ProvenanceAnswer
    edges: list[answers.EdgeAnswer]
    entities: list[EntityAnswer]
    history: list[HistoryAnswer]
    chain: list[answers.ChainLink]


class ForgottenAnswer(answers.Answer, names_memory=True):
    """The result of a deletion."""

    id: str
    purged: bool
    archived_at: str | None


class EdgesAnswer(answers.PageAnswer[answers.EdgeAnswer]):
    """A memory's edges."""


def _with_tag(memory: Memory) -> Memory:
    """Return a memory, and send its state as the ETag of the answer."""
    note_state(state_tag(memory))
    return memory


@api.route(Endpoint("POST", "/v1/memories", answer=answers.ReceiptAnswer, status=201, of_team=True))
def remember(call: Call, body: bodies.RememberBody) -> Receipt:
    """Store a memory. After the answer, it is durable and can be found."""
    if body.expires_at is not None and body.expires_at <= utc_now():
        # It would be stored and then be in no list. A change may end a memory now.
        raise InvalidField(FieldError("expires_at", "is in the past: the memory would be in no answer"))
    return memories.write_memory(call.workspace, body.record(call.caller))


@api.route(Endpoint("POST", "/v1/memories/batch", answer=BatchAnswer, of_team=True))
def remember_batch(call: Call, body: BatchBody) -> BatchAnswer:
    """Store up to 1000 memories in one transaction: all or none."""
    receipts = memories.write_memories(call.workspace, [item.record(call.caller) for item in body.items])
    return BatchAnswer(results=[answers.ReceiptAnswer.model_validate(receipt) for receipt in receipts])


@api.route(Endpoint("GET", "/v1/memories", answer=answers.MemoryPage, problems=(404,)))
def list_memories(call: Call, query: bodies.ListQuery) -> Page[Memory]:
    """List memories, newest first."""
    return memories.list_memories(call.workspace, query.filter(call.caller), query.limit, query.before)


@api.route(Endpoint("GET", "/v1/memories/{memory_id}", answer=RecordAnswer, problems=(404,), of_team=True))
def read_memory(call: Call, memory_id: str, query: ReadQuery) -> RecordAnswer:  # noqa: ARG001 - says of whose server
    """Read one memory with provenance, edges, entities and history."""
    record = memories.read_record(call.workspace, memory_id)
    require_readable(record.memory, call.caller)
    _with_tag(record.memory)
    known = {
        "provenance": record,
        "edges": record.edges,
        "entities": record.entities,
        "history": record.history,
        "chain": list_readable(record.chain, call.caller),
    }
    return RecordAnswer.model_validate({**dict(answers.MemoryAnswer.model_validate(record.memory)), **known})


@api.route(Endpoint("PATCH", "/v1/memories/{memory_id}", answer=answers.MemoryAnswer, problems=(404, 409)))
def edit_memory(call: Call, body: bodies.PatchBody, memory_id: str) -> Memory:
    """Change a memory. Old texts, tags and metadata stay in its history."""
    return _with_tag(memories.edit(call.workspace, memory_id, body.record(), call.expected))


@api.route(Endpoint("DELETE", "/v1/memories/{memory_id}", answer=ForgottenAnswer, problems=(404,)))
def forget_memory(call: Call, query: DeleteQuery, memory_id: str) -> ForgottenAnswer:
    """Archive a memory, or with hard=true delete every trace of it. Purging it again changes nothing."""
    if query.hard:
        call.require(Role.OWNER)
        memories.purge(call.workspace, call.container.feedback, memory_id, call.expected)
        return ForgottenAnswer(id=memory_id, purged=True, archived_at=None)
    memory = memories.archive(call.workspace, memory_id, call.expected)
    return ForgottenAnswer(id=memory.id, purged=False, archived_at=memory.archived_at)


@api.route(Endpoint("POST", "/v1/memories/{memory_id}/restore", answer=answers.MemoryAnswer, problems=(404, 409)))
def restore_memory(call: Call, memory_id: str) -> Memory:
    """Restore an archived memory."""
    return _with_tag(memories.restore(call.workspace, memory_id, call.expected))


@api.route(Endpoint("POST", "/v1/memories/{memory_id}/move", answer=answers.ReceiptAnswer, problems=(404, 409)))
def move_memory(call: Call, body: MoveBody, memory_id: str) -> Receipt:
    """Move a memory to another workspace. The original is archived here."""
    return memories.move(call.workspace, call.enter(body.workspace, Role.WRITER), memory_id)


@api.route(
    Endpoint(
        "POST",
        "/v1/memories/{memory_id}/share",
        answer=answers.MemoryAnswer,
        body_required=False,
        problems=(404, 409),
    )
)
def share_memory(call: Call, body: ShareBody, memory_id: str) -> Memory:
    """Share a personal memory with all members of a workspace."""
    target = call.enter(body.workspace or call.named_workspace or DEFAULT_WORKSPACE, Role.WRITER)
    return sharing.share_memory(call.workspace, target, memory_id)


@api.route(Endpoint("DELETE", "/v1/memories/{memory_id}/share", answer=answers.MemoryAnswer, problems=(404, 409)))
def withdraw_memory(call: Call, memory_id: str) -> Memory:
    """Stop sharing a memory; only its person can see it again."""
    return sharing.withdraw_memory(call.workspace, memory_id)


@api.route(Endpoint("POST", "/v1/memories/{memory_id}/edges", answer=EdgesAnswer, status=201, problems=(404,)))
def add_edge(call: Call, body: bodies.EdgeBody, memory_id: str) -> Page[Edge]:
    """Link a memory to another memory."""
    return Page(memories.add_edge(call.workspace, memory_id, body.record()))


@api.route(Endpoint("DELETE", "/v1/memories/{memory_id}/edges", answer=EdgesAnswer, problems=(404, 409)))
def remove_edge(call: Call, query: EraseQuery, memory_id: str) -> Page[Edge]:
    """Remove an edge."""
    return Page(memories.remove_edge(call.workspace, memory_id, query.kind, query.to))
