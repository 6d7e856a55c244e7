"""Servers that others wrote, as processes of a test: started, killed, started again where they were."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from tests.support.stack import wait_until

# Where Debian puts what only the administrator calls.
ADMINISTRATORS = "/usr/sbin"
SHOWN_CHARS = 2000


def find_program(name: str) -> str | None:
    """Return a program's path, None on a machine without it."""
    return shutil.which(name) or shutil.which(name, path=ADMINISTRATORS)


class ProgramEnded(Exception):
    """Say that a program ended before it answered, and what it printed last."""


class Program:
    """A process of one command, which may live several times."""

    def __init__(self, command: Sequence[str], log: Path, answers: Callable[[], bool]) -> None:
        self._command = tuple(command)
        self._log = log
        self._answers = answers
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the id of the process that runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it answers; raise ProgramEnded when it does not live so long."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(f"{Path(self._command[0]).name} answers", self._answers_or_ended)

    def kill(self) -> None:
        """End it and its children with SIGKILL, if it runs."""
        if self._process is None:
            return
        family = [] if self._process.poll() is not None else psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        self._process = None
        for child in family:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(family)

    def _answers_or_ended(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise ProgramEnded(self._log.read_text(encoding="utf-8", errors="replace")[-SHOWN_CHARS:])
        return self._answers()
