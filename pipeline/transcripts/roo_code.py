"""Read the tasks of Roo Code and of Kilo Code's extension, which was made from it."""

from collections.abc import Iterator
from typing import ClassVar

from pipeline.transcripts.cline_tasks import list_tasks, read_task
from pipeline.transcripts.reader import Places, SessionPart, TranscriptFile


class Reader:
    """Reads Roo Code."""

    agent: ClassVar[str] = "roo-code"
    label: ClassVar[str] = "Roo Code"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the tasks."""
        return list_tasks(self.agent, places, ("rooveterinaryinc.roo-cline", "kilocode.kilo-code"))

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""
        return read_task(file, mark)
