"""Read the sessions of the Kilo CLI, which is made from opencode."""

from typing import ClassVar

from pipeline.transcripts import opencode


class Reader(opencode.Reader):
    """Reads the Kilo CLI."""

    agent: ClassVar[str] = "kilo"
    label: ClassVar[str] = "Kilo CLI"
    folder: ClassVar[str] = "kilo"
    database_variable: ClassVar[str] = "KILO_DB"
