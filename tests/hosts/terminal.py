"""A terminal for programs that work only in one."""

import os
import pty
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.stack import wait_until

PATIENCE_S = 60


class Terminal:
    """A program in a terminal of its own, and the text that it has shown."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._master, inner = pty.openpty()
        self.process = subprocess.Popen(
            words,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            text=True,
            start_new_session=True,
        )
        os.close(inner)
        self._shown = b""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        # Reading fails when the program has ended.
        try:
            while read := os.read(self._master, 65536):
                self._shown += read
        except OSError:
            os.close(self._master)

    def wait_for(self, text: str) -> None:
        """Wait until a text was shown."""
        wait_until(f"the terminal shows {text}", lambda: text.encode() in self._shown, PATIENCE_S)

    def enter(self, text: str) -> None:
        """Type a line, and Enter once it is shown: in one write, the program would take both for pasted text."""
        os.write(self._master, text.encode())
        self.wait_for(text)
        os.write(self._master, b"\r")
