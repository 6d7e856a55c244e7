"""A time of day for the programs of a test. It shifts what the operating system says, not what they make of it."""

import mmap
import shutil
import struct
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

SOURCE = Path(__file__).with_name("shifted_clock.c")
COMPILER = "cc"
_NANOSECONDS = struct.Struct("=q")


def has_compiler() -> bool:
    """Return whether this machine can build the library that shifts the time of day."""
    return shutil.which(COMPILER) is not None


class ShiftedClock:
    """A time of day that moves on by itself, and forward where it is set."""

    def __init__(self, folder: Path) -> None:
        self._library = folder / "shifted_clock.so"
        self._file = folder / "shift"
        command = [COMPILER, "-shared", "-fPIC", "-O2", "-o", str(self._library), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        self._file.write_bytes(_NANOSECONDS.pack(0))
        with self._file.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), _NANOSECONDS.size)
        self._shift: timedelta | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables of a program that is to live by this clock."""
        return {"LD_PRELOAD": str(self._library), "SHIFTED_CLOCK": str(self._file)}

    def make_environment(self, folder: Path) -> Path:
        """Make a virtual environment like the one of this program, and return its Python, which lives by this clock.

        So do programs that it starts by `sys.executable`, also those that get no other variable.
        """
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        (folder / "lib").symlink_to(Path(sys.prefix, "lib"))
        base = Path(sys._base_executable).resolve()
        (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
        variables = " ".join(f"{name}={value}" for name, value in self.variables.items())
        python.write_text(f'#!/bin/bash\nexport {variables}\nexec -a "$0" {base} "$@"\n')
        python.chmod(0o755)
        return python

    def now(self) -> datetime:
        """Return the time of day that programs see."""
        return datetime.now(UTC) + (self._shift or timedelta())

    def set_forward(self, moment: datetime) -> None:
        """Go forward to a moment, and the first time to any; a moment that has passed changes nothing."""
        if self._shift is None or self.now() < moment:
            self._shift = moment - datetime.now(UTC)
            self._mapped[:] = _NANOSECONDS.pack(self._shift // timedelta(microseconds=1) * 1000)
