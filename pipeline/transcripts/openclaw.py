"""Read the sessions of OpenClaw, which writes them as pi does; prompts come from chats, timers and heartbeats."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pipeline.transcripts import pi
from pipeline.transcripts.log_reader import folder_of, list_files
from pipeline.transcripts.reader import Places, SessionHead, TranscriptFile

# The program writes these prompts itself.
_PROGRAM = re.compile(r"\s*(?:\[cron:|System: |Read HEARTBEAT\.md|HEARTBEAT\b)")
# The chat that a message came from: "[WhatsApp +49 170 2026-01-05 10:00] text".
_ENVELOPE = re.compile(r"\A\s*\[[A-Z][^\]\n]{0,120}\d{4}-\d\d-\d\d[^\]\n]{0,40}\]\s*")


class Reader(pi.Reader):
    """Reader of OpenClaw's sessions."""

    agent: ClassVar[str] = "openclaw"
    label: ClassVar[str] = "OpenClaw"

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the sessions of all agents."""
        agents = folder_of(places, "OPENCLAW_STATE_DIR", ".openclaw") / "agents"
        yield from list_files(self.agent, agents, pi.is_session)

    def open_session(self, file: TranscriptFile, state: Mapping[str, Any]) -> "OpenClawSession":
        """Return the session of a file."""
        return OpenClawSession(SessionHead(self.agent, pi.find_id(file.path)), state)


class OpenClawSession(pi.PiSession):
    """The entries of a session."""

    def read_prompt(self, text: str) -> str:
        """Return what the person wrote of a prompt: nothing of a prompt that the program wrote."""
        return "" if _PROGRAM.match(text) else _ENVELOPE.sub("", text)
