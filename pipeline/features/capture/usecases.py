"""Store the messages of sessions for capture, and run the memory commands in them at once."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from sqlite3 import Connection

from ulid import ULID

from config.paths import personal_workspace_of
from pipeline.features.capture import store as near_statements
from pipeline.features.capture.proposals import list_sentences
from pipeline.features.capture.stage import CaptureSettings
from pipeline.features.capture.statement_ends import find_statement_end
from pipeline.features.capture.store import checksum_of
from pipeline.features.lessons.guard_offers import block_rule
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.git.branches import find_side_branch
from pipeline.kernel.records import CAPTURED_TAG, MAX_CONTENT_CHARS, SHORT_ID, Draft, Filter, Memory, Outcome, Source
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.digestion import READING
from pipeline.kernel.records.hooks import AgentSession, SpooledMark
from pipeline.kernel.records.people import owner_of
from pipeline.kernel.records.recall import Hit, Query
from pipeline.kernel.store import agent_sessions, conclusions, memories, turns, work
from pipeline.kernel.store.turns import Message, Role
from pipeline.kernel.times import parse, utc_now
from pipeline.kernel.workspace import Workspace, WorkspaceSettings, is_any_incognito
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.relevance import calibrate
from pipeline.recall.search import search
from pipeline.sessions.command_files import drop_command_text, list_templates
from pipeline.sessions.orders.commands import CommandType, MemoryCommand, read_commands
from pipeline.sessions.orders.nosave import find_no_save
from pipeline.sessions.orders.said_text import LONGEST_NAME, clean_said, name_session
from pipeline.sessions.orders.unsaved import split_said
from pipeline.text.own_words import drop_private, is_host_notice, is_host_text
from pipeline.text.tokens import search_tokens
from pipeline.write import revise
from pipeline.write.accept import accept

# Minimum relevance of a memory to forget, so that no other memory is archived by mistake.
SURELY_MEANT = calibrate(0.6)
# Of a topic, also less relevant memories are looked at: they are meant if they contain its words.
TOPIC_RELEVANCE = 0.0
LOOKED_AT = 20
# More memories than these are hardly "the thing with the classes".
MOST_LOOSELY_MEANT = 3
# The last messages of a session that an order to forget something may mean.
MOST_MEANT = 50
DOUBT = "the order may be part of a pasted text. To confirm it, send it as a prompt of its own."


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A memory command, the memory that it changed, and a description of the result."""

    command: MemoryCommand
    memory: Memory | None
    says: str


@dataclass(frozen=True, slots=True)
class UnsavedStatement:
    """A sentence that capture considered and did not store: its turn, class and probability, and the reason."""

    at: str
    session_id: str
    sentence: str
    label: str
    lasts: float
    reason: str


def list_unsaved_statements(workspace: Workspace, limit: int) -> list[UnsavedStatement]:
    """List the sentences of a person's last turns that were considered and not stored, newest first.

    Those of deleted turns and of incognito sessions are left out.
    """
    with workspace.database.read() as db:
        near = near_statements.list_newest(db)
        seqs = list({statement.turn_seq for statement in near})
        turns_by_seq = {
            turn.seq: turn for turn in turns.by_seqs(db, seqs) if owner_of(turn.session_id) == workspace.person_id
        }
        silent = {turn.seq for turn in turns_by_seq.values() if agent_sessions.is_any_incognito(db, [turn.session_id])}
    sentences = {
        seq: {checksum_of(sentence): sentence for sentence in list_sentences(turn.content)}
        for seq, turn in turns_by_seq.items()
        if seq not in silent
    }
    listed = [
        UnsavedStatement(turn.at, turn.session_id, sentence, statement.label, statement.lasts, statement.reason)
        for statement in near
        if (sentence := sentences.get(statement.turn_seq, {}).get(statement.checksum)) is not None
        and (turn := turns_by_seq[statement.turn_seq])
    ]
    return listed[:limit]


def capture_settings(settings: WorkspaceSettings, workspace_id: str) -> CaptureSettings:
    """Return the capture settings of a workspace; with invalid settings, capture is off."""
    own = settings.get(workspace_id)
    return CaptureSettings(
        WritePolicy(review=own.review, suggest=own.capture == "suggest"),
        is_on=settings.access(workspace_id).captures,
        personal=own.personal,
        find_branch=lambda folder: find_side_branch(Path(folder)),
        is_personal_silent=lambda person: (
            settings.access(personal_workspace_of(person), through=workspace_id).is_silent
        ),
    )


def take_turns(workspace: Workspace, session_id: str, messages: Sequence[Message]) -> int:
    """Store the messages of a session and queue those of people for capture; return the number stored.

    Store nothing if capture is off or the session is incognito.
    """
    if not messages or not workspace.access.captures or is_any_incognito(workspace, [session_id]):
        return 0
    # The hook obeys a command before its message is stored; what a host delivers late is only left out.
    follows_silence = follows_silent_turn(workspace, session_id)
    if follows_silence:
        drop_ended_turn(workspace, session_id)
    split = split_said(messages, follows_silence=follows_silence)
    if not split.to_store:
        return 0
    with workspace.create().write() as db:
        # The session may have become incognito since the check above.
        if agent_sessions.is_any_incognito(db, [session_id]):
            return 0
        return add_turns(db, split.to_store)


