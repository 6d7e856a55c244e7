"""What a session's file says, as hooks and imports store it."""

from collections.abc import Iterable

from pipeline.sessions.prepare import PartPreparer, PreparedMessage
from pipeline.sessions.readers.reader import SessionPart


def read_messages(parts: Iterable[SessionPart]) -> tuple[list[PreparedMessage], list[PreparedMessage], str]:
    """Return the messages of parts, those that were taken back, and the mark after them."""
    preparer = PartPreparer()
    prepared = [preparer.prepare(part) for part in parts]
    taken_back = [message for part in prepared for message in part.taken_back]
    gone = {(message.at, message.content) for message in taken_back}
    said = [message for part in prepared for message in part.messages if (message.at, message.content) not in gone]
    return said, taken_back, prepared[-1].mark if prepared else ""
