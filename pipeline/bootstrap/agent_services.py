"""The services of agents' sessions, which take as long to import as recall and are loaded after it can be answered."""

from collections.abc import Callable

from pipeline.context.follow_up import LastMessages
from pipeline.features.feature import PROMPT_EXTENSIONS
from pipeline.features.registry import find_extensions
from pipeline.feedback.writer import FeedbackWriter
from pipeline.recall.contexts import SearchContexts
from pipeline.services.agent_history import HookRunLog
from pipeline.services.agent_sessions import AgentSessionService
from pipeline.services.prompts import PromptService
from pipeline.services.session_intake import SessionIntake
from pipeline.services.team import TeamService
from pipeline.store.stores import Stores
from pipeline.workspace import Workspace


class AgentServices:
    """The services of agents' sessions, created once per process."""

    def __init__(
        self,
        stores: Stores,
        workspace: Callable[[str], Workspace],
        usual_workspace: str,
        contexts: SearchContexts,
        feedback: FeedbackWriter,
        teams: TeamService,
        last_messages: LastMessages,
    ) -> None:
        # A prompt's hook has little time: it does not wait for the features that add to prompts.
        for point in PROMPT_EXTENSIONS:
            find_extensions(point)
        self.prompts = PromptService(contexts, feedback, teams, last_messages)
        self.hook_runs = HookRunLog(stores.operations, feedback, workspace)
        self.sessions = AgentSessionService(
            workspace(usual_workspace),
            contexts,
            feedback,
            self.prompts,
            SessionIntake(stores.transcripts, contexts, workspace(usual_workspace)),
        )
