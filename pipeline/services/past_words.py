"""Show what the person said in earlier sessions that a prompt needs, each message once per session."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pipeline.context.briefing import Briefing, BriefingLimits
from pipeline.context.quoting import quote
from pipeline.context.results_by_use import sort_by_use
from pipeline.errors import IndexUnavailable
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.relevance import RELEVANT
from pipeline.records import SAID_HEADER, SHORT_ID, Memory
from pipeline.records.hooks import AgentSession
from pipeline.records.recall import Hit
from pipeline.services.session_search import request_turn_repair
from pipeline.sessions.own_words import OwnMessage, find_own_messages
from pipeline.store import agent_sessions
from pipeline.text.excerpts import find_excerpt
from pipeline.text.tokens import search_tokens
from pipeline.times import age
from pipeline.workspace import Workspace

MOST_LINES: Final = 3
LINE_CHARS: Final = 240
# The version of a message in the table of what a session was shown: a message never changes.
VERSION: Final = "said"


@dataclass(frozen=True, slots=True)
class PastWords:
    """Messages that a prompt needs, and their lines for an agent; the text is empty if there are none."""

    messages: tuple[OwnMessage, ...] = ()
    text: str = ""

    @property
    def turn_seqs(self) -> frozenset[int]:
        """Return the row numbers of the messages."""
        return frozenset(message.turn_seq for message in self.messages)

    @property
    def memories(self) -> tuple[Memory, ...]:
        """Return the memories that were made of the messages."""
        return tuple(memory for message in self.messages for memory in message.memories)

    @property
    def shown_versions(self) -> list[tuple[int, str]]:
        """Return what to note as shown; a row number below zero is that of a message."""
        return [(-seq, VERSION) for seq in self.turn_seqs]

    def reserve(self, limits: BriefingLimits) -> BriefingLimits:
        """Return the limits of a briefing that leaves room for the messages."""
        # The best memory is surely about the prompt, and may come from a tool or from this session.
        lines = max(1, MOST_LINES - len(self.messages))
        return replace(limits, reserved=len(self.text) + 1, lines=lines, said=self.turn_seqs)

    def add_to(self, briefing: Briefing) -> Briefing:
        """Return a briefing with the messages below its memories, and with the memories that were made of them."""
        made = sort_by_use([Hit(memory, 1.0, RELEVANT) for memory in self.memories])
        return replace(
            briefing,
            relevant=True,
            decisions=(*made.decisions, *briefing.decisions),
            facts=(*made.facts, *briefing.facts),
            memories=(*made.memories, *briefing.memories),
            text="\n".join(filter(None, (briefing.text, self.text))),
            shown=(*briefing.shown, *self.memories),
        )


def find_past_words(
    workspace: Workspace,
    contexts: SearchContexts,
    session: AgentSession,
    prompt: str,
    now: datetime,
    *,
    only_new: bool = False,
) -> PastWords:
    """Return what the person said in other sessions that a prompt needs; `only_new` skips what the session has seen."""
    if not workspace.exists:
        return PastWords()
    context = contexts.get(workspace)
    try:
        found = find_own_messages(context, session, prompt, now, 2 * MOST_LINES)
    except IndexUnavailable as error:
        request_turn_repair(workspace, error)
        return PastWords()
    if only_new and session.id is not None and found:
        with context.database.read() as db:
            seqs = [-message.turn_seq for message in found]
            seen = agent_sessions.list_seen_versions(db, session.id, session.agent_id or "", seqs)
        found = [message for message in found if -message.turn_seq not in seen]
    chosen = found[:MOST_LINES]
    return PastWords(tuple(chosen), _render(chosen, prompt, now)) if chosen else PastWords()


def _render(messages: Sequence[OwnMessage], prompt: str, now: datetime) -> str:
    asked = frozenset(search_tokens(prompt))
    return "\n".join([SAID_HEADER, *(_render_line(message, asked, now) for message in messages)])


def _render_line(message: OwnMessage, asked: frozenset[str], now: datetime) -> str:
    marks = [f"{memory.id[-SHORT_ID:]} · {memory.kind}" for memory in message.memories[:1]]
    text = find_excerpt(message.text, asked, LINE_CHARS)
    return f"- [{' · '.join([*marks, age(message.at, now)])}] {quote(text)}"
