"""What there is and how it fares: health, workspaces, statistics, errors, metrics."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from config.version import VERSION
from pipeline.store import changes, embeddings, entities, memories, meta, predictions, tail
from pipeline.times import utc_text
from web.api import answers, bodies
from web.api.render import seconds_text
from web.endpoint import Api, Call, Endpoint
from web.metrics import registry_of

api = Api("observe")

# Seven days, with today.
SCORED = timedelta(days=6)


@api.route(
    Endpoint("GET", "/healthz", "Tell that the server answers; open without a token", answer=answers.HealthAnswer)
)
def healthz(call: Call) -> dict[str, Any]:
    """Answer that the front lives."""
    now = time.monotonic()
    return {
        "status": "ok",
        "version": VERSION,
        "encoder": call.front.encoder.state,
        "uptime_s": round(now - call.front.started, 3),
        "idle_s": round(now - call.front.requested, 3),
    }


@api.route(Endpoint("GET", "/v1/workspaces", "List the workspaces of this home", answer=answers.WorkspacePage))
def workspaces(call: Call) -> dict[str, Any]:
    """List workspaces with their number of active memories."""
    items = []
    for workspace in call.front.settings.paths.workspace_ids():
        with call.front.databases.get(workspace).read() as db:
            items.append({"id": workspace, "memories": memories.counts(db)["active"]})
    return {"items": items, "next_cursor": None}


@api.route(
    Endpoint(
        "GET",
        "/v1/stats",
        "Count what a workspace holds and how large it is",
        answer=answers.StatsAnswer,
        problems=(404,),
    )
)
def stats(call: Call) -> dict[str, Any]:
    """Count memories, entities, index rows and bytes."""
    paths = call.front.settings.paths.workspace(call.workspace_id)
    model = call.front.settings.embedding_model
    with call.front.databases.get(call.workspace_id).read() as db:
        counted = {
            "workspace": call.workspace_id,
            "generation": changes.generation(db),
            "memories": memories.counts(db),
            "graph": entities.counts(db),
            "index": {
                "segment": meta.get(db, meta.SEGMENT),
                "tail_rows": tail.size(db),
                "passages": embeddings.expected_total(db, model),
                "model": model,
                "encoder": call.front.encoder.state,
            },
            "predictions": _foreseen(predictions.score(db, utc_text(datetime.now(UTC) - SCORED)[:10])),
        }
    folders = {"events": paths.events, "vectors": paths.vectors, "lexical": paths.lexical}
    return counted | {"bytes": {name: _size(path) for name, path in folders.items()}}


@api.route(
    Endpoint(
        "GET",
        "/v1/errors",
        "List background errors, newest first",
        query=bodies.PageQuery,
        answer=answers.ErrorPage,
    )
)
def errors(call: Call) -> dict[str, Any]:
    """List the error log of a workspace and of the server itself."""
    found = call.front.operations.errors(
        workspace=call.workspace_id, limit=call.query.limit + 1, before=call.query.before
    )
    page = found[: call.query.limit]
    items = [
        {
            "id": e.seq,
            "at": seconds_text(e.at),
            "workspace": e.workspace,
            "component": e.component,
            "message": e.message,
        }
        for e in page
    ]
    return {"items": items, "next_cursor": str(page[-1].seq) if len(found) > len(page) else None}


@api.route(Endpoint("GET", "/metrics", "Measure requests and queues, as Prometheus text", media_type="text/plain"))
def metrics(call: Call) -> Response:  # noqa: ARG001 - every handler takes a call
    """Expose the metrics."""
    return Response(generate_latest(registry_of()), content_type=CONTENT_TYPE_LATEST)


def _foreseen(score: predictions.Score) -> dict[str, Any]:
    rate = round(score.foreseen / score.asked, 4) if score.asked else None
    return {"asked": score.asked, "foreseen": score.foreseen, "hit_rate": rate}


def _size(path: Any) -> int:
    if path.is_file():
        return sum(f.stat().st_size for f in path.parent.glob(f"{path.name}*"))
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
