"""The queue of a workspace: what waits, what failed for good, who works."""

import time
from typing import Any

from config.owner import is_alive
from pipeline.jobs.rebuild import request_rebuild
from pipeline.store import work
from web.api import answers, bodies
from web.api.render import seconds_text
from web.endpoint import Api, Call, Endpoint

api = Api("queue")


@api.route(
    Endpoint(
        "GET",
        "/v1/queue",
        "Count what waits and what failed; pending all 0 means that everything written is digested",
        answer=answers.QueueAnswer,
        problems=(404,),
    )
)
def queue(call: Call) -> dict[str, Any]:
    """Count the work of a workspace."""
    with call.front.databases.get(call.workspace_id).read() as db:
        pending, dead, oldest = work.pending(db), work.dead(db), work.oldest_pending(db)
    workers = [worker for worker in call.front.operations.workers() if is_alive(worker.owner)]
    return {
        "pending": pending,
        "dead": dead,
        "oldest_pending_s": None if oldest is None else round(max(0.0, time.time() - oldest), 3),
        "workers": [
            {"owner": w.owner, "started_at": seconds_text(w.started_at), "seen_at": seconds_text(w.seen_at)}
            for w in workers
        ],
    }


@api.route(
    Endpoint(
        "POST",
        "/v1/queue/retry",
        "Give dead letters a fresh start",
        body=bodies.RetryBody,
        body_required=False,
        answer=answers.RetriedAnswer,
        problems=(404, 503),
    )
)
def retry(call: Call) -> dict[str, Any]:
    """Retry the dead letters of one stage or of all."""
    with call.front.databases.get(call.workspace_id).write() as db:
        retried = work.retry(db, call.body.stage)
    return {"retried": retried}


@api.route(
    Endpoint(
        "POST",
        "/v1/rebuild",
        "Compute every derived index of a workspace again from its memories; the queue tells how far it is",
        answer=answers.RebuildAnswer,
        problems=(404, 503),
    )
)
def rebuild(call: Call) -> dict[str, Any]:
    """Queue every memory of a workspace for its indexes."""
    queued = request_rebuild(call.front.databases.get(call.workspace_id))
    return {"queued": queued}
