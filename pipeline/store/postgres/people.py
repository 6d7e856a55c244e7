"""The people of a data directory on the server of its stores."""

from contextlib import AbstractContextManager
from sqlite3 import Connection

from pipeline.store.people import PeopleTables
from pipeline.store.postgres.server import Server


class PeopleOnServer(PeopleTables):
    """Tables on the server, which every web server of the data directory uses."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_shared = False

    def has_any(self) -> bool:
        """Return whether a person was ever added."""
        if not self._is_shared:
            with self._server.opened() as home:
                self._is_shared = home.execute("SELECT 1 FROM person LIMIT 1").fetchone() is not None
        return self._is_shared

    def reading(self) -> AbstractContextManager[Connection]:
        """Yield a connection; raise StoreUnavailable if it cannot be used."""
        return self._server.opened()

    def writing(self) -> AbstractContextManager[Connection]:
        """Yield a connection within a transaction; raise StoreUnavailable if it cannot be used."""
        return self._server.opened()

    def close(self) -> None:
        """Do nothing: the connections belong to the server object."""
