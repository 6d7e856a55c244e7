"""Find the folder in which the person of a session speaks: the agent may be in another one."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.kernel.lru import LruCache

MOST_SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class _Folders:
    """The folder of the person, and that of the session's last event."""

    person: str
    last: str


class PersonFolders:
    """The folders of the sessions that were heard last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: LruCache[tuple[str, ...], _Folders] = LruCache(MOST_SESSIONS)

    def find(self, session: tuple[str, ...], folder: str, roots: Sequence[str], *, is_of_person: bool) -> str:
        """Return the folder in which the person of a session speaks; note the folder of an event.

        Only a prompt, or the start of a session, shows that the person moved: a folder that changed during a turn was
        changed by the agent. The first of the `roots` is the folder that the person opened, the others were added.
        """
        with self._lock:
            known = self._sessions.peek(session)
            folder = folder or (known.last if known is not None else "")
            person = known.person if known is not None else next(iter(roots), folder)
            is_added = any(folder and Path(folder).is_relative_to(root) for root in roots[1:])
            if is_of_person and known is not None and folder != known.last and not is_added:
                person = folder
            self._sessions.put(session, _Folders(person, folder))
            return person
