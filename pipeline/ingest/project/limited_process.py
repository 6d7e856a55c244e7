"""Describe files in a process with limited processor time and memory: a hostile file ends only that process.

    python -I -m pipeline.ingest.project.limited_process ROOT SECONDS BYTES

Reads a JSON line `[key, kind, text]` for each file, and answers `{"title", "parts"}` or `{"skipped"}`.
"""

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from config.operating_system import limit_memory, limit_processor_time
from pipeline.ingest.project.describe import Description, describe_file
from pipeline.ingest.project.files import FileKind, SkippedFile
from pipeline.ingest.project.imports import ProjectTree

COMMAND: Final = ("-m", "pipeline.ingest.project.limited_process")
SECONDS: Final = 10
MEMORY_BYTES: Final = 1 << 30
# For systems without limits on processor time.
LONGEST_WAIT_S: Final = 120.0


class LimitedDescriber:
    """Describe files of a project in a process that starts with the first file, and again after a file ended it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._stop()

    def describe(self, key: str, kind: FileKind, text: str) -> Description:
        """Return the description of a file; raise SkippedFile if there is none, or if the file exceeds the limits."""
        answer = self._ask(json.dumps([key, kind, text]))
        if answer is None:
            self._stop()
            raise SkippedFile(f"takes more than {SECONDS} s or {MEMORY_BYTES >> 30} GiB to read")
        if "skipped" in answer:
            raise SkippedFile(answer["skipped"])
        return Description(answer["title"], answer["parts"])

    def _ask(self, line: str) -> dict[str, Any] | None:
        """Return the process's answer, None if it ended."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        watch = threading.Timer(LONGEST_WAIT_S, process.kill)
        watch.start()
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
            answer = process.stdout.readline()
        finally:
            watch.cancel()
        return json.loads(answer) if answer.endswith("\n") else None

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            [sys.executable, "-I", *COMMAND, str(self._root), str(SECONDS), str(MEMORY_BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:
                self._process = None


def main() -> None:
    """Describe the incoming files, each within its limits."""
    root, seconds, size = sys.argv[1:]
    tree = ProjectTree(Path(root))
    limit_memory(int(size))
    for line in sys.stdin:
        limit_processor_time(int(seconds))
        key, kind, text = json.loads(line)
        sys.stdout.write(json.dumps(_answer(key, FileKind(kind), text, tree)) + "\n")
        sys.stdout.flush()


def _answer(key: str, kind: FileKind, text: str, tree: ProjectTree) -> dict[str, Any]:
    try:
        return describe_file(key, kind, text, tree)._asdict()
    except SkippedFile as skipped:
        return {"skipped": skipped.reason}
    except (MemoryError, RecursionError):
        return {"skipped": "needs too much memory to read"}


if __name__ == "__main__":
    main()
