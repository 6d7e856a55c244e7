"""Obey no-save commands: store nothing of a message, a turn or a session that a person does not want kept."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pipeline.features.capture.usecases import take_turns
from pipeline.features.predictions import store as predictions
from pipeline.features.purge.usecases import finish_purges
from pipeline.features.snapshots import job as snapshot
from pipeline.kernel.errors import NotFound
from pipeline.kernel.records import SHORT_ID
from pipeline.kernel.records.hooks import AgentSession, HookAnswer
from pipeline.kernel.store import agent_sessions, hook_runs, impressions, turns, work
from pipeline.kernel.store.purges import OWNER, PurgeAuthority
from pipeline.kernel.store.turns import LastTurn, Message
from pipeline.kernel.times import parse
from pipeline.kernel.workspace import Workspace
from pipeline.recall.feedback import FeedbackWriter
from pipeline.sessions.incognito import begin_incognito, end_incognito
from pipeline.sessions.orders.nosave import NoSave, find_no_save
from pipeline.sessions.orders.unsaved import list_resumed, split_said
from pipeline.text.own_words import is_host_notice
from pipeline.write import revise

# Seconds for messages of the turn before that are still being stored.
PATIENCE_S = 2.0
TELL_NO_TOOL = "Do not store it with a tool or in a file."
SAYS = {
    NoSave.SENTENCE: f"Reverie does not store this message or your answer, as the user asked. {TELL_NO_TOOL}",
    NoSave.SESSION: (
        "From now on, Reverie stores nothing of this session, as the user asked. Earlier memories stay. "
        "Do not store anything with a tool: Reverie refuses it."
    ),
    NoSave.RESUME: "Reverie stores this session again, as the user asked.",
}
IN_READ_ONLY = (
    "Reverie stores nothing of this read-only session. If the user leaves plan mode, they must repeat this command. "
    f"{TELL_NO_TOOL}"
)

# The number of a session's hook runs to look through for the end of its last turn.
LOOKED_AT = 100
# After every message.
NO_TURN = 2**62


@dataclass(frozen=True, slots=True)
class NoSaveService:
    """Obey no-save commands; `usual` is the workspace of projects without their own workspace."""

    usual: Workspace
    feedback: FeedbackWriter

    def run_no_save_command(
        self, workspace: Workspace, session: AgentSession, message: str, find_own: Callable[[], Workspace]
    ) -> HookAnswer | None:
        """Run the no-save command in a prompt and return what to answer; None for other prompts.

        A prompt ends the silent turn before it. `find_own` returns the workspace to which the session writes.
        """
        if is_host_notice(message):
            return None
        if workspace.caller.is_read_only:
            # A session that stores nothing cannot store this command either.
            return None if find_no_save(message) in (None, NoSave.RESUME) else HookAnswer(IN_READ_ONLY, is_kept=False)
        was_silent = session.id is not None and self._end_silent_turn(workspace, session.id)
        command = find_no_save(message)
        if command is None or session.id is None:
            # Without a session, only this prompt can be left out.
            return None if command in (None, NoSave.RESUME) else HookAnswer(SAYS[NoSave.SENTENCE], is_kept=False)
        if command is NoSave.RESUME:
            return self._resume(workspace, session.id)
        stores = list({store.id: store for store in (find_own(), *self._known(workspace))}.values())
        if any(store.access.is_incognito for store in stores):
            return None
        says = self._silence(stores, session.id, command)
        if command is NoSave.TURN:
            # Of a silent turn nothing is stored.
            says = _say_forgotten(0 if was_silent else forget_last_turn(stores, self.feedback, session.id))
        elif command is NoSave.DOUBTFUL_TURN:
            says = _say_archived([] if was_silent else archive_last_turn(stores, session.id))
        return HookAnswer(says, is_kept=False)

    def _silence(self, stores: Sequence[Workspace], session_id: str, command: NoSave) -> str:
        """Store nothing of a session's turn or of the rest of the session; return what to say."""
        # What was said before is written first: it is not a part of what shall not be kept.
        self._flush()
        self.feedback.drop_questions()
        for store in stores:
            if command is NoSave.SESSION:
                begin_incognito(store, session_id)
            else:
                with store.create().write() as db:
                    agent_sessions.begin_silent_turn(db, session_id)
        return SAYS.get(command, "")

    def take_messages(
        self, workspace: Workspace, session: AgentSession, messages: Sequence[Message]
    ) -> tuple[int, list[Message], list[str]]:
        """Store messages that a client sends; return their number, those with commands to run, and what was done.

        No hook ran the commands in them before.
        """
        assert session.id is not None
        done: list[str] = []
        if workspace.exists and _is_incognito(workspace, session.id):
            resumed = list_resumed(messages)
            if resumed is None or self._resume(workspace, session.id) is None:
                return 0, [], []
            done.append(SAYS[NoSave.RESUME])
            messages = resumed
        split = split_said(messages)
        if split.doubts_before and not workspace.access.is_incognito:
            done.append(_say_archived(archive_last_turn([workspace], session.id)))
        if split.forgets_before and not workspace.access.is_incognito:
            done.append(_say_forgotten(forget_last_turn([workspace], self.feedback, session.id)))
        stored = take_turns(workspace, session.id, messages)
        if split.mode is NoSave.SESSION and not workspace.access.is_incognito:
            begin_incognito(workspace, session.id)
            done.append(SAYS[NoSave.SESSION])
        return stored, split.to_store, done

    def _known(self, workspace: Workspace) -> list[Workspace]:
        return [store for store in (workspace, workspace.sibling(self.usual.id)) if store.exists]

    def _end_silent_turn(self, workspace: Workspace, session_id: str) -> bool:
        """End the silent turn of a session; return whether there was one."""
        was_silent = False
        for store in self._known(workspace):
            with store.database.read() as db:
                is_silent = agent_sessions.is_any_turn_silent(db, [session_id])
            if is_silent:
                # The end of that turn is recorded in the background, and must find it silent.
                self._flush()
                with store.database.write() as db:
                    agent_sessions.end_silent_turn(db, session_id)
            was_silent = was_silent or is_silent
        return was_silent

    def _flush(self) -> None:
        """Wait for what is being recorded in the background."""
        with suppress(TimeoutError):
            self.feedback.submit(lambda: None).result(timeout=PATIENCE_S)

    def _resume(self, workspace: Workspace, session_id: str) -> HookAnswer | None:
        """End the incognito mode of a session; None for a session that is not incognito."""
        incognito = [store for store in self._known(workspace) if _is_incognito(store, session_id)]
        if not incognito:
            return None
        # What was said before is read first: nothing of it is kept.
        self._flush()
        for store in incognito:
            end_incognito(store, session_id)
            with store.database.write() as db:
                agent_sessions.end_silent_turn(db, session_id)
        return HookAnswer(SAYS[NoSave.RESUME], is_kept=False)


