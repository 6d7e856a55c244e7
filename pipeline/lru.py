"""What was used last, so much of it at most: how whatever is kept for each workspace is bounded."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# How many of the missing are made at the same time; one that takes its time holds up few others.
STRIPES = 16


class LruCache(Generic[K, V]):
    """Keep the values of the keys that were asked for last.

    What is dropped is not closed: whoever still uses it goes on with it, and it ends with its last user.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._making = [threading.Lock() for _ in range(STRIPES)]
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, is_current: Callable[[V], bool], make: Callable[[], V]) -> V:
        """Return the value of a key; where there is none that is current, make it, once for all who ask."""
        if (found := self._find(key, is_current)) is not None:
            return found
        with self._making[hash(key) % STRIPES]:
            if (found := self._find(key, is_current)) is not None:
                return found
            made = make()
            with self._lock:
                self._kept[key] = made
                self._kept.move_to_end(key)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            return made

    def holds(self, key: K) -> bool:
        """Return whether a key's value is kept, without counting as having asked for it."""
        with self._lock:
            return key in self._kept

    def values(self) -> list[V]:
        """List what is kept, the longest unused first."""
        with self._lock:
            return list(self._kept.values())

    def _find(self, key: K, is_current: Callable[[V], bool]) -> V | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        return found if found is not None and is_current(found) else None
