"""A workspace's own settings as a table, to be moved and compared as everything else of a store is."""

from abc import abstractmethod
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Final

from config.settings import UnreadableSettings, read_text
from config.workspace_configs import write_config
from pipeline.errors import StoreDamaged
from pipeline.store.copying import Row, Table, WritableTables

_TABLE: Final = Table("config", ("workspace", "text"), ("TEXT", "TEXT"), key=(0,), once=False)


class ConfigTables(WritableTables):
    """One table of one row, or of none where the settings say nothing."""

    tables = (_TABLE,)

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id

    @abstractmethod
    def get(self) -> str:
        """Return what the settings say."""

    @abstractmethod
    def put(self, text: str) -> None:
        """Have the settings say something else."""

    def count(self, tables: Iterable[Table]) -> int:
        """Count the rows of tables."""
        return sum(len(list(self.rows(table))) for table in tables)

    def rows(self, table: Table) -> Generator[Row, None, None]:  # noqa: ARG002 - there is one
        """Go through the rows of a table."""
        if text := self.get():
            yield self._workspace_id, text

    def marks(self) -> dict[str, int]:
        """Return nothing: no number is given out."""
        return {}

    def clear(self, tables: Iterable[Table]) -> None:
        """Delete every row of tables."""
        for _ in tables:
            self.put("")

    def fill(self, table: Table, rows: Iterable[Row]) -> None:  # noqa: ARG002 - ditto
        """Put rows into a table that is empty."""
        for _, text in rows:
            self.put(text)

    def put_marks(self, marks: Mapping[str, int]) -> None:
        """Do nothing: no number is given out."""

    def find_unfit(self, table: Table, row: Row) -> str | None:  # noqa: ARG002 - ditto
        """Return what keeps a text from being settings anywhere: a NUL character."""
        return "holds a NUL character" if "\0" in row[1] else None


class ConfigFile(ConfigTables):
    """The settings in a file."""

    def __init__(self, workspace_id: str, file: Path) -> None:
        super().__init__(workspace_id)
        self._file = file

    def get(self) -> str:
        """Return what the file says; raise StoreDamaged if it is no text."""
        try:
            return read_text(self._file)
        except UnreadableSettings as error:
            raise StoreDamaged(str(error)) from error

    def put(self, text: str) -> None:
        """Write the file anew."""
        write_config(self._file, text)
