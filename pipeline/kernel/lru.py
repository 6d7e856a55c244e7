"""A bounded cache of the values that were used last."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Number of locks for missing values: a slow value blocks few others.
STRIPES = 16


class LruCache(Generic[K, V]):
    """Cache the values of the keys that were used last.

    A dropped value is not closed: its current users keep it, and it is freed after the last of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._making = [threading.Lock() for _ in range(STRIPES)]
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, is_current: Callable[[V], bool], make: Callable[[], V]) -> V:
        """Return the value of a key. If there is no current value, make it, once for all threads that ask."""
        if (value := self.find(key, is_current)) is not None:
            return value
        with self._making[hash(key) % STRIPES]:
            if (value := self.find(key, is_current)) is not None:
                return value
            made = make()
            with self._lock:
                self._kept[key] = made
                self._kept.move_to_end(key)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            return made

    def peek(self, key: K) -> V | None:
        """Return a key's cached value, None without one, without counting as a use."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: K, value: V) -> None:
        """Cache a value in place of the present one."""
        self.get(key, lambda _: False, lambda: value)

    def values(self) -> list[V]:
        """List the cached values, the longest unused first."""
        with self._lock:
            return list(self._kept.values())

    def find(self, key: K, is_current: Callable[[V], bool]) -> V | None:
        """Return the current value of a key, None without one."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is not None:
                self._kept.move_to_end(key)
        return entry if entry is not None and is_current(entry) else None
