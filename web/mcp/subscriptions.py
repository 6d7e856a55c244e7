"""The resources that a session subscribed to, and which of them a change of a memory concerns."""

import threading
from collections.abc import Iterable
from urllib.parse import unquote

from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.records import SHORT_ID
from web.mcp.catalog import BRIEF, MEMORY
from web.mcp.rendering import WHOLE

BEFORE_ID = MEMORY["uriTemplate"].partition("{")[0]
MOST = 100


def find_memory_id(uri: str) -> str | None:
    """Return the id that a resource names, None for the brief; raise NotFound if there is no such resource."""
    if uri == BRIEF["uri"]:
        return None
    if uri.startswith(BEFORE_ID) and len(uri) > len(BEFORE_ID):
        return unquote(uri.removeprefix(BEFORE_ID))
    raise NotFound(f"There is no such resource. Use {BRIEF['uri']} or {MEMORY['uriTemplate']}.")


class Subscriptions:
    """The resources that one session subscribed to. Several threads may use one object."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        # The end of each subscribed memory's id; None for the brief, which any change concerns.
        self._ends: dict[str, str | None] = {}
        self._lock = threading.Lock()

    @property
    def uris(self) -> list[str]:
        """Return the subscribed resources."""
        with self._lock:
            return list(self._ends)

    def add(self, uri: str) -> None:
        """Subscribe to a resource; raise NotFound for one that cannot exist, InvalidField if there are too many.

        Whether a memory exists is not checked: the answer would reveal memories that the session may not see.
        """
        memory_id = find_memory_id(uri)
        end = None if memory_id is None else memory_id.strip().strip("[]").upper()
        if end is not None and not (SHORT_ID <= len(end) <= WHOLE and end.isalnum()):
            raise NotFound("There is no such memory. Use an id from recall or prepare.")
        with self._lock:
            if uri not in self._ends and len(self._ends) >= self._most:
                raise InvalidField(FieldError("uri", f"exceeds the {self._most} resources of a session"))
            self._ends[uri] = end

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource."""
        with self._lock:
            self._ends.pop(uri, None)

    def find_changed(self, memory_ids: Iterable[str | None]) -> list[str]:
        """Return the resources that changes of these memories concern; None stands for a change of any memory."""
        changed = list(memory_ids)
        with self._lock:
            return [
                uri
                for uri, end in self._ends.items()
                if any(end is None or memory_id is None or memory_id.endswith(end) for memory_id in changed)
            ]

    def names(self, memory_id: str) -> bool:
        """Return whether a subscribed resource names this memory."""
        with self._lock:
            return any(end is not None and memory_id.endswith(end) for end in self._ends.values())
