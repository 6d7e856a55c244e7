"""What a change can be taken back with, kept until the page that offers it is drawn: a cookie has room for little."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType

from flask import current_app

EXTENSION = "dashboard_undos"
MOST = 64


class Undos:
    """Keep the fields of actions that take something back; the oldest of many are forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Mapping[str, str]] = OrderedDict()

    def keep(self, fields: Mapping[str, str]) -> str:
        """Keep an action's fields; return the key under which they are found again."""
        key = secrets.token_urlsafe(16)
        with self._lock:
            self._kept[key] = MappingProxyType(dict(fields))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return key

    def fields(self, key: str) -> Mapping[str, str] | None:
        """Return an action's fields, None when they are kept no more."""
        with self._lock:
            return self._kept.get(key)


def undos() -> Undos:
    """Return what the running app keeps."""
    known: Undos = current_app.extensions.setdefault(EXTENSION, Undos())
    return known
