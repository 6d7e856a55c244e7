"""Recall: a question to the memory."""

from typing import Any

from pipeline.recall.query import Query
from pipeline.recall.search import search
from web.api import answers, bodies
from web.api.render import answer_json
from web.endpoint import Api, Call, Endpoint

api = Api("recall")

# Sessions are formed from more memories than are shown, so that k sessions can be filled.
MEMORIES_PER_SESSION = 12


@api.route(
    Endpoint(
        "POST",
        "/v1/recall",
        "Find memories, best first, within a deadline",
        body=bodies.RecallBody,
        answer=answers.RecallAnswer,
        problems=(404,),
    )
)
def recall(call: Call) -> dict[str, Any]:
    """Answer a recall."""
    body: bodies.RecallBody = call.body
    by_session = body.group == "session"
    query = Query(
        text=body.query,
        k=body.k * MEMORIES_PER_SESSION if by_session else body.k,
        filter=body.filter(),
        budget_ms=body.budget_ms or call.front.workspace_settings(call.workspace).recall_budget_ms,
    )
    answer = search(call.front.reader(call.workspace), query)
    return answer_json(answer, k=body.k, by_session=by_session, explain=body.explain)
