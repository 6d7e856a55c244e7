"""Shared secrets and the lease of the leading scheduler, for processes that share a store but no files."""

import secrets
from contextlib import closing

from config.settings import Settings
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.store.home_values import HomeValues
from pipeline.kernel.store.leases import Lease
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.stores import open_home

SECRET = "secret."  # noqa: S105 - what the names of secrets begin with
SCHEDULER = "scheduler"


def read_secret(values: HomeValues, name: str) -> str:
    """Return a secret shared by all processes of a data directory; create it on first use."""
    return values.begin(SECRET + name, secrets.token_urlsafe(32))


def open_secret(settings: Settings, name: str) -> str | None:
    """Return a shared secret without opening the stores; None if the store is in local files."""
    if not settings.store.reveal():
        return None
    with closing(open_home(settings)) as home:
        return read_secret(HomeValues(home), name)


class Leadership:
    """Decide whether this scheduler is active: it is the only one of the data directory, or it has the lease."""

    def __init__(self, values: HomeValues | None, operations: Operations) -> None:
        self._lease = None if values is None else Lease(values, SCHEDULER)
        self._operations = operations
        self._leads = values is None

    @property
    def interval_s(self) -> float | None:
        """Return the seconds between two requests for the lease; None if this scheduler is always the leader."""
        return None if self._lease is None else self._lease.lease_s / 3

    @property
    def is_held(self) -> bool:
        """Return whether this scheduler is active."""
        return self._leads and (self._lease is None or self._lease.is_held)

    def ask(self) -> bool:
        """Take a free lease or renew it; return whether this scheduler became the leader just now."""
        if self._lease is None:
            return False
        led = self.is_held
        try:
            self._leads = self._lease.take()
        except ReverieError as error:
            self._operations.record_error("scheduler", f"This scheduler cannot renew its lease: {error}")
        return self.is_held and not led

    def resign(self) -> None:
        """Release the lease, so that another scheduler can lead at once."""
        if self._lease is not None and self.is_held:
            self._leads = False
            try:
                self._lease.release_lease()
            except ReverieError as error:
                self._operations.record_error(
                    "scheduler", f"Cannot release the lease. The next scheduler starts after it expires: {error}"
                )
