"""What the web servers, workers and schedulers of a home share where they share no files: secrets, and who leads."""

import secrets

from config.settings import Settings
from pipeline.errors import ReverieError
from pipeline.store.home_values import HomeValues
from pipeline.store.leases import Lease
from pipeline.store.operations import Operations
from pipeline.store.stores import open_home_values

SECRET = "secret."  # noqa: S105 - what the names of secrets begin with
SCHEDULER = "scheduler"


def read_secret(values: HomeValues, name: str) -> str:
    """Return a secret that every process of a home knows, made by the first that asks for it."""
    return values.begin(SECRET + name, secrets.token_urlsafe(32))


def open_secret(settings: Settings, name: str) -> str | None:
    """Return a secret that every process of a home knows, for who needs nothing else; None where homes are files."""
    values = open_home_values(settings)
    if values is None:
        return None
    try:
        return read_secret(values, name)
    finally:
        values.close()


class Leadership:
    """Decide whether this scheduler sends: it is the only one of the data directory, or holds the lease."""

    def __init__(self, values: HomeValues | None, operations: Operations) -> None:
        self._lease = None if values is None else Lease(values, SCHEDULER)
        self._operations = operations
        self._leads = values is None

    @property
    def interval_s(self) -> float | None:
        """Return the seconds between two requests for the lease; None where this scheduler is always the leader."""
        return None if self._lease is None else self._lease.lease_s / 3

    @property
    def is_held(self) -> bool:
        """Return whether this one sends."""
        return self._leads and (self._lease is None or self._lease.is_held)

    def ask(self) -> bool:
        """Take it where it is free, or renew it; return whether it is this one's only now."""
        if self._lease is None:
            return False
        led = self.is_held
        try:
            self._leads = self._lease.take()
        except ReverieError as error:
            self._operations.record_error("scheduler", f"This scheduler cannot renew its lease: {error}")
        return self.is_held and not led

    def resign(self) -> None:
        """Let another one lead at once."""
        if self._lease is not None and self.is_held:
            self._leads = False
            try:
                self._lease.release_lease()
            except ReverieError as error:
                self._operations.record_error("scheduler", f"the next one leads only after a while: {error}")
