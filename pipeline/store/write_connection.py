"""The connection of a write transaction, whichever library opens the file."""

import sqlite3
from abc import ABCMeta

from pipeline.enums import Stage


class WriteConnection(sqlite3.Connection, metaclass=ABCMeta):
    """A connection whose transaction collects the work of its commit; SQLCipher's connection has a separate class.

    `wake_ups` are the stages whose workers it wakes, `changed_rows` the memories whose row hash it updates.
    """

    wake_ups: set[Stage | None]
    changed_rows: set[int]
