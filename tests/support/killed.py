"""A process of ours that is killed where it says that it is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_until_killed(code: str, *arguments: str) -> None:
    """Run code that prints `here` and waits where it is to be killed, and kill it there."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"here\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
