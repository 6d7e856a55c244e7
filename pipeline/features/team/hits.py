"""Read the results of a team's server in the form of this machine's own results."""

from collections.abc import Mapping
from typing import Any

from pipeline.kernel.enums import Kind, Sensitivity, Source, Tier, Trust
from pipeline.kernel.records import Filter, Memory, Scope
from pipeline.kernel.records.recall import Annotations, Hit, Query
from pipeline.text.normalize import content_hash

# A sequence number that no row of this machine has.
ELSEWHERE = -1
MOST = 100
PREPARED = ("decisions", "facts", "memories")


def recall_body_of(query: Query) -> dict[str, Any]:
    """Return a query as the body of a server's recall. The server knows the person by the token."""
    filters = query.filter
    asked = {
        "query": query.text,
        "k": min(query.k, MOST),
        "kinds": list(filters.kinds),
        "since": filters.since,
        "until": filters.until,
        "as_of": filters.as_of,
        "branch": filters.branch,
        "tags": list(filters.tags) or None,
        "budget_ms": query.budget_ms,
        "min_relevance": query.min_relevance,
    }
    return {name: value for name, value in asked.items() if value is not None}


def is_for_teams(filters: Filter) -> bool:
    """Return whether to send a query to teams. Queries about a session, an agent or a person stay on this machine."""
    return filters.session_id is None and filters.scope in (None, Scope()) and not filters.archived


def read_recalled(answer: Any, team: str) -> tuple[Hit, ...]:
    """Return the results of a recall, best first; raise ValueError, KeyError or TypeError for an invalid answer."""
    return tuple(_read_hit(result, team) for result in answer["results"])


def read_prepared(answer: Any, team: str) -> tuple[Hit, ...]:
    """Return the results of prepare, lessons first; raise the same errors for an invalid answer."""
    lessons = [_read_hit(result, team) for result in answer["lessons"]]
    others = [_read_hit(result, team) for part in PREPARED for result in answer[part]]
    return (*lessons, *sorted(others, key=lambda hit: hit.relevance, reverse=True))


def _read_hit(result: Mapping[str, Any], team: str) -> Hit:
    content = str(result["content"])
    memory = Memory(
        seq=ELSEWHERE,
        id=str(result["id"]),
        content=content,
        kind=Kind(result["kind"]),
        scope=Scope(),
        tags=(),
        metadata={},
        source=Source(result["source"]),
        # Trust on the team's server does not apply here: these are notes of other people.
        trust=Trust.EVIDENCE,
        importance=0.0,
        tier=Tier.WORKING,
        pinned=False,
        session_id=None if result["session_id"] is None else str(result["session_id"]),
        created_at=str(result["created_at"]),
        occurred_at=str(result["occurred_at"]),
        updated_at=str(result["created_at"]),
        archived_at=None,
        content_hash=content_hash(content),
        instructs=bool(result["instructs"]),
        sensitivity=Sensitivity(result.get("sensitivity", Sensitivity.NORMAL)),
    )
    annotations = Annotations(
        contradicted_by=tuple(map(str, result.get("contradicted_by", ()))),
        stale=result.get("stale"),
        superseded_by=result.get("superseded_by"),
    )
    return Hit(memory, float(result["score"]), float(result["relevance"]), annotations=annotations, origin=team)
