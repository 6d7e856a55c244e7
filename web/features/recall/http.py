"""Recall: search the memories."""

from collections.abc import Sequence

from pipeline.features.memories.usecases import check_open, read_chain
from pipeline.features.team.usecases import recall_beside_teams
from pipeline.kernel.records.recall import Answer, Hit, Query
from pipeline.kernel.workspace import find_home, resolve_id
from pipeline.recall.usecases import explain_memory
from pipeline.sessions.search_usecases import find_sessions_beside
from web.http import answers, bodies
from web.http.access import list_readable, require_readable
from web.http.call import Call
from web.http.endpoint import Api, Endpoint

api = Api("recall")

# k sessions need more than k memories.
MEMORIES_PER_SESSION = 12


class WhyBody(bodies.RecallBody):
    """A recall, and the memory whose rank to explain."""

    query: bodies.Query
    id: bodies.MemoryId


@api.route(Endpoint("POST", "/v1/recall", answer=answers.RecallAnswer, problems=(404,), reads=True))
def recall(call: Call, body: bodies.RecallBody) -> answers.RecallAnswer:
    """Search memories within a deadline, best first."""
    home = call.container
    query = _query(call, body)
    answer = recall_beside_teams(call.workspace, home.contexts, home.feedback, home.teams, query)
    grouped = body.group == "session"
    sessions = [] if grouped else find_sessions_beside(call.workspace, home.contexts, query, answer)
    return answers.RecallAnswer(
        results=_group_by_session(answer, body.k) if grouped else _hits(answer.hits[: body.k]),
        sessions=[answers.FoundSessionAnswer.model_validate(session) for session in sessions],
        took_ms=answer.took_ms,
        channels={name: answers.ChannelAnswer.model_validate(report) for name, report in answer.channels.items()},
        degraded=answer.degraded,
    )


@api.route(Endpoint("POST", "/v1/recall/why", answer=answers.WhyAnswer, problems=(404,), reads=True))
def explain_one(call: Call, body: WhyBody) -> answers.WhyAnswer:
    """Explain why a memory is or is not among the results of a recall."""
    memory_id = resolve_id(call.workspace, body.id)
    home = find_home(call.workspace, memory_id)
    check_open(home, memory_id)
    explanation = explain_memory(home, call.container.contexts, _query(call, body), memory_id)
    require_readable(explanation.memory, call.caller)
    chain = [answers.ChainLink.model_validate(link) for link in list_readable(read_chain(home, memory_id), call.caller)]
    return answers.WhyAnswer.model_validate(explanation).model_copy(update={"chain": chain})


def _query(call: Call, body: bodies.RecallBody) -> Query:
    return Query(
        text=body.query,
        k=body.k * MEMORIES_PER_SESSION if body.group == "session" else body.k,
        filter=body.filter(call.caller),
        budget_ms=body.budget_ms or call.workspace.settings.recall_budget_ms,
        explain=body.explain,
        min_relevance=body.min_relevance,
    )


def _group_by_session(answer: Answer, k: int) -> list[answers.SessionHitAnswer]:
    # The best memory decides the rank of its session; memories without a session are left out.
    grouped: dict[str, list[Hit]] = {}
    for hit in answer.hits:
        if hit.memory.session_id is not None:
            grouped.setdefault(hit.memory.session_id, []).append(hit)
    return [
        answers.SessionHitAnswer(session_id=session, score=hits[0].score, best=_hits(hits[:3]))
        for session, hits in list(grouped.items())[:k]
    ]


def _hits(hits: Sequence[Hit]) -> list[answers.HitAnswer]:
    return [answers.HitAnswer.model_validate(hit) for hit in hits]
