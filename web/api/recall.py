"""Recall: a question to the memory."""

from typing import Any

from pipeline.records.recall import MemoryExplanation, Query
from pipeline.services.recall import explain_memory, recall_memories
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
    session = None if body.viewer is None else body.viewer.session
    answer = recall_memories(
        call.workspace, call.container.contexts, call.container.feedback, _query(call, body), body.session_id, session
    )
    return answer_json(answer, k=body.k, by_session=body.group == "session")


@api.route(
    Endpoint(
        "POST",
        "/v1/recall/why",
        "Say why a memory is or is not among the results of a recall",
        body=bodies.WhyBody,
        answer=answers.WhyAnswer,
        problems=(404,),
    )
)
def explain_one(call: Call) -> MemoryExplanation:
    """Answer why or why not."""
    body: bodies.WhyBody = call.body
    return explain_memory(call.workspace, call.container.contexts, _query(call, body), body.id)


def _query(call: Call, body: bodies.RecallBody) -> Query:
    return Query(
        text=body.query,
        k=body.k * MEMORIES_PER_SESSION if body.group == "session" else body.k,
        filter=body.filter(),
        budget_ms=body.budget_ms or call.workspace.settings.recall_budget_ms,
        explain=body.explain,
    )
