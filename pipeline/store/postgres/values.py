"""How values travel: as SQLite has them, whole numbers, numbers and texts, and truth as a whole number."""

from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.postgres import adapters


class _WholeNumber(Dumper):
    """A whole number or a truth value, in 64 bits as in SQLite."""

    def dump(self, obj: int) -> bytes:
        return b"%d" % obj

    def quote(self, obj: int) -> bytes:
        return b"'%d'::int8" % obj


class _Number(Dumper):
    """A number, which would otherwise be a decimal fraction."""

    def dump(self, obj: float) -> bytes:
        return repr(float(obj)).encode()

    def quote(self, obj: float) -> bytes:
        return b"'%b'::float8" % self.dump(obj)


class _DecimalFraction(Loader):
    """What the server adds up to: whole, or a number."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _Truth(Loader):
    """Whether a condition holds."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class Values(AdaptContext):
    """What a connection is opened with, so that values come and go as with SQLite."""

    def __init__(self) -> None:
        self._adapters = AdaptersMap(adapters)
        for kind in (int, bool):
            self._adapters.register_dumper(kind, _WholeNumber)
        self._adapters.register_dumper(float, _Number)
        self._adapters.register_loader("numeric", _DecimalFraction)
        self._adapters.register_loader("bool", _Truth)

    @property
    def connection(self) -> None:
        """Return no connection: it is for all."""

    @property
    def adapters(self) -> AdaptersMap:
        """Return how values are sent and read."""
        return self._adapters


VALUES = Values()
