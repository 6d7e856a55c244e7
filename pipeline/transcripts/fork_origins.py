"""Recognize the records that a fork or a resumed session of Claude Code copied from another session.

A copy has the id of the original record. Its session is that of the copy, or still that of the original; a copied
answer names the session of its request. While the original is still stored, its records are read there.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.transcripts.fields import as_text

# A session copies another, which may be a copy too.
MOST_ORIGINS = 20
_NAME = re.compile(r"[0-9A-Za-z-]{8,64}")
_ID = re.compile(rb'"uuid":\s?"([0-9A-Za-z-]{8,64})"')


class Origins:
    """The sessions that a session copies, and the ids of their records."""

    def __init__(self, own: str, folder: Path, names: Sequence[str]) -> None:
        """Start with the sessions that an earlier reading noticed."""
        self._own = own
        self._folder = folder
        self.names: list[str] = []
        self._ids: set[str] = set()
        for name in filter(_NAME.fullmatch, names):
            self._add(name)

    def notice(self, record: Mapping[str, Any]) -> bool:
        """Read the session that a record names as its origin; return whether it is new."""
        name = find_origin(record, self._own)
        if name is None or name in self.names or len(self.names) == MOST_ORIGINS:
            return False
        self._add(name)
        return True

    def has(self, record_id: Any) -> bool:
        """Return whether a record is a copy."""
        return record_id in self._ids if isinstance(record_id, str) else False

    def _add(self, name: str) -> None:
        self.names.append(name)
        # A session may be resumed in another folder. If the original was deleted, the copies are all that is left.
        for log in self._folder.parent.glob(f"*/{name}.jsonl"):
            with suppress(OSError), log.open("rb") as lines:
                for line in lines:
                    self._ids.update(found.decode("ascii") for found in _ID.findall(line))


def find_origin(record: Mapping[str, Any], own: str) -> str | None:
    """Return the session that a record was copied from, None if it was not copied."""
    for name in ("requestSessionId", "sessionId"):
        session_id = as_text(record.get(name))
        if session_id and session_id != own and _NAME.fullmatch(session_id):
            return session_id
    return None
