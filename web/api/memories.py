"""Memories: write, read, change, forget."""

from typing import Any

from pipeline.errors import NotFound
from pipeline.store import admissions, entities, history
from pipeline.store import memories as table
from pipeline.write import revise
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare, prepare_batch
from pipeline.write.relate import visible_edges
from web.api import answers, bodies
from web.api.render import Record, memory_json, page_json, receipt_json, record_json
from web.endpoint import Api, Call, Endpoint

api = Api("memories")


@api.route(
    Endpoint(
        "POST",
        "/v1/memories",
        "Store a memory; once answered it is durable and findable",
        body=bodies.MemoryBody,
        answer=answers.ReceiptAnswer,
        status=201,
        problems=(503,),
    )
)
def remember(call: Call) -> dict[str, Any]:
    """Store one memory."""
    # Prepared first: a draft that cannot be taken must not make a workspace.
    prepared = prepare(call.body.record())
    receipts = commit(
        call.front.databases.get(call.workspace_id, create=True), [prepared], call.front.write_policy(call.workspace_id)
    )
    return receipt_json(receipts[0])


@api.route(
    Endpoint(
        "POST",
        "/v1/memories/batch",
        "Store up to 1000 memories in one transaction, all or none",
        body=bodies.BatchBody,
        answer=answers.BatchAnswer,
        problems=(503,),
    )
)
def remember_batch(call: Call) -> dict[str, Any]:
    """Store many memories."""
    prepared = prepare_batch([item.record() for item in call.body.items])
    receipts = commit(
        call.front.databases.get(call.workspace_id, create=True), prepared, call.front.write_policy(call.workspace_id)
    )
    return {"results": [receipt_json(receipt) for receipt in receipts]}


@api.route(
    Endpoint(
        "GET",
        "/v1/memories",
        "List memories, newest first",
        query=bodies.ListQuery,
        answer=answers.MemoryPage,
        problems=(404,),
    )
)
def list_memories(call: Call) -> dict[str, Any]:
    """List a page of memories."""
    with call.front.databases.get(call.workspace_id).read() as db:
        found = table.page(db, call.query.filter(), call.query.limit + 1, call.query.before)
    return dict(page_json(found, call.query.limit, lambda memory: memory.seq, memory_json))


@api.route(
    Endpoint(
        "GET",
        "/v1/memories/{memory_id}",
        "Read one memory with provenance, edges, entities and history",
        answer=answers.RecordAnswer,
        problems=(404,),
    )
)
def read_memory(call: Call, memory_id: str) -> dict[str, Any]:
    """Read one memory, archived or not."""
    with call.front.databases.get(call.workspace_id).read() as db:
        memory = table.get(db, memory_id)
        if memory is None:
            raise NotFound("no such memory")
        return record_json(
            Record(
                memory,
                admissions.of(db, memory.id),
                visible_edges(db, memory),
                entities.of(db, memory.seq),
                history.of(db, memory.seq),
            )
        )


@api.route(
    Endpoint(
        "PATCH",
        "/v1/memories/{memory_id}",
        "Change a memory; an edited text keeps the old one in the history",
        body=bodies.PatchBody,
        answer=answers.MemoryAnswer,
        problems=(404, 409, 503),
    )
)
def edit_memory(call: Call, memory_id: str) -> dict[str, Any]:
    """Change some fields of a memory."""
    memory = revise.edit(call.front.databases.get(call.workspace_id), memory_id, call.body.record())
    return memory_json(memory)


@api.route(
    Endpoint(
        "DELETE",
        "/v1/memories/{memory_id}",
        "Archive a memory, or with hard=true purge every trace of it",
        query=bodies.DeleteQuery,
        answer=answers.ForgottenAnswer,
        problems=(404, 503),
    )
)
def forget_memory(call: Call, memory_id: str) -> dict[str, Any]:
    """Archive or purge a memory."""
    database = call.front.databases.get(call.workspace_id)
    if call.query.hard:
        revise.purge(database, memory_id)
        return {"id": memory_id, "purged": True, "archived_at": None}
    memory = revise.archive(database, memory_id)
    return {"id": memory.id, "purged": False, "archived_at": memory.archived_at}


@api.route(
    Endpoint(
        "POST",
        "/v1/memories/{memory_id}/restore",
        "Undo an archive",
        answer=answers.MemoryAnswer,
        problems=(404, 409, 503),
    )
)
def restore_memory(call: Call, memory_id: str) -> dict[str, Any]:
    """Bring an archived memory back."""
    return memory_json(revise.restore(call.front.databases.get(call.workspace_id), memory_id))
