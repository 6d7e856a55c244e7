"""Dashboard sessions and one-time links shared by several web servers behind one address.

These classes replace `Sessions` and `Links` and store hashes of names and codes, with their expiry, in the shared
store. Only one server can redeem a code.
"""

import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.kernel.store.home_values import HomeValues


@dataclass(frozen=True, slots=True)
class Holder:
    """A person (signed in with a token or a provider), or the owner of the data directory if both are None."""

    person_id: str | None = None
    token_id: str | None = None


SESSION, LINK = "browser.", "link."


class SharedSessions:
    """Sessions of signed-in browsers, valid on every server."""

    def __init__(self, values: HomeValues, lifetime_s: float, most: int, now: Callable[[], float] = time.time) -> None:
        self._values = values
        self._lifetime_s = lifetime_s
        self._most = most
        self._now = now

    def begin(self) -> str:
        """Start a session and return its name."""
        ends = _drop_ended(self._values, SESSION, self._now())
        by_end = sorted(ends, key=lambda name: ends[name])
        for surplus in by_end[: max(0, len(by_end) + 1 - self._most)]:
            self._values.drop(SESSION + surplus)
        name = secrets.token_urlsafe(32)
        self._values.put(SESSION + _hash(name), json.dumps([self._now() + self._lifetime_s]))
        return name

    def end(self, name: str) -> None:
        """End a session, so that its cookie is rejected on every server."""
        self._values.drop(SESSION + _hash(name))

    def is_valid(self, name: object) -> bool:
        """Return whether a session with this name exists and has not expired."""
        ends = self._values.get(SESSION + _hash(name)) if isinstance(name, str) else None
        return ends is not None and _read_end(ends) > self._now()


class SharedLinks:
    """Codes of one-time links that every server accepts."""

    def __init__(self, values: HomeValues, lifetime_s: float, now: Callable[[], float] = time.time) -> None:
        self._values = values
        self._lifetime_s = lifetime_s
        self._now = now

    def make(self, holder: Holder) -> str:
        """Return a new code that signs in as the holder."""
        _drop_ended(self._values, LINK, self._now())
        code, until = secrets.token_urlsafe(32), self._now() + self._lifetime_s
        self._values.put(LINK + _hash(code), json.dumps([until, holder.person_id, holder.token_id]))
        return code

    def redeem(self, code: str) -> Holder | None:
        """Redeem a code and return its holder, None for an unknown, used or expired code."""
        value = self._values.take(LINK + _hash(code))
        until, *holder = [0.0] if value is None else json.loads(value)
        return Holder(*holder) if until > self._now() else None


def _drop_ended(values: HomeValues, prefix: str, now: float) -> dict[str, float]:
    """Delete expired entries; return the expiry of the others by name."""
    ends = {name: _read_end(value) for name, value in values.list(prefix).items()}
    for name, until in ends.items():
        if until <= now:
            values.drop(prefix + name)
    return {name: until for name, until in ends.items() if until > now}


def _read_end(value: str) -> float:
    return float(json.loads(value)[0])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
