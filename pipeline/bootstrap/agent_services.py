"""The services of agents' sessions, which take as long to import as recall and are loaded after it can be answered."""

from collections.abc import Callable

from pipeline.features.obedience.usecases import ObedienceService
from pipeline.features.team.usecases import TeamService
from pipeline.kernel.feature import PROMPT_EXTENSIONS
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.store.stores import Stores
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.agent_events import AgentSessionService
from pipeline.prompt.follow_up import LastMessages
from pipeline.prompt.history import HookRunLog
from pipeline.prompt.subagents.usecases import SubagentService
from pipeline.prompt.usecases import PromptService
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter
from pipeline.sessions.intake_usecases import SessionIntake


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
        self.obedience = ObedienceService(feedback, self.sessions.is_off_the_record)
        self.subagents = SubagentService(contexts, feedback, self.sessions.is_off_the_record)
