"""Distillation: propose lessons from a session to a person."""

from collections.abc import Sequence

from pipeline.features.capture.lessons import propose_lessons
from pipeline.features.capture.model import word_lessons
from pipeline.features.capture.model_context import MAX_CALLS, ModelContext, choose_related, list_open
from pipeline.features.lessons.job import Wording
from pipeline.features.model.extractor import open_model
from pipeline.kernel.records import Filter, Kind, Receipt, Viewer
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.people import owner_of
from pipeline.kernel.store import agent_sessions, memories, refusals, turns
from pipeline.kernel.store.agent_sessions import Action
from pipeline.kernel.store.turns import Turn
from pipeline.kernel.workspace import Workspace, is_incognito
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare

LOOKED_AT = 200


def distill_session(workspace: Workspace, session_id: str, *, asks_model: bool = False) -> list[Receipt]:
    """Propose the lessons of a session for review, except known or refused ones.

    With `asks_model`, the caller waits for the optional model, if capture may use it.
    """
    if is_incognito(workspace, [session_id]):
        return []
    with workspace.database.read() as db:
        session_turns = list(reversed(turns.page(db, session_id, LOOKED_AT, None)))
        did = agent_sessions.list_actions(db, session_id, "", LOOKED_AT)
    worded = _ask_model(workspace, session_turns, did) if asks_model else []
    with workspace.database.read() as db:
        offered = [prepare(draft) for draft in propose_lessons(session_id, session_turns, did, worded)]
        new = [
            item
            for item in offered
            if memories.find_active_text(db, item.memory.scope, item.memory.content_hash) is None
            and refusals.find(db, item.memory.content_hash) is None
        ]
    return commit(workspace.database, new, WritePolicy(suggest=True)) if new else []


def _ask_model(workspace: Workspace, session_turns: Sequence[Turn], did: Sequence[Action]) -> list[Wording]:
    model = open_model(workspace.database, workspace.settings) if workspace.settings.capture_llm else None
    if model is None or not session_turns:
        return []
    session_id = session_turns[-1].session_id
    viewer = Viewer(person=owner_of(session_id), session=session_id, only_normal=True)
    with workspace.database.read() as db:
        known = list_open(db, Filter(kinds=(Kind.LESSON,), viewer=viewer, current=True))
    related = choose_related(known, " ".join(turn.content for turn in session_turns))
    return word_lessons(model, session_turns, ModelContext(did[-MAX_CALLS:], related))
