"""What a team's server answers to a recall, read as what this machine's own recall finds."""

from collections.abc import Mapping
from typing import Any

from pipeline.enums import Kind, Source, Tier, Trust
from pipeline.records import Filter, Memory, Scope
from pipeline.records.recall import Annotations, Hit, Query
from pipeline.text.normalize import content_hash

# No row of this machine has it.
ELSEWHERE = -1
MOST = 100
PREPARED = ("decisions", "facts", "memories")


def question_of(query: Query) -> dict[str, Any]:
    """Return a query as a server's recall takes it; who asks it knows by the token."""
    wanted = query.filter
    asked = {
        "query": query.text,
        "k": min(query.k, MOST),
        "kinds": list(wanted.kinds),
        "since": wanted.since,
        "until": wanted.until,
        "as_of": wanted.as_of,
        "branch": wanted.branch,
        "budget_ms": query.budget_ms,
        "min_relevance": query.min_relevance,
    }
    return {name: value for name, value in asked.items() if value is not None}


def is_for_teams(wanted: Filter) -> bool:
    """Tell whether a question reaches beyond this machine: one about a session, an agent or a person does not."""
    return wanted.session_id is None and wanted.scope in (None, Scope()) and not wanted.archived


def read_recalled(answer: Any, team: str) -> tuple[Hit, ...]:
    """Return what a recall found, best first; raise ValueError, KeyError or TypeError for what is no answer."""
    return tuple(_read_hit(one, team) for one in answer["results"])


def read_prepared(answer: Any, team: str) -> tuple[Hit, ...]:
    """Return what a server would tell before a message, rules first; raises as above."""
    lessons = [_read_hit(one, team) for one in answer["lessons"]]
    others = [_read_hit(one, team) for part in PREPARED for one in answer[part]]
    return (*lessons, *sorted(others, key=lambda hit: hit.relevance, reverse=True))


def _read_hit(found: Mapping[str, Any], team: str) -> Hit:
    content = str(found["content"])
    memory = Memory(
        seq=ELSEWHERE,
        id=str(found["id"]),
        content=content,
        kind=Kind(found["kind"]),
        scope=Scope(),
        tags=(),
        metadata={},
        source=Source(found["source"]),
        # Whoever vouches for it there, here it is what others noted.
        trust=Trust.EVIDENCE,
        importance=0.0,
        tier=Tier.WORKING,
        pinned=False,
        session_id=None if found["session_id"] is None else str(found["session_id"]),
        created_at=str(found["created_at"]),
        occurred_at=str(found["occurred_at"]),
        updated_at=str(found["created_at"]),
        archived_at=None,
        content_hash=content_hash(content),
        instructs=bool(found["instructs"]),
    )
    annotations = Annotations(
        contradicted_by=tuple(map(str, found.get("contradicted_by", ()))),
        stale=found.get("stale"),
        superseded_by=found.get("superseded_by"),
    )
    return Hit(memory, float(found["score"]), float(found["relevance"]), annotations=annotations, origin=team)
