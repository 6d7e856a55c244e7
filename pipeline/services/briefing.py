"""Gather the memories that an agent should read before it answers a message, from this machine and from teams."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pipeline.context.briefing import Briefing, BriefingLimits, compose_briefing, find_readable, once
from pipeline.context.follow_up import LastMessages
from pipeline.context.open_work import read_open_work
from pipeline.context.session_brief import BriefRoom, brief_project
from pipeline.errors import NotFound
from pipeline.feedback.writer import FeedbackWriter
from pipeline.recall.contexts import SearchContexts
from pipeline.records import list_session_names
from pipeline.records.hooks import AgentSession
from pipeline.services.encoder import list_session_notes
from pipeline.services.past_decisions import NO_DECISIONS, DecisionBriefings
from pipeline.services.team_briefing import TeamBriefing, TeamBriefings
from pipeline.text.messages import says_little
from pipeline.workspace import Workspace, is_incognito


def prepare_message(
    workspace: Workspace,
    contexts: SearchContexts,
    feedback: FeedbackWriter,
    last: LastMessages,
    decisions: DecisionBriefings,
    session: AgentSession,
    message: str,
) -> Briefing:
    """Gather the memories for a message on this machine, including those that the session was shown before.

    A session's first message also gets the standing rules. It and one that says too little to search get the state of
    the work, unless an earlier session decided about it. Raises NotFound if no store exists.
    """
    settings = workspace.settings
    limits = BriefingLimits(settings.recall_budget_ms, settings.hook_max_chars)
    readable = find_readable(workspace, contexts)
    if readable.workspace is None and readable.person is None:
        raise NotFound(f"There are no memories in workspace {workspace.id} yet.")
    now = datetime.now(UTC)
    silent = is_incognito(workspace, list_session_names(None, session.id, session.viewer.session))
    vague = says_little(message)
    # Without a session or the name of an agent, no message is known to be the first one.
    is_known = not silent and (session.id is not None or session.viewer.agent is not None)
    is_first = is_known and last.find(session) is None
    briefing, decided = Briefing(), NO_DECISIONS
    if not vague:
        compose = partial(compose_briefing, readable, session, message, now=now, last=None if silent else last)
        briefing, decided = decisions.brief(workspace, session, message, limits, compose)
        contexts.count(degraded=briefing.degraded)
    if workspace.exists and (vague or is_first) and not decided.shown:
        briefing = _add_open_work(workspace, session, briefing, now)
    briefing = _add_start(workspace, session, briefing, now) if is_first else briefing
    if is_first and last.find(session) is None:
        last.note(session, "", {})
    if workspace.exists and not silent:
        feedback.record_question(workspace, message, is_answered=briefing.is_stored)
        feedback.record_impressions(workspace, briefing.impressions)
    return briefing


def _add_start(workspace: Workspace, session: AgentSession, briefing: Briefing, now: datetime) -> Briefing:
    """Begin a briefing with what a hook shows at the start of a session."""
    settings, person = workspace.settings, workspace.personal_store
    room = BriefRoom(settings.hook_max_chars, now, notes=list_session_notes(workspace))
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


def _add_open_work(workspace: Workspace, session: AgentSession, briefing: Briefing, now: datetime) -> Briefing:
    """Add the open goals, the activity of the last day and the active arcs, without what the briefing shows."""
    with workspace.database.read() as db:
        work = read_open_work(db, session, now, shown=briefing.shown)
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


def prepare_beside_teams(
    workspace: Workspace,
    contexts: SearchContexts,
    feedback: FeedbackWriter,
    last: LastMessages,
    decisions: DecisionBriefings,
    teams: TeamBriefings,
    session: AgentSession,
    message: str,
) -> tuple[Briefing, TeamBriefing]:
    """Gather the memories for a message from this machine and its teams.

    Raises NotFound if this machine has no memories and no team has a result.
    """
    settings = workspace.settings
    limits = BriefingLimits(settings.recall_budget_ms, settings.hook_max_chars)
    asked = teams.ask(workspace, session, message, settings.recall_budget_ms)
    try:
        own = prepare_message(workspace, contexts, feedback, last, decisions, session, message)
    except NotFound:
        theirs = teams.tell(asked, Briefing(), limits)
        if not theirs.hits:
            raise
        return Briefing(), theirs
    return own, teams.tell(asked, own, limits)
