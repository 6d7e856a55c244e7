"""Distillation: propose lessons from a session to a person."""

from pipeline.capture.lessons import propose_lessons
from pipeline.records import Receipt
from pipeline.records.write_policy import WritePolicy
from pipeline.store import agent_sessions, memories, refusals, turns
from pipeline.workspace import Workspace, is_incognito
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare

LOOKED_AT = 200


def distill_session(workspace: Workspace, session_id: str) -> list[Receipt]:
    """Propose the lessons of a session for review, except known or refused ones."""
    if is_incognito(workspace, [session_id]):
        return []
    with workspace.database.read() as db:
        session_turns = list(reversed(turns.page(db, session_id, LOOKED_AT, None)))
        did = agent_sessions.list_actions(db, session_id, "", LOOKED_AT)
        offered = [prepare(draft) for draft in propose_lessons(session_id, session_turns, did)]
        new = [
            item
            for item in offered
            if memories.find_active_text(db, item.memory.scope, item.memory.content_hash) is None
            and refusals.find(db, item.memory.content_hash) is None
        ]
    return commit(workspace.database, new, WritePolicy(suggest=True)) if new else []
