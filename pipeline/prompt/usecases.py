"""What a prompt is shown: the lines of all sources, chosen together, for hooks and for `prepare`."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

from pipeline.features.indexing.usecases import list_session_notes
from pipeline.features.team.usecases import Asked, TeamAnswer, TeamService
from pipeline.kernel.errors import IndexUnavailable, NotFound
from pipeline.kernel.records import list_session_names
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import ChannelState
from pipeline.kernel.workspace import Workspace, is_incognito
from pipeline.prompt.briefing import Briefing, BriefingLimits, Readable, compose_briefing, find_readable, read_shown
from pipeline.prompt.follow_up import LastMessages
from pipeline.prompt.line import BARS, Line, LineSource, make_text_key
from pipeline.prompt.render import Entry, once
from pipeline.prompt.sources.memories import make_line
from pipeline.prompt.sources.sessions import find_remedy_lines, make_decision_lines, make_message_lines
from pipeline.prompt.start.open_work import read_open_work
from pipeline.prompt.start.session_brief import BriefRoom, brief_project
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter
from pipeline.sessions.decisions import find_decisions
from pipeline.sessions.own_words import find_own_messages
from pipeline.sessions.search_usecases import request_turn_repair, search_sessions
from pipeline.text.messages import says_little

MESSAGES_FOUND = 6
SESSIONS_SEARCHED = 5


class PromptService:
    """Choose what agents are shown before they answer a message."""

    def __init__(
        self, contexts: SearchContexts, feedback: FeedbackWriter, teams: TeamService, last: LastMessages
    ) -> None:
        self._contexts = contexts
        self._feedback = feedback
        self._teams = teams
        self._last = last

    def ask_teams(self, workspace: Workspace, session: AgentSession, message: str, budget_ms: int) -> Asked:
        """Start a query to the teams for memories about a message."""
        return self._teams.ask_prepare(workspace, session, message, budget_ms)

    def compose(
        self,
        workspace: Workspace,
        session: AgentSession,
        message: str,
        limits: BriefingLimits,
        asked: Asked,
        *,
        for_hook: bool = False,
        is_silent: bool = False,
    ) -> Briefing:
        """Choose the lines for a message; a hook skips what its session has seen.

        A message that says too little to search gets those of teams.
        """
        now, answers = datetime.now(UTC), list[TeamAnswer]()
        readable, lines = Readable(None), list[Line]()
        if for_hook or not says_little(message):
            readable = find_readable(workspace, self._contexts)
            lines = self._find_lines(workspace, session, message, now, only_new=for_hook)
        # The searches and what is read about their results share one snapshot.
        with nullcontext() if readable.workspace is None else readable.workspace.database.read():
            briefing = compose_briefing(
                *(readable, session, message, limits, now),
                only_new=for_hook,
                last=None if is_silent else self._last,
                others=chain(lines, _list_team_lines(asked, now, answers)),
            )
        if readable != Readable(None):
            self._contexts.count(degraded=briefing.degraded)
        if workspace.exists and not is_silent:
            self._feedback.record_question(workspace, message, is_answered=briefing.is_stored)
        is_late = any(answer.report.state in (ChannelState.LATE, ChannelState.COLD) for answer in answers)
        return replace(briefing, degraded=briefing.degraded or is_late)

    def prepare(self, workspace: Workspace, session: AgentSession, message: str) -> Briefing:
        """Choose the lines for a message, also those that the session was shown before.

        A session's first message also gets the standing rules. It and one that says too little to search get the state
        of the work, unless an earlier session decided something about it.
        Raises NotFound if this machine has no memories and no team has a result.
        """
        settings = workspace.settings
        limits = BriefingLimits(settings.recall_budget_ms, settings.hook_max_chars, settings.imports_in_prompts)
        asked = self.ask_teams(workspace, session, message, settings.recall_budget_ms)
        is_silent = is_incognito(workspace, list_session_names(None, session.id, session.viewer.session))
        # Without a session or the name of an agent, no message is known to be the first one.
        is_known = not is_silent and (session.id is not None or session.viewer.agent is not None)
        is_first = is_known and self._last.find(session) is None
        briefing = self.compose(workspace, session, message, limits, asked, is_silent=is_silent)
        if not (workspace.exists or workspace.personal_store or briefing.team):
            raise NotFound(f"There are no memories in workspace {workspace.id} yet.")
        decided = any(line.source is LineSource.DECISION for line in briefing.lines)
        if workspace.exists and (says_little(message) or is_first) and not decided:
            briefing = _add_open_work(workspace, session, briefing)
        briefing = _add_start(workspace, session, briefing) if is_first else briefing
        if is_first and self._last.find(session) is None:
            self._last.note(session, "", {})
        if workspace.exists and not is_silent:
            self._feedback.record_impressions(workspace, briefing.impressions)
        return briefing

    def _find_lines(
        self, workspace: Workspace, session: AgentSession, message: str, now: datetime, *, only_new: bool
    ) -> list[Line]:
        """Return what the person said about a message, or else what sessions decided, and the remedy of an error."""
        if not workspace.exists:
            return []
        context = self._contexts.get(workspace)
        try:
            said = make_message_lines(find_own_messages(context, session, message, now, MESSAGES_FOUND), message, now)
        except IndexUnavailable as error:
            request_turn_repair(workspace, error)
            said = []
        with context.database.read() as db:
            lines = [*said, *find_remedy_lines(db, message, workspace.person_id)]
            shown = read_shown(db, session, said) if only_new else set()
        # What the person said goes before what sessions decided.
        if any(line.relevance >= BARS[line.source] and line.key not in shown for line in said):
            return lines
        hits = search_sessions(workspace, self._contexts, message, SESSIONS_SEARCHED, except_session=session.id)
        if not hits:
            return lines
        with context.database.read() as db:
            return [*lines, *make_decision_lines(find_decisions(db, hits, message))]


def _list_team_lines(asked: Asked, now: datetime, answers: list[TeamAnswer]) -> Iterator[Line]:
    """Yield lines for the results of teams that arrived in time, and add their answers to a list."""
    answers += asked.answers()
    for hit in (hit for answer in answers for hit in answer.hits):
        line = make_line(LineSource.TEAM, hit, Entry(hit.memory, hit.annotations, team=hit.origin), now)
        yield replace(line, key=make_text_key(LineSource.TEAM, hit.memory.content_hash))


def _add_start(workspace: Workspace, session: AgentSession, briefing: Briefing) -> Briefing:
    """Begin a briefing with what a hook shows at the start of a session."""
    settings, person = workspace.settings, workspace.personal_store
    room = BriefRoom(settings.hook_max_chars, datetime.now(UTC), notes=list_session_notes(workspace))
    database = workspace.database if workspace.exists else None
    brief = brief_project(database, None if person is None else person.database, session, room)
    if brief is None:
        return briefing
    return replace(
        briefing,
        relevant=True,
        start=brief.text,
        text="\n".join(filter(None, (brief.text, briefing.text))),
        impressions=(*briefing.impressions, *brief.impressions),
    )


def _add_open_work(workspace: Workspace, session: AgentSession, briefing: Briefing) -> Briefing:
    """Add the open goals, the activity of the last day and the active arcs, without what the briefing shows."""
    with workspace.database.read() as db:
        work = read_open_work(db, session, datetime.now(UTC), shown=briefing.shown)
    if not work.text:
        return briefing
    return replace(
        briefing,
        relevant=True,
        open_goals=tuple(once((*briefing.open_goals, *work.goals))),
        recent_activity=tuple(once((*briefing.recent_activity, *work.activity))),
        active_arcs=tuple({arc.id: arc for arc in (*briefing.active_arcs, *work.arcs)}.values()),
        text="\n".join(filter(None, (briefing.text, work.text))),
        shown=(*briefing.shown, *work.shown),
    )
