"""Where a session stopped: the last message of the person and the last answer of the agent."""

from sqlite3 import Connection
from typing import Final

from pipeline.context.quoting import quote
from pipeline.recall.query import asks_progress
from pipeline.store import turns
from pipeline.store.turns import Role
from pipeline.text.messages import is_small_talk, says_little
from pipeline.text.normalize import shorten
from pipeline.text.own_words import list_own_lines

STOPPED: Final = "Where the work stopped:"
MESSAGE_CHARS: Final = 240
# The latest turns that are searched: tools and short answers may follow the last message that says something.
SEARCHED: Final = 40


def describe_last_exchange(db: Connection, session_id: str) -> list[str]:
    """Return a header, the last message of a session that says something, and the last answer; none without one."""
    latest = [turn for turn in turns.page(db, session_id, SEARCHED, None) if turn.content.strip()]
    messages = (turn for turn in latest if turn.role is Role.USER)
    message = next((turn for turn in messages if _says_something(turn.content)), None)
    if message is None:
        return []
    answer = next((turn for turn in latest if turn.role is Role.ASSISTANT and turn.seq > message.seq), None)
    lines = [STOPPED, f"- the user said: {_quote(' '.join(list_own_lines(message.content)))}"]
    return lines if answer is None else [*lines, f"- the agent answered: {_quote(answer.content)}"]


def _says_something(message: str) -> bool:
    own = " ".join(list_own_lines(message))
    return bool(own.strip()) and not (is_small_talk(own) or says_little(own) or asks_progress(own))


def _quote(text: str) -> str:
    return quote(shorten(" ".join(text.split()), MESSAGE_CHARS))
