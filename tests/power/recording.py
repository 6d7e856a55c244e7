"""Record every change that a program makes to a data directory, in one order, by a library that is loaded before it."""

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("recorder.c")
COMPILER = "cc"
_HEADER = struct.Struct("=c7xQqIIQ")


@dataclass(frozen=True, slots=True)
class Record:
    """A change: its kind, the inode of its file, an offset or size, one or two paths below the folder, and data."""

    kind: str
    inode: int
    offset: int
    path: str
    other: str
    data: bytes

    @property
    def mark(self) -> dict[str, Any]:
        """Return the note of the program in a record of kind `M`."""
        note: dict[str, Any] = json.loads(self.data)
        return note


def find_obstacle() -> str | None:
    """Return why nothing can be recorded on this machine, None if it can."""
    if not sys.platform.startswith("linux"):
        return "the recorder needs LD_PRELOAD and the C library of Linux"
    return None if shutil.which(COMPILER) else "there is no C compiler to build the recorder"


def build_recorder(folder: Path) -> Path:
    """Compile the library into a folder."""
    library = folder / "recorder.so"
    if not library.exists():
        draft = folder / f"recorder-{os.getpid()}.so"
        command = [COMPILER, "-shared", "-fPIC", "-O2", "-o", str(draft), str(SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True, capture_output=True)
        draft.replace(library)
    return library


def record_program(library: Path, scenario: str, home: Path, log: Path) -> list[Record]:
    """Run a scenario on an empty data directory in a process of its own; return what it changed."""
    home.mkdir(mode=0o700)
    done = _run(library, home, log, "tests.power.scenarios", scenario, str(home))
    assert done.returncode == 0, done.stdout + done.stderr
    return list(read_log(log, home))


def fail_calls(library: Path, folder: Path, operation: str) -> list[str]:
    """Let each call of an operation fail once, in a folder of its own; return the broken promises, then a summary."""
    folder.mkdir(mode=0o700)
    done = _run(library, folder, Path(os.devnull), "tests.power.failing", str(folder), operation)
    shutil.rmtree(folder)
    assert done.stdout, done.stderr
    return done.stdout.splitlines()


def _run(library: Path, watched: Path, log: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
    environment |= {
        "LD_PRELOAD": str(library),
        "POWER_ROOT": str(watched),
        "POWER_LOG": str(log),
        "HF_HUB_OFFLINE": "1",
        "PYTHONHASHSEED": "0",
    }
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def read_log(log: Path, home: Path) -> Iterator[Record]:
    """Yield the records of a log, with paths relative to the data directory."""
    content = log.read_bytes()
    prefix, at = f"{home}/", 0
    while at < len(content):
        kind, inode, offset, path_length, other_length, size = _HEADER.unpack_from(content, at)
        at += _HEADER.size
        path = content[at : at + path_length].decode()
        at += path_length
        other = content[at : at + other_length].decode()
        at += other_length
        below = [name.removeprefix(prefix) if name != str(home) else "" for name in (path, other)]
        yield Record(kind.decode(), inode, offset, *below, content[at : at + size])
        at += size
