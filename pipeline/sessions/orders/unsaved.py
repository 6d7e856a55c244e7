"""Leave out the messages of a session that a person does not want kept, with the answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.kernel.store.turns import Message, Role
from pipeline.sessions.orders.nosave import NoSave, find_no_save


@dataclass(frozen=True, slots=True)
class SaidSplit:
    """The messages to store, the mode at their end if it changed, and whether to forget the turn before them.

    `doubts_before`: whether the user may have meant that turn.
    """

    to_store: list[Message]
    mode: NoSave | None = None
    forgets_before: bool = False
    doubts_before: bool = False


def split_said(messages: Sequence[Message], *, follows_silence: bool = False) -> SaidSplit:
    """Leave out messages by the no-save commands in them.

    With `follows_silence`, answers before the first message of a person belong to a silent turn.
    """
    stored: list[Message] = []
    mode: NoSave | None = None
    forgets_before, doubts_before, is_silent = False, False, follows_silence
    for message in messages:
        if message.role is Role.USER:
            command = find_no_save(message.content)
            is_resumed = command is NoSave.RESUME and mode is not NoSave.SESSION
            is_silent = command is not None and not is_resumed
            if command is NoSave.TURN:
                forgets_before = not _drop_last_turn(stored) or forgets_before
            elif command is NoSave.DOUBTFUL_TURN:
                doubts_before = doubts_before or not stored
            elif command in (NoSave.SESSION, NoSave.RESUME):
                mode = command
        if not (is_silent or mode is NoSave.SESSION):
            stored.append(message)
    return SaidSplit(stored, mode, forgets_before, doubts_before)


def resumes(message: Message) -> bool:
    """Return whether a person wants the session saved again."""
    return message.role is Role.USER and find_no_save(message.content) is NoSave.RESUME


def list_resumed(messages: Sequence[Message]) -> Sequence[Message] | None:
    """Return the messages after the first one that resumes an incognito session; None if none does."""
    return next((messages[number + 1 :] for number, message in enumerate(messages) if resumes(message)), None)


def _drop_last_turn(messages: list[Message]) -> bool:
    """Remove the last message of a person and the answers to it; return whether there was one."""
    start = max((number for number, message in enumerate(messages) if message.role is Role.USER), default=None)
    if start is not None:
        del messages[start:]
    return start is not None
