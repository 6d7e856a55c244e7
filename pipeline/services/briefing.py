"""Gather the memories that an agent should read before it answers a message, from this machine and from teams."""

from datetime import UTC, datetime

from pipeline.context.briefing import Briefing, BriefingLimits, compose_briefing, find_readable
from pipeline.errors import NotFound
from pipeline.feedback.writer import FeedbackWriter
from pipeline.recall.contexts import SearchContexts
from pipeline.records import list_session_names
from pipeline.records.hooks import AgentSession
from pipeline.services.team_briefing import TeamBriefing, TeamBriefings
from pipeline.workspace import Workspace, is_incognito


def prepare_message(
    workspace: Workspace, contexts: SearchContexts, feedback: FeedbackWriter, session: AgentSession, message: str
) -> Briefing:
    """Gather the memories for a message on this machine, including those that the session was shown before.

    Raises NotFound if neither the workspace nor the personal store exists.
    """
    settings = workspace.settings
    limits = BriefingLimits(settings.recall_budget_ms, settings.hook_max_chars)
    readable = find_readable(workspace, contexts)
    if readable.workspace is None and readable.person is None:
        raise NotFound(f"There are no memories in workspace {workspace.id} yet.")
    briefing = compose_briefing(readable, session, message, limits, datetime.now(UTC))
    contexts.count(degraded=briefing.degraded)
    if workspace.exists and not is_incognito(workspace, list_session_names(None, session.id, session.viewer.session)):
        feedback.record_question(workspace, message)
        feedback.record_impressions(workspace, briefing.impressions)
    return briefing


def prepare_beside_teams(
    workspace: Workspace,
    contexts: SearchContexts,
    feedback: FeedbackWriter,
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
        own = prepare_message(workspace, contexts, feedback, session, message)
    except NotFound:
        theirs = teams.tell(asked, Briefing(), limits)
        if not theirs.hits:
            raise
        return Briefing(), theirs
    return own, teams.tell(asked, own, limits)