def _is_incognito(store: Workspace, session_id: str) -> bool:
    with store.database.read() as db:
        return agent_sessions.is_any_incognito(db, [session_id])


def _say_forgotten(count: int) -> str:
    made = f" and {count} memories from it" if count != 1 else " and 1 memory from it"
    return (
        f"Reverie deleted the user's last message{made if count else ''}, as the user asked, and does not store this "
        f"one. {TELL_NO_TOOL}"
    )


def _say_archived(memory_ids: Sequence[str]) -> str:
    ids = ", ".join(f"[{memory_id[-SHORT_ID:]}]" for memory_id in memory_ids)
    archived = f"It archived what it had stored from the message before: {ids}; `reverie restore ID` restores it. "
    return (
        f"{SAYS[NoSave.SENTENCE]} {archived if ids else ''}"
        'Reverie deleted nothing. To delete the message before permanently, the user can say "delete my last message".'
    )


def forget_last_turn(stores: Sequence[Workspace], feedback: FeedbackWriter, session_id: str) -> int:
    """Delete the last turn of a session from some workspaces; return the number of deleted memories."""
    count, is_found = 0, False
    for store in stores:
        if store.exists and not store.access.is_read_only and (turn := _find_last_turn(store, session_id)) is not None:
            is_found = True
            count += _forget_turn(store, feedback, session_id, turn)
    return count if is_found or not stores else _purge_newest(stores, session_id)


