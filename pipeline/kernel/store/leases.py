"""Leases: exclusive permissions across all machines that share a store.

A lease is a value of the store that its holder renews; it is free again when it is released or not renewed in time.
Each change names the value that it replaces, so that only one of two contenders gets a free lease. Times are seconds
since the epoch; the machines' clocks must agree.
"""

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from sqlite3 import Connection

from pipeline.kernel.errors import ReverieError, StoreBusy
from pipeline.kernel.store import meta
from pipeline.kernel.store.database import Tables
from pipeline.kernel.store.home_values import HomeValues, workspace_values

LEASE_S = 30.0
# The share of a lease's time after which it is renewed.
RENEWAL_SHARE = 1 / 3
LOOK_S = 0.1
PREFIX = "lease."

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Lease:
    """A named lease, which its holder renews."""

    values: HomeValues
    name: str
    owner: str = field(default_factory=lambda: secrets.token_hex(8))
    lease_s: float = LEASE_S
    _until: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    def take(self) -> bool:
        """Take or renew the lease; return False if another holder has it."""
        now = time.time()
        stored = self.values.get(PREFIX + self.name)
        until, _, holder = (stored or "").partition(" ")
        is_free = holder in ("", self.owner) or float(until) <= now
        text = f"{now + self.lease_s:.3f} {self.owner}"
        is_taken = is_free and self.values.replace(PREFIX + self.name, stored, text)
        if is_taken:
            self._until = now + self.lease_s
        return is_taken

    @property
    def is_held(self) -> bool:
        """Return whether the lease was renewed in time: otherwise another holder may have it."""
        return time.time() < self._until

    def check(self) -> None:
        """Raise StoreBusy if the lease is lost."""
        if not self.is_held:
            raise StoreBusy(f"the lease {self.name} was lost: it could not be renewed in time")

    def release_lease(self) -> None:
        """Release the lease."""
        self._ended.set()
        self._until = 0.0
        stored = self.values.get(PREFIX + self.name)
        if stored is not None and stored.partition(" ")[2] == self.owner:
            self.values.replace(PREFIX + self.name, stored, "0 ")

    def renew_until_released(self) -> None:
        """Renew the lease regularly until it is released."""
        while not self._ended.wait(self.lease_s * RENEWAL_SHARE):
            try:
                if not self.take():
                    log.warning("another holder took the lease %s", self.name)
                    return
            except ReverieError as error:
                log.warning("cannot renew the lease %s: %s", self.name, error)


def drop_leases(db: Connection) -> None:
    """Delete all leases from a copy of a store: their holders hold those of the original."""
    for key in meta.list_keys(db, PREFIX):
        meta.drop(db, key)


@contextmanager
def hold(database: Tables, name: str, lease_s: float = LEASE_S) -> Iterator[Lease]:
    """Hold a lease of a workspace during a block; wait while another holder has it."""
    lease = Lease(workspace_values(database), name, lease_s=lease_s)
    waiting = threading.Event()
    while not lease.take():
        waiting.wait(LOOK_S)
    renewing = threading.Thread(target=lease.renew_until_released, name=f"renew-{name}", daemon=True)
    renewing.start()
    try:
        yield lease
    finally:
        lease.release_lease()
        renewing.join()
