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
from pipeline.prompt.render import drop_dead, version_of
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
                advisor.prepare(workspace)

    def list_warnings(
        self, workspace: Workspace, session: AgentSession, tool: str, arguments: Mapping[str, Any]
    ) -> list[ActWarning]:
        """Return what concerns a tool call, the most important first."""
        kinds = workspace.settings.act_recall
        shown = {"shows_rules": kinds in ("rules", "on"), "shows_past": kinds in ("past", "on")}
        return [
            warning
            for advisor in self._advisors
            for warning in islice(advisor.advise(workspace, session, tool, arguments, **shown), CONSIDERED)
        ]


def choose_new(db: Connection, session: AgentSession, warnings: Sequence[ActWarning]) -> list[ActWarning]:
    """Return the warnings that are new to a session, without lessons that agents never follow.

    A rule that is about to be broken is shown although a prompt showed it.
    """
    memories = {warning.memory.seq: warning.memory for warning in warnings if warning.memory is not None}
    alive = {memory.seq for memory in drop_dead(db, list(memories.values()))}
    keys = [key for warning in warnings for key in list_keys(warning)]
    seen: Mapping[int, str] = {}
    if session.id is not None:
        seen = agent_sessions.list_seen_versions(db, session.id, session.agent_id or "", [seq for seq, _ in keys])
    return [
        warning
        for warning in warnings
        if (warning.memory is None or warning.memory.seq in alive) and not _is_known(warning, seen)
    ]


def _is_known(warning: ActWarning, seen: Mapping[int, str]) -> bool:
    (act, _), *shown = list_keys(warning)
    if act in seen:
        return True
    if warning.breaks or not shown:
        return False
    (memory, version), (before_act, _) = shown
    # A prompt showed it, not an act.
    return seen.get(memory) == version and before_act not in seen


def list_keys(warning: ActWarning) -> list[Key]:
    """Return what is recorded as shown: the line at this act, and its memory with the mark that an act showed it."""
    key = make_text_key(ACT, warning.key)
    if warning.memory is None:
        return [key]
    return [key, (warning.memory.seq, version_of(warning.memory)), make_text_key(ACT, warning.memory.id)]


def fit(warnings: Iterable[ActWarning]) -> tuple[str, list[ActWarning]]:
    """Return the lines that fit, and their warnings."""
    chosen = list(warnings)[:MOST_LINES]
    room = (MOST_CHARS - len(chosen) + 1) // max(1, len(chosen))
    return "\n".join(shorten(warning.text, room) for warning in chosen), chosen
