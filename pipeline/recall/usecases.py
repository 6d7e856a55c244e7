"""Recall: answer queries from a workspace and the personal store, and explain results."""

from dataclasses import replace

from pipeline.features.predictions import store as predictions
from pipeline.kernel.records.recall import Answer, MemoryExplanation, Query
from pipeline.kernel.workspace import Workspace, is_incognito
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter
from pipeline.recall.result_order import OrderStep, of_personal_store, order_hits
from pipeline.recall.search import explain_result, search, search_uncached

# Number of best hits that count as used.
ACCESSED = 10


def recall_memories(workspace: Workspace, contexts: "SearchContexts", feedback: FeedbackWriter, query: Query) -> Answer:
    """Answer a query; record the query and its hits as usage, unless one of its sessions is incognito.

    Results about the person are merged with the workspace's results.
    """
    person = search_person(workspace, contexts, query)
    # What is known about the person can be asked for in a project that has no memories yet.
    is_only_of_person = person is not None and not workspace.exists
    own = Answer((), {}, 0.0) if is_only_of_person else search(contexts.get(workspace), query)
    answer = own if person is None else merge_answers(own, person, of_personal_store(person.hits), query)
    contexts.count(degraded=answer.degraded)
    if not is_incognito(workspace, query.filter.sessions):
        if query.text:
            feedback.record_question(workspace, query.text, is_answered=own.is_stored)
        shown = {id(hit) for hit in answer.hits[:ACCESSED]}
        feedback.record_accesses(workspace, [hit.memory for hit in own.hits if id(hit) in shown])
        if person is not None:
            feedback.record_accesses(workspace.person, [hit.memory for hit in person.hits if id(hit) in shown])
    return answer


def search_person(workspace: Workspace, contexts: "SearchContexts", query: Query) -> Answer | None:
    """Answer a query from the personal store; None if there is none or the query is for another scope."""
    scope = workspace.personal_scope
    person = workspace.personal_store
    if query.filter.scope not in (None, scope) or person is None:
        return None
    return search(contexts.get(person), replace(query, filter=replace(query.filter, scope=scope)))


def merge_answers(own: Answer, other: Answer, step: OrderStep, query: Query) -> Answer:
    """Return an answer with the hits and the channels of another store, which a step merges."""
    channels = dict(other.channels) | dict(own.channels)
    hits = order_hits(own.hits, query, (step,))
    return replace(own, hits=hits, channels=channels, took_ms=own.took_ms + other.took_ms)


def explain_memory(workspace: Workspace, contexts: "SearchContexts", query: Query, memory_id: str) -> MemoryExplanation:
    """Explain why a memory is or is not among a query's hits; raise NotFound for an unknown memory."""
    person = search_person(workspace, contexts, query)
    further = () if person is None else (of_personal_store(person.hits),)
    return explain_result(contexts.get(workspace), query, memory_id, further)


def measure_recall(workspace: Workspace, contexts: "SearchContexts", query: Query) -> Answer:
    """Answer a query without the cache, without recording usage."""
    return search_uncached(contexts.get(workspace), query)


def list_likely_questions(workspace: Workspace, limit: int) -> list[str]:
    """List predicted questions, likeliest first; only the owner of the data directory can read them."""
    if workspace.person_id is not None:
        return []
    with workspace.database.read() as db:
        return [prediction.query for prediction in predictions.list_predictions(db)[:limit]]
