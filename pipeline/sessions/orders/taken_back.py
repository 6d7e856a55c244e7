"""Take back messages that a person removed from a conversation: mark them, and archive what was captured from them."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.kernel.records import MAX_CONTENT_CHARS
from pipeline.kernel.store import memories, turns
from pipeline.kernel.store.turns import Message
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.sessions.orders.commands import CommandType, read_commands
from pipeline.sessions.orders.said_text import clean_said
from pipeline.text.normalize import normalize_text
from pipeline.write import revise


def take_back(workspace: Workspace, session_id: str, messages: Sequence[Message]) -> None:
    """Take back messages of a session. Their memories can be restored; the same words may be captured again."""
    if not (messages and workspace.exists) or workspace.access.is_read_only:
        return
    messages = [replace(message, content=clean_said(message.role, message.content)) for message in messages]
    with workspace.database.write() as db:
        seqs = frozenset(turns.take_back(db, messages))
    # A command to remember stored its text, whether the turn was stored or not.
    commands = (command for message in messages for command in read_commands(message.content))
    remembered = {
        normalize_text(command.text[:MAX_CONTENT_CHARS]) for command in commands if command.type is CommandType.REMEMBER
    }
    for store in workspace.list_changeable():
        with store.database.write() as db:
            for memory in memories.list_made_of(db, session_id, seqs, remembered):
                revise.archive_memory(db, memory, utc_now())
