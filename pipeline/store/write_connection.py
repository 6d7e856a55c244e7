"""The connection of a write transaction, whichever library opens the file."""

import sqlite3
from abc import ABCMeta

from pipeline.enums import Stage


class WriteConnection(sqlite3.Connection, metaclass=ABCMeta):
    """A connection whose transaction collects whom its commit wakes; SQLCipher's has a class of its own."""

    wake_ups: set[Stage | None]
