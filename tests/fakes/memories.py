"""A memory that is in no store, for tests of code that only reads a memory."""

from pipeline.kernel.records import Kind, Memory, Scope, Source, Tier, Trust

PORT_DECISION = Memory(
    seq=1,
    id="01ARZ3NDEKTSV4RRFFQ69G5FAV",
    content="The port is 8123",
    kind=Kind.DECISION,
    scope=Scope(),
    tags=(),
    metadata={},
    source=Source.USER,
    trust=Trust.TRUSTED,
    importance=0.5,
    tier=Tier.WORKING,
    pinned=False,
    session_id=None,
    created_at="2026-01-02T03:04:05.000Z",
    occurred_at="2026-01-01T03:04:05.000Z",
    updated_at="2026-01-02T03:04:05.000Z",
    archived_at=None,
    content_hash="",
)
