"""From records to the JSON of the contract."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipeline.anchors import is_stale
from pipeline.recall.explain import Verdict
from pipeline.recall.query import Answer, Hit, Signals
from pipeline.records import Anchor, HistoryEntry, Memory, Receipt
from pipeline.store.admissions import Decision
from pipeline.store.edges import Edge
from pipeline.store.entities import LinkedEntity
from pipeline.times import utc_text


def memory_json(memory: Memory) -> dict[str, Any]:
    """Render a memory."""
    return {
        "id": memory.id,
        "content": memory.content,
        "kind": memory.kind,
        "scope": {"kind": memory.scope.kind, "id": memory.scope.id},
        "tags": list(memory.tags),
        "metadata": dict(memory.metadata),
        "source": memory.source,
        "trust": memory.trust,
        "importance": memory.importance,
        "tier": memory.tier,
        "pinned": memory.pinned,
        "session_id": memory.session_id,
        "created_at": memory.created_at,
        "occurred_at": memory.occurred_at,
        "updated_at": memory.updated_at,
        "archived_at": memory.archived_at,
        "content_hash": memory.content_hash,
        "recall_count": memory.recall_count,
        "merge_count": memory.merge_count,
        "details": dict(memory.details),
        "anchor": None if memory.anchor is None else _anchor(memory.anchor),
        "branch": memory.branch,
        "candidate": memory.candidate,
        "instructs": memory.instructs,
        "valid_from": memory.valid_from,
        "valid_to": memory.valid_to,
    }


@dataclass(frozen=True, slots=True)
class Record:
    """A memory and everything that is known of it."""

    memory: Memory
    admission: Decision | None
    edges: Sequence[Edge]
    entities: Sequence[LinkedEntity]
    history: Sequence[HistoryEntry]


def record_json(record: Record) -> dict[str, Any]:
    """Render a memory with everything that is known of it."""
    memory = record.memory
    return memory_json(memory) | {
        "provenance": {
            "source": memory.source,
            "trust": memory.trust,
            "session_id": memory.session_id,
            "written_at": memory.created_at,
            "admission": None if record.admission is None else decision_json(record.admission),
        },
        "edges": [edge_json(edge) for edge in record.edges],
        "entities": [{"id": e.id, "kind": e.kind, "name": e.name, "surface": e.surface} for e in record.entities],
        "history": [
            {"at": h.at, "event": h.event, "content": h.content, "detail": dict(h.detail)} for h in record.history
        ],
    }


def edge_json(edge: Edge) -> dict[str, Any]:
    """Render an edge as one of its memories sees it."""
    direction = "out" if edge.outgoing else "in"
    return {"kind": edge.kind, "direction": direction, "id": edge.other_id, "made_by": edge.made_by, "at": edge.at}


def decision_json(decision: Decision) -> dict[str, Any]:
    """Render what the door decided."""
    return {
        "id": decision.id,
        "at": decision.at,
        "outcome": decision.outcome,
        "score": decision.score,
        "reasons": list(decision.reasons),
        "source": decision.source,
        "kind": decision.kind,
    }


def page_json(items: Sequence[Any], limit: int, cursor: Callable[[Any], int], render: Callable[[Any], Any]) -> Any:
    """Render a page of a list that was asked for one item more than the page holds."""
    page = items[:limit]
    more = len(items) > len(page)
    return {"items": [render(item) for item in page], "next_cursor": str(cursor(page[-1])) if more else None}


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """Render the answer to a write, without the parts that do not apply."""
    answer: dict[str, Any] = {"id": receipt.id, "outcome": receipt.outcome}
    if receipt.duplicate_of is not None:
        answer["duplicate_of"] = receipt.duplicate_of
    if receipt.reason is not None:
        answer["reason"] = receipt.reason
    if receipt.replaced is not None:
        answer["replaced"] = receipt.replaced
    return answer


def answer_json(answer: Answer, *, k: int, by_session: bool, explain: bool) -> dict[str, Any]:
    """Render the answer to a recall."""
    results = (
        _sessions(answer, k, explain=explain) if by_session else [hit_json(h, explain=explain) for h in answer.hits[:k]]
    )
    return {
        "results": results,
        "took_ms": answer.took_ms,
        "channels": {c: {"state": r.state, "took_ms": r.took_ms} for c, r in answer.channels.items()},
        "degraded": answer.degraded,
    }


def hit_json(hit: Hit, *, explain: bool) -> dict[str, Any]:
    """Render one result."""
    memory = hit.memory
    result: dict[str, Any] = {
        "id": memory.id,
        "content": memory.content,
        "kind": memory.kind,
        "score": round(hit.score, 6),
        "created_at": memory.created_at,
        "occurred_at": memory.occurred_at,
        "session_id": memory.session_id,
        "source": memory.source,
        "trust": memory.trust,
        "instructs": memory.instructs,
    }
    if hit.remarks.stale is not None:
        result["stale"] = hit.remarks.stale
    if hit.remarks.contradicted_by:
        result["contradicted_by"] = list(hit.remarks.contradicted_by)
    if explain and hit.signals is not None:
        result["signals"] = _signals(hit.signals, hit.relevance)
    return result


def why_json(verdict: Verdict) -> dict[str, Any]:
    """Render why a memory is or is not among the results."""
    return {
        "id": verdict.memory.id,
        "rank": verdict.rank,
        "score": None if verdict.score is None else round(verdict.score, 6),
        "channels": {
            channel: {"rank": seen.rank, "score": round(seen.score, 6), "considered": seen.considered}
            for channel, seen in verdict.channels.items()
        },
        "reasons": list(verdict.reasons),
        "signals": None if verdict.signals is None else _signals(verdict.signals, verdict.relevance),
    }


def seconds_text(moment: float) -> str:
    """Render seconds since the epoch."""
    return utc_text(datetime.fromtimestamp(moment, UTC))


def _anchor(anchor: Anchor) -> dict[str, Any]:
    lines = None if anchor.first_line is None else [anchor.first_line, anchor.last_line or anchor.first_line]
    return {"path": anchor.path, "lines": lines, "content_hash": anchor.content_hash, "stale": is_stale(anchor)}


def _sessions(answer: Answer, k: int, *, explain: bool) -> list[dict[str, Any]]:
    # The best memory decides for its session; one without a session belongs to none.
    grouped: dict[str, list[Hit]] = {}
    for hit in answer.hits:
        if hit.memory.session_id is not None:
            grouped.setdefault(hit.memory.session_id, []).append(hit)
    return [
        {
            "session_id": session,
            "score": round(hits[0].score, 6),
            "best": [hit_json(hit, explain=explain) for hit in hits[:3]],
        }
        for session, hits in list(grouped.items())[:k]
    ]


def _signals(signals: Signals, relevance: float) -> dict[str, Any]:
    return {
        "channels": {
            channel: {
                "rank": signal.rank,
                "score": round(signal.score, 6),
                "contribution": round(signal.contribution, 6),
            }
            for channel, signal in signals.channels.items()
        },
        "parts": {name: round(value, 6) for name, value in signals.parts.items() if value},
        "lifted_by": [
            {"part": lift.part, "id": lift.memory_id, "contribution": round(lift.contribution, 6)}
            for lift in signals.lifted_by
        ],
        "coverage": round(signals.coverage, 6),
        "closeness": round(signals.closeness, 6),
        "relevance": round(relevance, 6),
    }
