"""From records to the JSON of the contract, where an endpoint still returns JSON instead of a record."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from pipeline.records import Memory, Receipt
from pipeline.records.recall import Answer, Hit
from pipeline.store.admissions import Decision
from pipeline.times import utc_text
from web.api import answers


def memory_json(memory: Memory) -> dict[str, Any]:
    """Render a memory."""
    return answers.MemoryAnswer.model_validate(memory).model_dump(mode="json")


def decision_json(decision: Decision) -> dict[str, Any]:
    """Render what the door decided."""
    return answers.AdmissionAnswer.model_validate(decision).model_dump(mode="json")


def page_json(items: Sequence[Any], limit: int, cursor: Callable[[Any], int], render: Callable[[Any], Any]) -> Any:
    """Render a page of a list that was asked for one item more than the page holds."""
    page = items[:limit]
    more = len(items) > len(page)
    return {"items": [render(item) for item in page], "next_cursor": str(cursor(page[-1])) if more else None}


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """Render the answer to a write, without the parts that do not apply."""
    return answers.ReceiptAnswer.model_validate(receipt).model_dump(mode="json")


def answer_json(answer: Answer, *, k: int, by_session: bool) -> dict[str, Any]:
    """Render the answer to a recall."""
    return {
        "results": _sessions(answer, k) if by_session else [hit_json(hit) for hit in answer.hits[:k]],
        "took_ms": answer.took_ms,
        "channels": {c: {"state": r.state, "took_ms": r.took_ms} for c, r in answer.channels.items()},
        "degraded": answer.degraded,
    }


def hit_json(hit: Hit) -> dict[str, Any]:
    """Render one result."""
    return answers.HitAnswer.model_validate(hit).model_dump(mode="json")


def seconds_text(moment: float) -> str:
    """Render seconds since the epoch."""
    return utc_text(datetime.fromtimestamp(moment, UTC))


def _sessions(answer: Answer, k: int) -> list[dict[str, Any]]:
    # The best memory decides for its session; one without a session belongs to none.
    grouped: dict[str, list[Hit]] = {}
    for hit in answer.hits:
        if hit.memory.session_id is not None:
            grouped.setdefault(hit.memory.session_id, []).append(hit)
    return [
        {"session_id": session, "score": round(hits[0].score, 6), "best": [hit_json(hit) for hit in hits[:3]]}
        for session, hits in list(grouped.items())[:k]
    ]
