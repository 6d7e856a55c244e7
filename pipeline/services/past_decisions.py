"""Show what past sessions decided about a message, each decision once per session."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pipeline.context.briefing import Briefing, BriefingLimits
from pipeline.context.past_sessions import OF_AGENT
from pipeline.context.quoting import quote
from pipeline.lru import LruCache
from pipeline.recall.contexts import SearchContexts
from pipeline.records.hooks import AgentSession
from pipeline.services.past_words import PastWords, find_past_words
from pipeline.services.session_search import search_sessions
from pipeline.sessions.decisions import Decision, find_decisions
from pipeline.text.normalize import shorten
from pipeline.text.tokens import search_tokens
from pipeline.times import local_date
from pipeline.workspace import Workspace

# The longest block with decisions, and the part of it that they may take from memories other than rules.
BLOCK_CHARS = 1200
DECISIONS_CHARS = 1080
HEADER = "Decided in earlier sessions (check before relying on it):"
SEARCHED = 5
TITLE_CHARS = 60
# A decision is left out if the memories above contain this share of its words.
KNOWN_SHARE = 0.85
# Maximum number of sessions whose shown decisions are remembered.
MOST_SESSIONS = 256


@dataclass(frozen=True, slots=True)
class PastDecisions:
    """Groups of decisions about a message, one for each past session, the best first."""

    groups: Sequence[Sequence[Decision]] = ()

    def reserve(self, limits: BriefingLimits) -> BriefingLimits:
        """Return the limits of a briefing that leaves room for the decisions."""
        if not self.groups:
            return limits
        size = len("\n".join(_render_lines(self.groups, "", DECISIONS_CHARS)[0]))
        return replace(limits, max_chars=min(limits.max_chars, BLOCK_CHARS), reserved=size + 1)


@dataclass(frozen=True, slots=True)
class DecisionText:
    """The lines about decisions, empty if there are none, and the decisions in them.

    If a prompt needs messages of earlier sessions, these are shown instead.
    """

    text: str = ""
    shown: tuple[Decision, ...] = ()
    said: PastWords = field(default_factory=PastWords)


NO_DECISIONS = DecisionText()


class DecisionBriefings:
    """Find and render the decisions about messages."""

    def __init__(self, contexts: SearchContexts) -> None:
        self._contexts = contexts
        self._told: LruCache[Hashable, set[tuple[str, str]]] = LruCache(MOST_SESSIONS)

    def brief(
        self,
        workspace: Workspace,
        session: AgentSession,
        message: str,
        limits: BriefingLimits,
        compose: Callable[[BriefingLimits], Briefing],
        *,
        only_new: bool = False,
    ) -> tuple[Briefing, DecisionText]:
        """Compose a briefing with what past sessions say about a message below its memories; return both."""
        said = find_past_words(workspace, self._contexts, session, message, datetime.now(UTC), only_new=only_new)
        if said.messages:
            return said.add_to(compose(said.reserve(limits))), DecisionText(said=said)
        past = self.find(workspace, session, message, only_new=only_new)
        briefing = compose(past.reserve(limits))
        decided = self.render(past, briefing.text, limits.max_chars)
        text = "\n".join(filter(None, (briefing.text, decided.text)))
        return replace(briefing, relevant=briefing.relevant or bool(decided.shown), text=text), decided

    def find(
        self, workspace: Workspace, session: AgentSession, message: str, *, only_new: bool = False
    ) -> PastDecisions:
        """Return the decisions of past sessions about a message; `only_new` skips those that the session has seen."""
        if not workspace.exists:
            return PastDecisions()
        hits = search_sessions(workspace, self._contexts, message, SEARCHED, except_session=session.id)
        if not hits:
            return PastDecisions()
        with workspace.database.read() as db:
            groups = find_decisions(db, hits, message)
        seen = self._find_seen(session) if only_new else set()
        return PastDecisions([group for group in groups if _key(group[0]) not in seen])

    def render(self, decisions: PastDecisions, above: str, max_chars: int) -> DecisionText:
        """Return the decisions as lines below a text that does not contain them, as far as they fit."""
        if not decisions.groups:
            return NO_DECISIONS
        room = min(max_chars, BLOCK_CHARS) - len(above) - bool(above)
        lines, shown = _render_lines(decisions.groups, above, min(room, DECISIONS_CHARS))
        return DecisionText("\n".join(lines), tuple(shown))

    def note_shown(self, session: AgentSession, decisions: DecisionText) -> None:
        """Remember the decisions that a session was shown."""
        if session.id is not None:
            self._find_seen(session).update(map(_key, decisions.shown))

    def forget_shown(self, session: AgentSession) -> None:
        """Forget what a session was shown: its agent has lost it."""
        self._find_seen(session).clear()

    def _find_seen(self, session: AgentSession) -> set[tuple[str, str]]:
        if session.id is None:
            return set()
        return self._told.get((session.id, session.agent_id), lambda _known: True, set)


def _key(decision: Decision) -> tuple[str, str]:
    return decision.conclusion.session_id, decision.conclusion.content


def _render_lines(groups: Sequence[Sequence[Decision]], above: str, room: int) -> tuple[list[str], list[Decision]]:
    lines, shown = [HEADER], list[Decision]()
    used = len(HEADER)
    for decision, line in _lines(groups, above):
        if used + 1 + len(line) <= room:
            lines.append(line)
            shown.append(decision)
            used += 1 + len(line)
        elif not shown:
            # Part of the main decision is better than others without it.
            break
    return (lines, shown) if shown else ([], [])


def _lines(groups: Sequence[Sequence[Decision]], above: str) -> Iterator[tuple[Decision, str]]:
    known = set(search_tokens(above))
    for group in groups:
        session = None
        for decision in group:
            words = set(search_tokens(decision.conclusion.content))
            if len(words & known) >= KNOWN_SHARE * len(words):
                continue
            yield decision, _line(decision, continues=decision.conclusion.session_id == session)
            session = decision.conclusion.session_id
            known |= words


def _line(decision: Decision, *, continues: bool) -> str:
    conclusion = decision.conclusion
    said = f"{quote(conclusion.content)}{OF_AGENT if conclusion.is_of_agent else ''}"
    if continues:
        return f"- also: {said}"
    title = f" {quote(shorten(decision.title, TITLE_CHARS))}" if decision.title else ""
    if decision.is_replaced:
        return f"- before, replaced in part, in session{title} ({local_date(conclusion.at)}): {said}"
    current = ", replacing an earlier decision" if decision.replaces else ""
    return f"- decided in session{title} ({local_date(conclusion.at)}){current}: {said}"
