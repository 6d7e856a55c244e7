"""What hooks are about: the session of an agent, and what a hook answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.kernel.records import Memory, Viewer


@dataclass(frozen=True, slots=True)
class AgentSession:
    """An agent's session: its id, for a subagent which one it is, its folder, and what the agent may see."""

    id: str | None = None
    agent_id: str | None = None
    cwd: str = ""
    viewer: Viewer = field(default_factory=Viewer)


@dataclass(frozen=True, slots=True)
class ActWarning:
    """A line before an act, and what it is about: the same line is shown once for it in a session.

    `source` names the kind of evidence. It may show a rule that the act breaks.
    """

    key: str
    text: str
    source: str
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A line that a prompt was not shown: its key, its source, the start of its text, its score, and the reason."""

    key: str
    source: str
    text: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The text that a hook gives an agent and its memories, or why it gives none.

    If `is_kept` is false, the run is not logged. `left_out` are the lines that were not shown.
    """

    text: str | None = None
    memories: tuple[Memory, ...] = ()
    reason: str | None = None
    is_late: bool = False
    is_kept: bool = True
    left_out: Sequence[LeftOut] = ()


@dataclass(frozen=True, slots=True)
class SpooledMark:
    """When an event from the spool was sent, as a time and in nanoseconds, and whether a delivery was interrupted."""

    at: str
    at_ns: int
    is_repeated: bool = False
