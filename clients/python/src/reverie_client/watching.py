"""Read a stream of events line by line and continue it. Independent of sync and async."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from .answers import Event
from .errors import UnexpectedAnswer
from .reading import read_value

PATH = "/v1/events"
RETRY_S = 3.0


@dataclass(slots=True)
class Watch:
    """A stream of events: its query, the cursor to continue after, and the seconds to wait before that."""

    query: Mapping[str, str]
    cursor: str | None = None
    retry_s: float = RETRY_S
    _data: str = ""
    _id: str | None = None

    def begin(self) -> dict[str, str]:
        """Return the query of the next connection; forget an incomplete event."""
        self._data, self._id = "", None
        return dict(self.query) | ({} if self.cursor is None else {"after": self.cursor})

    def read_line(self, line: str) -> Event | None:
        """Read a line; return the event that it completes."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data += value
            elif name == "id":
                self._id = value
            elif name == "retry" and value.isdecimal():
                self.retry_s = int(value) / 1000
            return None
        data, position, self._data, self._id = self._data, self._id, "", None
        try:
            event = read_value(Event, json.loads(data)) if data else None
        except (TypeError, ValueError, AttributeError) as error:
            raise UnexpectedAnswer(f"An event has another form; the server may run another version: {error}") from error
        self.cursor = position or self.cursor
        return event