def follows_silent_turn(workspace: Workspace, session_id: str) -> bool:
    """Return whether messages of a session may be the answer of a turn that is not stored."""
    if not workspace.exists:
        return False
    with workspace.database.read() as db:
        return agent_sessions.has_ended_turn(db, session_id)


def drop_ended_turn(workspace: Workspace, session_id: str) -> None:
    """Note that the answer of a turn that is not stored was read."""
    with workspace.database.write() as db:
        agent_sessions.drop_ended_turn(db, session_id)


def add_turns(db: Connection, messages: Sequence[Message]) -> int:
    """Store messages in a transaction and queue them for capture and conclusions; return the number stored.

    Leave out what a host wrote into a user's message.
    """
    clean = [message for message in map(_clean, messages) if message.content]
    hashes = [turns.hash_text(message.role, message.content) for message in clean]
    # The session's file may have been read before.
    known = turns.find_copies(db, hashes)
    clean = [message for message, text in zip(clean, hashes, strict=True) if (text, message.at) not in known]
    seqs = turns.add(db, clean)
    conclusions.request(db, {message.session_id for message in clean}, time.time())
    asked = [(seq, message) for seq, message in zip(seqs, clean, strict=True) if message.role is Role.USER]
    if asked:
        work.add(db, [seq for seq, _ in asked], READING, time.time())
        first = asked[0][1]
        agent_sessions.name_session(db, first.session_id, name_session(first.content), first.at)
    return len(clean)


def leave_uncaptured(workspace: Workspace, session_id: str, before: int, topic: str) -> None:
    """Make no memory of what a person said about a topic before a message, or of their last words without a topic."""
    words = set(search_tokens(topic))
    with workspace.database.write() as db:
        said = [turn for turn in turns.page(db, session_id, MOST_MEANT, before) if turn.role is Role.USER]
        meant = [turn.seq for turn in said if words <= set(search_tokens(turn.content))] if words else []
        work.drop_captures(db, meant or ([] if words else [turn.seq for turn in said[:1]]))


def run_memory_commands(
    workspace: Workspace,
    contexts: SearchContexts,
    session: AgentSession,
    message: str,
    mark: SpooledMark | None = None,
) -> list[CommandResult]:
    """Run the commands in a message to remember, forget or block something; change nothing in a read-only workspace.

    A message from the spool has a `mark`. Its commands run once: after an interrupted delivery, only a command to
    remember, whose memory has an id, runs again.
    """
    done, access = [], workspace.access
    for number, command in enumerate(read_commands(drop_private(message))):
        if mark is not None and mark.is_repeated and command.type is not CommandType.REMEMBER:
            continue
        if access.is_read_only:
            why = "who asks is a reader" if access.is_reader else "the workspace is read only"
            refused = CommandResult(command, None, f"Reverie changes nothing here: {why}.")
            done += [] if command.is_loose else [refused]
        elif command.type is CommandType.REMEMBER:
            memory_id = None if mark is None else _choose_id(mark, number)
            done.append(_remember(workspace, session, command, memory_id))
        elif command.type is CommandType.FORGET:
            done += _forget(workspace, contexts, session, command)
        else:
            done += _block(workspace, session, command, message)
    return done


def find_typed(workspace: Workspace, message: str, folder: str) -> str:
    """Return what the person typed of a prompt. A person's files are on their own machine."""
    return message if workspace.person_id is not None else drop_command_text(message, list_templates(folder))


def _block(workspace: Workspace, session: AgentSession, command: MemoryCommand, message: str) -> list[CommandResult]:
    if command.is_doubtful:
        return [CommandResult(command, None, f"Reverie did not block anything: {DOUBT}")]
    blocked = block_rule(workspace, session, command.text, message)
    # Without a rule, the word was meant for the agent.
    return [] if blocked is None else [CommandResult(command, blocked.rule, blocked.says)]


