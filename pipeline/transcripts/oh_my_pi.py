"""Read the sessions of oh-my-pi, which writes them as pi does."""

from collections.abc import Iterator
from typing import ClassVar

from pipeline.transcripts import pi
from pipeline.transcripts.log_reader import list_files
from pipeline.transcripts.reader import Places, TranscriptFile


class Reader(pi.Reader):
    """Reader of oh-my-pi's sessions."""

    agent: ClassVar[str] = "oh-my-pi"
    label: ClassVar[str] = "oh-my-pi"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the sessions of all projects."""
        yield from list_files(self.agent, places.home / ".omp" / "agent" / "sessions", pi.is_session)
