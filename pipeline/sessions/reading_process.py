"""Read transcripts for another process: tasks arrive at the standard input, what was read leaves by the output.

    python -I -m pipeline.sessions.reading_process BYTES

BYTES is the most memory of this process.
"""

import os
import pickle
import signal
import sys

from config.operating_system import POSIX, limit_memory
from config.process import stop_with_parent
from pipeline.sessions.reading import read_file
from pipeline.transcripts.zstd import MOST_BYTES


def main() -> None:
    """Read files until there is none."""
    # Of a compressed session, a reader writes a decompressed copy.
    limit_memory(int(sys.argv[1]), MOST_BYTES)
    if POSIX:
        # The importing process decides what an interruption means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stop_with_parent()
    # No library may write between the items.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
        except EOFError:
            return
        for item in read_file(task):
            pickle.dump(item, output)
            output.flush()


if __name__ == "__main__":
    main()
