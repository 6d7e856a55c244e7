"""Show the team memories about a message after those of this machine, as notes of others."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime

from pipeline.context.briefing import MESSAGE_CHARS, Briefing, BriefingLimits
from pipeline.context.render import Entry, render_block
from pipeline.lru import LruCache
from pipeline.records.hooks import AgentSession
from pipeline.records.recall import ChannelState, Hit
from pipeline.services.team import Asked, TeamService
from pipeline.workspace import Workspace

# Maximum number of shown hits of all teams together.
TOLD = 5
# Maximum number of sessions whose shown memories are remembered.
MOST_SESSIONS = 256


@dataclass(frozen=True, slots=True)
class TeamBriefing:
    """The team memories about a message: the shown hits, their text, and whether all teams answered."""

    hits: tuple[Hit, ...] = ()
    text: str = ""
    degraded: bool = False


class TeamBriefings:
    """Show team memories, each once per session."""

    def __init__(self, teams: TeamService) -> None:
        self._teams = teams
        self._told: LruCache[Hashable, set[str]] = LruCache(MOST_SESSIONS)

    def ask(self, workspace: Workspace, session: AgentSession, message: str, budget_ms: int) -> Asked:
        """Start a query to the teams for memories about a message."""
        return self._teams.ask_prepare(workspace, session, message, budget_ms)

    def tell(
        self, asked: Asked, own: Briefing, limits: BriefingLimits, session: AgentSession | None = None
    ) -> TeamBriefing:
        """Return the answers that arrived in time, without what this machine shows or the session has seen."""
        answers = asked.answers()
        degraded = any(answer.report.state in (ChannelState.LATE, ChannelState.COLD) for answer in answers)
        known = _hashes(own) | (set() if session is None else self._find_seen(session))
        candidates = [hit for answer in answers for hit in answer.hits]
        new = {hit.memory.content_hash: hit for hit in reversed(candidates) if hit.memory.content_hash not in known}
        hits = [hit for hit in candidates if new.get(hit.memory.content_hash) is hit][:TOLD]
        room = min(limits.max_chars, MESSAGE_CHARS) - len(own.text) - 1
        entries = [Entry(hit.memory, hit.annotations, team=hit.origin) for hit in hits]
        text, rendered = render_block(entries, room, datetime.now(UTC))
        shown = {id(entry.memory) for entry in rendered}
        return TeamBriefing(tuple(hit for hit in hits if id(hit.memory) in shown), text or "", degraded)

    def note_told(self, session: AgentSession, briefing: TeamBriefing) -> None:
        """Remember the memories that a session was shown."""
        if session.id is not None:
            self._find_seen(session).update(hit.memory.content_hash for hit in briefing.hits)

    def _find_seen(self, session: AgentSession) -> set[str]:
        if session.id is None:
            return set()
        return self._told.get((session.id, session.agent_id), lambda _known: True, set)


def join_texts(own: Briefing, theirs: TeamBriefing) -> str:
    """Return the text for an agent: the memories of this machine, then those of teams."""
    return "\n".join(text for text in (own.text, theirs.text) if text)


def _hashes(own: Briefing) -> set[str]:
    hits = (*own.lessons, *own.decisions, *own.facts, *own.memories, *own.person)
    return {hit.memory.content_hash for hit in hits}
