"""Leases: who alone may do something now, over any number of machines that share a store.

A lease is a value of the store that its holder renews; it goes to the next one when it is given back, or when its
holder has not renewed it for its time. Each change of it names the value that it replaces, so that of two who find a
lease free one gets it. Times are seconds since the epoch, of machines whose clocks agree.
"""

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from sqlite3 import Connection

from pipeline.errors import ReverieError, StoreBusy
from pipeline.store import meta
from pipeline.store.database import Database

LEASE_S = 30.0
# Of a lease's time, after which it is renewed.
RENEWED_AFTER = 1 / 3
LOOK_S = 0.1
PREFIX = "lease."

log = logging.getLogger(__name__)


def take(db: Connection, name: str, owner: str, now: float, lease_s: float = LEASE_S) -> bool:
    """Take a lease, or renew one's own; return False where somebody else holds it."""
    found = meta.get(db, PREFIX + name)
    if found is None:
        return meta.put_new(db, PREFIX + name, _text(owner, now + lease_s))
    until, _, holder = found.partition(" ")
    if holder not in ("", owner) and float(until) > now:
        return False
    return meta.replace(db, PREFIX + name, found, _text(owner, now + lease_s))


def give_back(db: Connection, name: str, owner: str) -> None:
    """End a lease of one's own."""
    found = meta.get(db, PREFIX + name)
    if found is not None and found.partition(" ")[2] == owner:
        meta.replace(db, PREFIX + name, found, _text("", 0.0))


def _text(owner: str, until: float) -> str:
    return f"{until:.3f} {owner}"


@dataclass(slots=True)
class Lease:
    """A lease that this process holds and renews by itself."""

    database: Database
    name: str
    owner: str = field(default_factory=lambda: secrets.token_hex(8))
    lease_s: float = LEASE_S
    _until: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise StoreBusy where it was not renewed in time: by now it may be another's."""
        if time.time() >= self._until:
            raise StoreBusy(f"the lease {self.name} was lost: it could not be renewed in time")

    def take(self) -> bool:
        """Take it, or renew it; return False where somebody else holds it."""
        now = time.time()
        with self.database.write() as db:
            taken = take(db, self.name, self.owner, now, self.lease_s)
        if taken:
            self._until = now + self.lease_s
        return taken

    def give_back(self) -> None:
        """Let the next one have it."""
        self._ended.set()
        with self.database.write() as db:
            give_back(db, self.name, self.owner)

    def renew_until_given_back(self) -> None:
        """Renew it now and then, for as long as it is held."""
        while not self._ended.wait(self.lease_s * RENEWED_AFTER):
            try:
                if not self.take():
                    log.warning("the lease %s went to somebody else", self.name)
                    return
            except ReverieError as error:
                log.warning("the lease %s is not renewed: %s", self.name, error)


@contextmanager
def hold(database: Database, name: str, lease_s: float = LEASE_S) -> Iterator[Lease]:
    """Hold a lease during a block, and wait for whoever holds it before."""
    lease = Lease(database, name, lease_s=lease_s)
    waiting = threading.Event()
    while not lease.take():
        waiting.wait(LOOK_S)
    renewing = threading.Thread(target=lease.renew_until_given_back, name=f"renew-{name}", daemon=True)
    renewing.start()
    try:
        yield lease
    finally:
        lease.give_back()
        renewing.join()
