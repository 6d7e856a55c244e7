"""Short ids: an agent reads the end of an id, which the server knows only whole."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from pipeline.errors import FieldError, InvalidField, NotFound
from pipeline.write.echo import SHORT_ID

WHOLE = 26
MOST = 10_000


class ShownIds:
    """The whole ids of what was shown, by their ends; the longest unused are forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._whole: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def short(self, whole: str) -> str:
        """Return how an id is shown, and keep what it stands for."""
        end = whole[-SHORT_ID:]
        with self._lock:
            known = self._whole.setdefault(end, whole)
            self._whole.move_to_end(end)
            if len(self._whole) > self._most:
                self._whole.popitem(last=False)
        return end if known == whole else whole

    def whole(self, given: str, name: str, ask: Callable[[str], str]) -> str:
        """Return the id that is meant: as shown here, else as whoever is asked knows it, for hooks show ids as well.

        Raises InvalidField for what ends no memory's id.
        """
        text = given.strip().strip("[]")
        if len(text) >= WHOLE:
            return text
        text = text.upper()
        with self._lock:
            found = self._whole.get(text[-SHORT_ID:]) if len(text) >= SHORT_ID else None
        if found is None and len(text) == SHORT_ID and text.isalnum():
            with suppress(NotFound):
                found = ask(text)
        if found is None or not found.endswith(text):
            raise InvalidField(FieldError(name, "is neither a whole id nor the end of one; recall it first"))
        return found
