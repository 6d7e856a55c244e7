"""The processes of the stack, as the Procfile lists them.

Each line contains a name and a command without shell syntax. `exec` is for shells that run the file. `python` is the
interpreter of this installation. `${NAME:-default}` is a value that differs between data directories.

The options of the worker are those of huey: processes, each with its own threads; intervals for polling, health checks
and delayed tasks; no periodic tasks; SIGTERM gives tasks a second to end. With `-I`, PYTHONPATH, the user's packages
and the working folder do not count: a project may have a package named `web` or `config`. `reverie.run` finds
Reverie's own.
"""

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROCFILE = Path(__file__).with_name("Procfile")
STOP_WITH_PARENT = "--stop-with-parent"
WORKER_PROCESSES = "REVERIE_WORKER_PROCESSES"
_LINE = re.compile(r"^([\w-]+):\s*(?:exec\s+)?(.+)$", re.MULTILINE)
_VALUE = re.compile(r"\$\{(\w+):-([^}]*)\}")


@dataclass(frozen=True, slots=True)
class ProcessCommand:
    """One process of the stack: its name, its program and the arguments."""

    name: str
    words: tuple[str, ...]

    def alone(self) -> list[str]:
        """Return the command for a process that does not end with its parent."""
        return [word for word in self.words if word != STOP_WITH_PARENT]

    def below(self, parent: int) -> list[str]:
        """Return the command for a process that ends with its parent, also if the parent ended before it started."""
        return [*self.words, str(parent)] if self.words[-1] == STOP_WITH_PARENT else list(self.words)


def read_procfile(worker_processes: int, file: Path = PROCFILE) -> tuple[ProcessCommand, ...]:
    """Return the processes of a Procfile in its order."""
    values = {WORKER_PROCESSES: str(worker_processes)}
    lines = _LINE.findall(file.read_text(encoding="utf-8"))
    return tuple(ProcessCommand(name, tuple(_split(command, values))) for name, command in lines)


def _split(command: str, values: Mapping[str, str]) -> list[str]:
    program, *arguments = shlex.split(_VALUE.sub(lambda match: values.get(match[1], match[2]), command))
    return [sys.executable, "-u", *arguments] if program == "python" else [program, *arguments]
