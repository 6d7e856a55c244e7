"""The lines before an act: those of the features, without what the session was shown."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from sqlite3 import Connection
from typing import Any

from pipeline.kernel.records.hooks import ActWarning, AgentSession
from pipeline.kernel.registry import find_extensions
from pipeline.kernel.store import agent_sessions
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.line import Key, make_text_key
from pipeline.prompt.render import drop_dead
from pipeline.recall.deadline import Deadline
from pipeline.text.normalize import shorten

MOST_LINES = 2
MOST_CHARS = 300
# Warnings that are looked at: the first may be known to the session.
CONSIDERED = 6
ACT = "act"


class ActLines:
    """Choose the lines before an act."""

    def __init__(self) -> None:
        self._advisors = [advisor() for advisor in find_extensions("ActAdvisor")]

    def prepare(self, workspace: Workspace) -> None:
        """Read in the background what the next acts are compared with."""
        if workspace.exists and workspace.settings.act_recall != "off":
            for advisor in self._advisors:
                advisor.prepare(workspace, with_rules=workspace.settings.act_recall != "past")

    def list_warnings(
        self, workspace: Workspace, session: AgentSession, tool: str, arguments: Mapping[str, Any], deadline: Deadline
    ) -> list[ActWarning]:
        """Return what concerns a tool call, the most important first."""
        kinds = workspace.settings.act_recall
        shown = {"shows_rules": kinds != "past", "shows_past": kinds != "rules"}
        return [
            warning
            for advisor in self._advisors
            for warning in islice(advisor.advise(workspace, session, tool, arguments, deadline, **shown), CONSIDERED)
        ]


def choose_new(db: Connection, session: AgentSession, warnings: Sequence[ActWarning]) -> list[ActWarning]:
    """Return the warnings that are new to a session, without lessons that agents never follow.

    A rule that is about to be broken is shown although a prompt showed it.
    """
    memories = {warning.memory.seq: warning.memory for warning in warnings if warning.memory is not None}
    alive = {memory.seq for memory in drop_dead(db, list(memories.values()))}
    seen: Mapping[int, str] = {}
    if session.id is not None:
        keys = [make_key(warning)[0] for warning in warnings]
        seen = agent_sessions.list_seen_versions(db, session.id, session.agent_id or "", keys)
    return [
        warning
        for warning in warnings
        if (warning.memory is None or warning.memory.seq in alive) and make_key(warning)[0] not in seen
    ]


def make_key(warning: ActWarning) -> Key:
    """Return what is recorded as shown: the line at this act. Its memory may be shown in full later."""
    return make_text_key(ACT, warning.key)


def fit(warnings: Iterable[ActWarning]) -> tuple[str, list[ActWarning]]:
    """Return the lines that fit, and their warnings."""
    chosen = list(warnings)[:MOST_LINES]
    room = (MOST_CHARS - len(chosen) + 1) // max(1, len(chosen))
    return "\n".join(shorten(warning.text, room) for warning in chosen), chosen
