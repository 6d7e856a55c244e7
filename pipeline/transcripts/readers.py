"""The readers of all agents, by the agent's name. A reader's module is loaded when it is used."""

import importlib
from collections.abc import Mapping
from typing import Final

from pipeline.transcripts.reader import TranscriptReader

# The class `Reader` of the module `pipeline.transcripts.<module>`.
READERS: Final[Mapping[str, str]] = {"claude-code": "claude_code"}


def load_reader(agent: str) -> TranscriptReader:
    """Return the reader of an agent."""
    reader: TranscriptReader = importlib.import_module(f"pipeline.transcripts.{READERS[agent]}").Reader()
    return reader
