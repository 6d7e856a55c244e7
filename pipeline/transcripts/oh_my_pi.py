"""Read the sessions of oh-my-pi, which writes them as pi does."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pipeline.transcripts import pi
from pipeline.transcripts.fields import as_mapping, as_text, parse_json
from pipeline.transcripts.log_reader import list_files
from pipeline.transcripts.reader import Places, SessionHead, TranscriptFile

# Writing to this address calls the tool of that name; the content is its arguments.
_DEVICE = "xd://"


class Reader(pi.Reader):
    """Reader of oh-my-pi's sessions."""

    agent: ClassVar[str] = "oh-my-pi"
    label: ClassVar[str] = "oh-my-pi"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the sessions of all projects."""
        yield from list_files(self.agent, places.home / ".omp" / "agent" / "sessions", pi.is_session)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "OhMyPiSession":
        """Return the session of a file."""
        return OhMyPiSession(SessionHead(self.agent, pi.find_id(file.path)), state)


class OhMyPiSession(pi.PiSession):
    """The entries of a session."""

    def read_call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the tool that a call runs, and its arguments."""
        path = as_text(arguments.get("path"))
        if name == "write" and path.startswith(_DEVICE):
            return path.removeprefix(_DEVICE).strip("/"), as_mapping(parse_json(arguments.get("content")))
        return name, arguments