def _choose_id(mark: SpooledMark, number: int) -> str:
    """Return the id of the memory of a command: the same at each delivery of its message."""
    chance = hashlib.blake2b(f"{mark.at_ns} {number}".encode(), digest_size=10).digest()
    return str(ULID.from_bytes((mark.at_ns // 1_000_000).to_bytes(6, "big") + chance))


def _remember(
    workspace: Workspace, session: AgentSession, command: MemoryCommand, memory_id: str | None = None
) -> CommandResult:
    text, length = command.text[:MAX_CONTENT_CHARS], len(command.text)
    source, policy = Source.USER, workspace.write_policy()
    if command.is_doubtful:
        source, policy = Source.AMBIENT, replace(policy, review=True, suggest=True)
    ends = find_statement_end(text, utc_now())
    draft = Draft(text, tags=(CAPTURED_TAG,), session_id=session.id, source=source, id=memory_id, expires_at=ends)
    receipt = accept(workspace.create(), draft, policy)
    if receipt.outcome is Outcome.REJECTED:
        return CommandResult(command, None, f"Reverie did not keep it: {receipt.reason}")
    if receipt.outcome is Outcome.CANDIDATE:
        short_id = receipt.id[-SHORT_ID:]
        return CommandResult(command, None, f"Reverie did not keep [{short_id}] yet: {DOUBT} It waits for review.")
    with workspace.database.read() as db:
        memory = memories.get(db, receipt.id)
    short_id = receipt.id[-SHORT_ID:]
    says = f"Reverie keeps it as [{short_id}]."
    if ends is not None:
        says = f"Reverie keeps it as [{short_id}] until {parse(ends).astimezone() - timedelta(days=1):%Y-%m-%d}."
    if length > len(text):
        says = (
            f"Reverie keeps only the first {len(text):,} of {length:,} characters as [{short_id}]. "
            "Tell the user to send the rest as another message."
        )
    return CommandResult(command, memory, says)


def describe_lost_orders(message: str, error: Exception) -> str | None:
    """Return what to say about the orders in a message that failed; None if it contains none."""
    if is_host_notice(message) or not (read_commands(drop_private(message)) or find_no_save(message)):
        return None
    reason = str(error) if isinstance(error, ReverieError | OSError) else "see `reverie logs errors`"
    lost = f"Reverie did not carry out the order to the memory in this message: {reason}."
    return f"{lost} Tell the user to repeat it later."


def _forget(
    workspace: Workspace, contexts: SearchContexts, session: AgentSession, command: MemoryCommand
) -> list[CommandResult]:
    """Archive what a command means, and list it; a loose command that means no or many memories is no command."""
    meant = _find_meant(workspace, contexts, session, command) if workspace.exists else []
    if command.is_loose and not 0 < len(meant) <= MOST_LOOSELY_MEANT:
        return []
    if not meant:
        says = "Reverie found no memory that is surely meant; nothing was forgotten."
        return [CommandResult(command, None, says)]
    newest = meant[0][1]
    if command.is_doubtful:
        return [CommandResult(command, None, f"Reverie did not archive {_name_ids(meant)}: {DOUBT}")]
    for store, memory in meant:
        revise.archive(store.database, memory.id)
    if len(meant) == 1:
        text = _shorten(newest.content)
        says = f"Reverie archived [{newest.id[-SHORT_ID:]}], which can be restored: {text}"
    else:
        lines = [f"- [{memory.id[-SHORT_ID:]}] {_shorten(memory.content)}" for _, memory in meant]
        says = "\n".join([f"Reverie archived {len(meant)} memories, which can be restored:", *lines])
    return [CommandResult(command, newest, says)]


def _name_ids(meant: Sequence[tuple[Workspace, Memory]]) -> str:
    return ", ".join(f"[{memory.id[-SHORT_ID:]}]" for _, memory in meant)


def _shorten(content: str) -> str:
    return " ".join(content.split())[:LONGEST_NAME]


def _find_meant(
    workspace: Workspace, contexts: SearchContexts, session: AgentSession, command: MemoryCommand
) -> list[tuple[Workspace, Memory]]:
    """Return the memories that a command means, newest first: of a topic all, else one."""
    stores = [store for store in (workspace, workspace.personal_store) if store and not store.access.is_read_only]
    if command.text:
        bar = TOPIC_RELEVANCE if command.is_about_topic else SURELY_MEANT
        query = Query(command.text, LOOKED_AT, Filter(viewer=session.viewer), min_relevance=bar)
        hits = [(store, hit) for store in stores for hit in search(contexts.get(store), query).hits]
        if command.is_about_topic:
            return _choose_statements(hits, command.text)
        best = max(hits, key=lambda pair: pair[1].relevance, default=None)
        return [] if best is None else [(best[0], best[1].memory)]
    latest = []
    for store in stores:
        with store.database.read() as db:
            last = turns.find_last_memory_of_session(db, session.id) if session.id is not None else None
        if last is not None:
            latest.append((store, last))
    return sorted(latest, key=lambda pair: pair[1].created_at, reverse=True)[:1]


def _choose_statements(hits: Sequence[tuple[Workspace, Hit]], topic: str) -> list[tuple[Workspace, Memory]]:
    """Return the person's own statements about a topic, newest first; any memory if none is theirs."""
    words = set(search_tokens(topic))
    meant = [
        (store, hit.memory)
        for store, hit in hits
        if hit.relevance >= SURELY_MEANT or (words and words <= set(search_tokens(hit.memory.content)))
    ]
    by_person = [pair for pair in meant if pair[1].source is Source.USER or CAPTURED_TAG in pair[1].tags]
    return sorted(by_person or meant, key=lambda pair: pair[1].created_at, reverse=True)


def _clean(message: Message) -> Message:
    is_said = not is_host_text(message.role, message.content)
    return replace(message, content=clean_said(message.role, message.content) if is_said else "")
