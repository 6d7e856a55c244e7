"""Describe files in a process with limited processor time and memory: a hostile file ends only that process.

    python -I -m pipeline.ingest.project.limited_process ROOT SECONDS BYTES

Reads a JSON line `[key, kind, text]` for each file, and answers `{"title", "parts"}` or `{"skipped"}`.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from config.limited_process import LimitedProcess
from config.operating_system import limit_memory, limit_processor_time
from pipeline.ingest.project.describe import Description, describe_file
from pipeline.ingest.project.files import FileKind, SkippedFile
from pipeline.ingest.project.imports import ProjectTree

COMMAND: Final = ("-m", "pipeline.ingest.project.limited_process")
SECONDS: Final = 10
MEMORY_BYTES: Final = 1 << 30
# For systems without limits on processor time.
LONGEST_WAIT_S: Final = 120.0


def start_describer(root: Path) -> LimitedProcess:
    """Return the process that describes the files of a project."""
    return LimitedProcess(*COMMAND, str(root), str(SECONDS), str(MEMORY_BYTES))


def describe_in_process(process: LimitedProcess, key: str, kind: FileKind, text: str) -> Description:
    """Return the description of a file; raise SkippedFile if there is none, or if the file exceeds the limits."""
    process.send(f"{json.dumps([key, kind, text])}\n".encode())
    line = process.receive(lambda output: output.readline(), LONGEST_WAIT_S)
    if not line.endswith(b"\n"):
        process.stop()
        raise SkippedFile(f"takes more than {SECONDS} s or {MEMORY_BYTES >> 30} GiB to read")
    answer = json.loads(line)
    if "skipped" in answer:
        raise SkippedFile(answer["skipped"])
    return Description(**answer)


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
