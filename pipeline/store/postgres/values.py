"""Convert values like SQLite: integers, numbers and texts, with booleans as integers."""

from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.postgres import adapters


class _WholeNumber(Dumper):
    """An integer or a boolean, in 64 bits as in SQLite."""

    def dump(self, obj: int) -> bytes:
        return b"%d" % obj

    def quote(self, obj: int) -> bytes:
        return b"'%d'::int8" % obj


class _Number(Dumper):
    """A number, which would otherwise be a decimal."""

    def dump(self, obj: float) -> bytes:
        return repr(float(obj)).encode()

    def quote(self, obj: float) -> bytes:
        return b"'%b'::float8" % self.dump(obj)


class _DecimalFraction(Loader):
    """A sum of the server: an integer or a number."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _Truth(Loader):
    """A boolean."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class Values(AdaptContext):
    """The adapters of a connection, so that values are converted as with SQLite."""

    def __init__(self) -> None:
        self._adapters = AdaptersMap(adapters)
        for kind in (int, bool):
            self._adapters.register_dumper(kind, _WholeNumber)
        self._adapters.register_dumper(float, _Number)
        self._adapters.register_loader("numeric", _DecimalFraction)
        self._adapters.register_loader("bool", _Truth)

    @property
    def connection(self) -> None:
        """Return no connection: the adapters are for all connections."""

    @property
    def adapters(self) -> AdaptersMap:
        """Return the adapters for sending and reading values."""
        return self._adapters


VALUES = Values()
