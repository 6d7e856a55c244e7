"""Lines for what the person said in other sessions: the messages that a prompt needs, quoted."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pipeline.context.prohibitions import is_about_to_break
from pipeline.context.quoting import quote
from pipeline.prompt.line import Line, LineSource
from pipeline.records import SAID_HEADER, SHORT_ID
from pipeline.sessions.own_words import OwnMessage
from pipeline.text.excerpts import find_excerpt
from pipeline.text.tokens import search_tokens
from pipeline.times import age

LINE_CHARS: Final = 240
# The version of a message in its key: a message never changes. Its row number is below zero.
VERSION: Final = "said"


def make_message_lines(messages: Sequence[OwnMessage], prompt: str, now: datetime) -> list[Line]:
    """Return a line for each message, which replaces the lines of the memories that were made of it."""
    asked = frozenset(search_tokens(prompt))
    return [
        Line(
            (-message.turn_seq, VERSION),
            LineSource.MESSAGE,
            LineSource.MESSAGE,
            message.text,
            message.score,
            _render(message, asked, now),
            SAID_HEADER,
            message.score,
            memories=message.memories,
            again=is_about_to_break(message.text, prompt),
        )
        for message in messages
    ]


def _render(message: OwnMessage, asked: frozenset[str], now: datetime) -> str:
    marks = [f"{memory.id[-SHORT_ID:]} · {memory.kind}" for memory in message.memories[:1]]
    text = find_excerpt(message.text, asked, LINE_CHARS)
    return f"- [{' · '.join([*marks, age(message.at, now)])}] {quote(text)}"
