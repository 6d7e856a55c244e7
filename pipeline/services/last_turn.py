"""Delete the last turn of a session permanently, with the memories made of it, or only archive these memories."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from pipeline.errors import NotFound
from pipeline.feedback.writer import FeedbackWriter
from pipeline.jobs import snapshot
from pipeline.services.purges import finish_purges
from pipeline.store import agent_sessions, conclusions, hook_runs, memories, predictions, turns, work
from pipeline.store.purges import OWNER, PurgeAuthority
from pipeline.store.turns import LastTurn
from pipeline.times import parse
from pipeline.workspace import Workspace
from pipeline.write import revise

# The number of a session's hook runs to look through for the end of its last turn.
LOOKED_AT = 100
# After every message.
NO_TURN = 2**62


def forget_last_turn(stores: Sequence[Workspace], feedback: FeedbackWriter, session_id: str) -> int:
    """Delete the last turn of a session from some workspaces; return the number of deleted memories."""
    count, is_found = 0, False
    for store in stores:
        if store.exists and not store.settings.read_only and (turn := _find_last_turn(store, session_id)) is not None:
            is_found = True
            count += _forget_turn(store, feedback, session_id, turn)
    return count if is_found or not stores else _purge_newest(stores, session_id)


def archive_last_turn(stores: Sequence[Workspace], session_id: str) -> list[str]:
    """Archive the memories made of the last turn of a session, and return their ids; the turn stays."""
    archived = []
    for store in stores:
        if store.exists and not store.settings.read_only and (turn := _find_last_turn(store, session_id)) is not None:
            with store.database.write() as db:
                # Its statements that were not read yet would become memories later.
                work.drop_captures(db, [message.seq for message in turns.list_since(db, session_id, turn.seq)])
            for owner in (store, store.person):
                archived += _archive_memories(owner, session_id, turn)
    return archived


def _archive_memories(store: Workspace, session_id: str, last_turn: LastTurn) -> list[str]:
    if not store.exists:
        return []
    with store.database.read() as db:
        made = [memory for memory in turns.list_memories_since(db, session_id, last_turn) if memory.archived_at is None]
    return [revise.archive(store.database, memory.id).id for memory in made]


def _find_last_turn(workspace: Workspace, session_id: str) -> LastTurn | None:
    """Return the last turn; without messages if the person interrupted it and they are not stored."""
    with workspace.operations.read() as db:
        named = workspace.operations.redact(session_id)
        runs = hook_runs.page(db, LOOKED_AT, None, workspace.id, named, workspace.person_id)
    last_event = next((run.event for run in runs if run.event in ("UserPromptSubmit", "Stop")), None)
    with workspace.database.read() as db:
        last_turn = turns.find_last_of_person(db, session_id)
        began = agent_sessions.find_turn_start(db, session_id)
        last = turns.by_seqs(db, [] if last_turn is None else [last_turn.seq])
    if last_event != "UserPromptSubmit" or began is None:
        return last_turn
    ended_at = next((run.at for run in runs if run.event == "Stop"), 0.0)
    return last_turn if any(parse(message.at).timestamp() > ended_at for message in last) else LastTurn(NO_TURN, began)


def _forget_turn(workspace: Workspace, feedback: FeedbackWriter, session_id: str, last_turn: LastTurn) -> int:
    feedback.drop_questions()
    with workspace.database.read() as db:
        messages = turns.list_since(db, session_id, last_turn.seq)
    count = 0
    for store in (workspace, workspace.person):
        if store.exists:
            with store.database.read() as db:
                meant = [memory.id for memory in turns.list_memories_since(db, session_id, last_turn)]
            count += _purge(store, meant)
    with workspace.database.write() as db:
        turns.forget(db, [turn.seq for turn in messages])
        conclusions.request(db, [session_id], time.time())
        agent_sessions.forget_actions(db, session_id, last_turn.after)
        predictions.purge(db)
    named = workspace.operations.redact(session_id)
    with workspace.operations.write() as db:
        hook_runs.forget_session(db, named, parse(last_turn.after).timestamp() if last_turn.after else 0)
    texts = {turn.content for turn in messages}
    feedback.submit_logged("no-save", workspace.id, partial(_scrub, workspace, texts, is_purged=count > 0))
    return count


def _purge_newest(stores: Sequence[Workspace], session_id: str) -> int:
    """Purge the last memory of a session whose messages are not stored: a command in a prompt stored it."""
    newest = []
    for store in {store.id: store for workspace in stores for store in (workspace, workspace.person)}.values():
        if store.exists and not store.settings.read_only:
            with store.database.read() as db:
                memory = turns.find_last_memory_of_session(db, session_id)
            if memory is not None:
                newest.append((memory.created_at, store.id, memory.id, store))
    if not newest:
        return 0
    *_, memory_id, store = max(newest)
    return _purge(store, [memory_id])


def _purge(store: Workspace, memory_ids: Sequence[str]) -> int:
    by = OWNER if store.person_id is None else PurgeAuthority(store.person_id, (store.id,))
    count = 0
    if memory_ids:
        with store.database.write() as db:
            # Purging a memory may also delete others.
            present = (memories.get(db, memory_id) for memory_id in memory_ids)
            count = sum(len(revise.purge_memory(db, memory, by)) for memory in present if memory is not None)
    return count


def _scrub(workspace: Workspace, texts: set[str], *, is_purged: bool) -> None:
    """Delete messages from the snapshots of the store, and from its write-ahead log."""
    with suppress(NotFound):
        snapshot.delete_matching_texts(workspace.database, workspace.paths.snapshots, texts.__contains__)
        workspace.database.erase_deleted_data()
        workspace.operations.erase_deleted_data()
    if is_purged:
        finish_purges(workspace)
