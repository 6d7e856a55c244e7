"""Who is signed in where several web servers stand behind one address: each knows what any of them began.

The same as `Sessions` and `Links`, kept in the store that the servers share: hashes of names and codes, and when each
ends. A code is taken by one server, once.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Callable

from pipeline.store.home_values import HomeValues
from web.dashboard.holder import Holder

SESSION, LINK = "browser.", "link."


class SharedSessions:
    """Know which browsers are signed in, on whichever server they did."""

    def __init__(self, values: HomeValues, lifetime_s: float, most: int, now: Callable[[], float] = time.time) -> None:
        self._values = values
        self._lifetime_s = lifetime_s
        self._most = most
        self._now = now

    def begin(self) -> str:
        """Return the name of a new session."""
        kept = sorted(_drop_ended(self._values, SESSION, self._now()).items(), key=lambda one: one[1])
        for surplus, _ in kept[: max(0, len(kept) + 1 - self._most)]:
            self._values.drop(SESSION + surplus)
        name = secrets.token_urlsafe(32)
        self._values.put(SESSION + _hash(name), json.dumps([self._now() + self._lifetime_s]))
        return name

    def end(self, name: str) -> None:
        """End a session; its cookie opens nothing any more, anywhere."""
        self._values.drop(SESSION + _hash(name))

    def is_valid(self, name: object) -> bool:
        """Tell whether a session of this name began and has not ended."""
        ends = self._values.get(SESSION + _hash(name)) if isinstance(name, str) else None
        return ends is not None and _read_end(ends) > self._now()


class SharedLinks:
    """Keep the codes of one-time links for whichever server they are followed to."""

    def __init__(self, values: HomeValues, lifetime_s: float, now: Callable[[], float] = time.time) -> None:
        self._values = values
        self._lifetime_s = lifetime_s
        self._now = now

    def make(self, holder: Holder) -> str:
        """Return a new code for somebody."""
        _drop_ended(self._values, LINK, self._now())
        code, until = secrets.token_urlsafe(32), self._now() + self._lifetime_s
        self._values.put(LINK + _hash(code), json.dumps([until, holder.person_id, holder.token_id]))
        return code

    def redeem(self, code: str) -> Holder | None:
        """Use a code up; return whom it is for, None where it is worth nothing."""
        found = self._values.take(LINK + _hash(code))
        until, *holder = [0.0] if found is None else json.loads(found)
        return Holder(*holder) if until > self._now() else None


def _drop_ended(values: HomeValues, prefix: str, now: float) -> dict[str, float]:
    """Forget what has ended; return when the others end."""
    ends = {name: _read_end(value) for name, value in values.list(prefix).items()}
    for name, until in ends.items():
        if until <= now:
            values.drop(prefix + name)
    return {name: until for name, until in ends.items() if until > now}


def _read_end(value: str) -> float:
    return float(json.loads(value)[0])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
