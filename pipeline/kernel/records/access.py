"""What a request may change, store and show in a workspace: one decision from its caller and the settings.

A write policy says how memories are stored.
"""

from collections.abc import Callable
from dataclasses import dataclass

from config.settings import Settings
from pipeline.kernel.errors import READ_ONLY_SESSION, ReadOnly
from pipeline.kernel.records.people import HOME_OWNER, Caller, Role


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may change, store and show in one workspace.

    `recalls`: hooks show memories. `is_reader`: the caller's role allows no change. `is_silent`: no memory is stored,
    because the request or the workspace `is_incognito` or `is_read_only`. `captures`: messages are stored for capture.
    `keeps_journal`: actions are recorded. `notes_sessions`: what a session was shown is recorded, also for a reader,
    whose sessions are their own. `refusal`: why the caller may change no memory; the tools of agents have more reasons.

    A session can be incognito in addition: its store records that.
    """

    is_enabled: bool
    recalls: bool
    is_reader: bool
    is_incognito: bool
    is_read_only: bool
    is_silent: bool
    captures: bool
    keeps_journal: bool
    notes_sessions: bool
    refusal: str | None

    def require_change(self) -> None:
        """Raise ReadOnly if the caller may change no memory."""
        if self.refusal is not None:
            raise ReadOnly(self.refusal)


def decide_access(workspace_id: str, settings: Settings, caller: Caller = HOME_OWNER) -> Access:
    """Decide what a caller may change, store and show in a workspace that has these settings."""
    is_reader = caller.person is not None and not caller.may(workspace_id, Role.WRITER)
    is_incognito = caller.is_incognito or settings.incognito
    is_read_only = caller.is_read_only or settings.read_only or is_reader
    refusal = None
    if caller.is_agent and not settings.enabled:
        refusal = f"Reverie is off in workspace {workspace_id} (setting enabled). Ask your user to turn it on."
    elif caller.is_agent and not settings.write_tools:
        refusal = f"Agents may not change workspace {workspace_id}: write_tools is off. Ask your user to change it."
    elif caller.is_read_only:
        refusal = READ_ONLY_SESSION
    elif is_read_only:
        refusal = f"Workspace {workspace_id} is read-only. Turn off the setting read_only to store or change memories."
    return Access(
        is_enabled=settings.enabled,
        recalls=settings.enabled and settings.hook_recall,
        is_reader=is_reader,
        is_incognito=is_incognito,
        is_read_only=is_read_only,
        is_silent=is_incognito or is_read_only,
        captures=settings.capture != "off" and not (is_incognito or is_read_only),
        keeps_journal=settings.enabled and settings.journal and not is_read_only,
        notes_sessions=not (caller.is_read_only or settings.read_only),
        refusal=refusal,
    )


def never_purged(_content_hash: str) -> bool:
    """Report no purge in another workspace."""
    return False


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """How memories are stored: whether doubtful memories await review, whether all do, whether any are stored.

    `is_purged` returns whether the author purged a text, given by its hash, in another workspace. `branch` is the
    git branch that is checked out where a memory is written, None for the default branch.
    """

    review: bool = False
    incognito: bool = False
    suggest: bool = False
    author: str | None = None
    is_purged: Callable[[str], bool] = never_purged
    branch: str | None = None


DEFAULT_WRITE_POLICY = WritePolicy()
