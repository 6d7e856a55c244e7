"""Remind an agent of the remedy when a command fails with an error that was solved before."""

from collections.abc import Hashable
from sqlite3 import Connection

from pipeline.lru import LruCache
from pipeline.sessions.remedies import Remedy, find_known_remedy
from pipeline.store.agent_sessions import Action, ActionType
from pipeline.text.normalize import shorten

# Maximum number of remembered hints; a forgotten hint may be shown again.
MOST_SHOWN = 1024
MAX_STEP_CHARS = 160


class RemedyHints:
    """Find remedies for errors, each at most once per session."""

    def __init__(self) -> None:
        self._shown: LruCache[Hashable, bool] = LruCache(MOST_SHOWN)

    def find(self, db: Connection, workspace_id: str, failure: Action, person: str | None) -> Remedy | None:
        """Return the remedy that worked against a failure's error, if it was not shown in this session."""
        key = workspace_id, failure.session_id, failure.error_signature
        if failure.error_signature is None or self._shown.peek(key):
            return None
        remedy = find_known_remedy(db, failure.error_signature, person)
        if remedy is not None:
            self._shown.put(key, value=True)
        return remedy


def list_remedy_steps(remedy: Remedy) -> list[tuple[bool, str]]:
    """Return the steps of a remedy, and whether each is an edit."""
    return [(step.type is ActionType.EDIT, shorten(step.target, MAX_STEP_CHARS)) for step in remedy.steps]
