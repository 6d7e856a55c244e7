"""Small disks of their own, for tests that fill one or close it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Mount a disk in memory on a folder until the end; skip the test where that is not permitted."""
    command = ["mount", "-t", "tmpfs", "-o", options, "reverie-test", str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command; the other tests of this file need none")
    if done.returncode:
        pytest.skip(f"mounting a small disk is not permitted ({done.stderr.strip()}); the other tests need none")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