def archive_last_turn(stores: Sequence[Workspace], session_id: str) -> list[str]:
    """Archive the memories made of the last turn of a session, and return their ids; the turn stays."""
    archived = []
    for store in stores:
        if store.exists and not store.access.is_read_only and (turn := _find_last_turn(store, session_id)) is not None:
            with store.database.write() as db:
                # Its statements that were not read yet would become memories later.
                work.drop_captures(db, [message.seq for message in turns.list_since(db, session_id, turn)])
            for owner in store.list_changeable():
                archived += _archive_memories(owner, session_id, turn)
    return archived


def _archive_memories(store: Workspace, session_id: str, last_turn: LastTurn) -> list[str]:
    with store.database.read() as db:
        made = [memory for memory in turns.list_memories_since(db, session_id, last_turn) if memory.archived_at is None]
    return [revise.archive(store.database, memory.id).id for memory in made]


def _find_last_turn(workspace: Workspace, session_id: str) -> LastTurn | None:
    """Return the last turn; without messages if the person interrupted it and they are not stored."""
    with workspace.operations.tables.read() as db:
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
        messages = turns.list_since(db, session_id, last_turn)
    count = 0
    for store in workspace.list_changeable():
        with store.database.read() as db:
            meant = [memory.id for memory in turns.list_memories_since(db, session_id, last_turn)]
        count += _purge(store, meant)
    with workspace.database.write() as db:
        turns.forget(db, [turn.seq for turn in messages])
        agent_sessions.forget_actions(db, session_id, last_turn.after)
        impressions.forget_acts(db, session_id, last_turn.after)
        predictions.forget_all(db)
    named = workspace.operations.redact(session_id)
    with workspace.operations.tables.write() as db:
        hook_runs.forget_session(db, named, parse(last_turn.after).timestamp() if last_turn.after else 0)
    texts = {turn.content for turn in messages}
    feedback.submit_logged("no-save", workspace.id, partial(_scrub, workspace, texts, is_purged=count > 0))
    return count


def _purge_newest(stores: Sequence[Workspace], session_id: str) -> int:
    """Purge the last memory of a session whose messages are not stored: a command in a prompt stored it."""
    newest = []
    for store in {store.id: store for workspace in stores for store in workspace.list_changeable()}.values():
        with store.database.read() as db:
            memory = turns.find_last_memory_of_session(db, session_id)
        if memory is not None:
            newest.append((memory.created_at, store.id, memory.id, store))
    if not newest:
        return 0
    *_, memory_id, store = max(newest)
    return _purge(store, [memory_id])


def _purge(store: Workspace, memory_ids: Sequence[str]) -> int:
    if not memory_ids:
        return 0
    by = OWNER if store.person_id is None else PurgeAuthority(store.person_id, (store.id,))
    with store.database.write() as db:
        return len(revise.purge_existing(db, memory_ids, by))


def _scrub(workspace: Workspace, texts: set[str], *, is_purged: bool) -> None:
    """Delete messages from the snapshots of the store, and from its write-ahead log."""
    with suppress(NotFound):
        snapshot.delete_matching_texts(workspace.database, workspace.paths.snapshots, texts.__contains__)
        workspace.database.erase_deleted_data()
        workspace.operations.tables.erase_deleted_data()
    if is_purged:
        finish_purges(workspace)
