"""A workspace's settings as a table, so that they can be moved and compared like the rest of a store."""

from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Final

from config.toml_files import UnreadableSettings, read_text
from config.workspace_configs import write_config
from pipeline.errors import StoreDamaged
from pipeline.store.copying import Row, Table, WritableTables

_TABLE: Final = Table("config", ("workspace", "text"), ("TEXT", "TEXT"), key=(0,), once=False)


class ConfigTables(WritableTables):
    """One table with one row, or without rows for empty settings."""

    tables = (_TABLE,)

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id

    @abstractmethod
    def get(self) -> str:
        """Return the text of the settings."""

    @abstractmethod
    def put(self, text: str) -> None:
        """Replace the text of the settings."""

    def count(self, tables: Iterable[Table]) -> int:
        """Count the rows of tables."""
        return sum(len(list(self.rows(table))) for table in tables)

    def rows(self, table: Table) -> Generator[Row, None, None]:  # noqa: ARG002 - there is only one table
        """Iterate over the rows of a table."""
        if text := self.get():
            yield self._workspace_id, text

    def marks(self) -> dict[str, int]:
        """Return nothing: the table has no counters."""
        return {}

    def clear(self, tables: Iterable[Table]) -> None:
        """Delete every row of tables."""
        for _ in tables:
            self.put("")

    def fill(self, table: Table, rows: Iterable[Row]) -> None:  # noqa: ARG002 - ditto
        """Insert rows into an empty table."""
        for _, text in rows:
            self.put(text)

    def set_counters(self, marks: Mapping[str, int]) -> None:
        """Do nothing: the table has no counters."""

    def find_unsupported_value(self, table: Table, row: Row) -> str | None:  # noqa: ARG002 - ditto
        """Return why a text cannot be stored as settings: it contains a NUL character."""
        return "contains a NUL character" if "\0" in row[1] else None


class ConfigFile(ConfigTables):
    """The settings in a file."""

    def __init__(self, workspace_id: str, file: Path) -> None:
        super().__init__(workspace_id)
        self._file = file

    def get(self) -> str:
        """Return the file's content; raise StoreDamaged if it is not text."""
        try:
            return read_text(self._file)
        except UnreadableSettings as error:
            raise StoreDamaged(str(error)) from error

    def put(self, text: str) -> None:
        """Write the file."""
        write_config(self._file, text)
