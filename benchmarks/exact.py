"""Measure exact search over synthetic codes: CPU time and memory of a process that maps them.

Run by `make bench-exact`. Each size runs in a process of its own.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from benchmarks.figures import latency
from pipeline.index.codes import CodesFile, PassageCodes
from pipeline.index.dense import DenseIndex
from pipeline.index.vectors import VectorTable

DIMENSION = 384
SIZES = (200_000, 1_000_000, 2_000_000)
ASKS, ADDED, LIMIT = 20, 32, 160
# Synthetic passages are written in parts of this size.
PART = 100_000
MODEL = "synthetic"


def write_codes(file: CodesFile, size: int) -> None:
    """Write the codes of random passages, one for each memory."""
    random = np.random.default_rng(1)
    file.replace(PassageCodes.of(np.empty(0, np.int64), np.empty((0, DIMENSION), np.float32)))
    for start in range(0, size, PART):
        append_codes(file, random, start, min(PART, size - start))


def append_codes(file: CodesFile, random: np.random.Generator, start: int, count: int) -> None:
    """Append the codes of memories after a row number."""
    codes = random.integers(-127, 128, (count, DIMENSION), np.int8)
    scales = np.full(count, 1 / (74 * DIMENSION**0.5), np.float32)
    seqs = np.arange(start + 1, start + count + 1, dtype=np.int64)
    file.append(PassageCodes(seqs, np.zeros(count, np.int32), codes, scales))


def time_cpu(work: Callable[[], object], count: int) -> str:
    """Return the median CPU time of a piece of work, in milliseconds."""
    taken = []
    for _ in range(count):
        began = time.process_time()
        work()
        taken.append((time.process_time() - began) * 1000)
    return f"{latency(taken).p50:.1f} ms"


def measure(size: int, folder: Path) -> None:
    """Print the figures of one size."""
    table = VectorTable(folder, MODEL, DIMENSION)
    file: CodesFile = table._codes
    write_codes(file, size)
    index = DenseIndex(table, size + ADDED, np.empty((0, DIMENSION), np.float32))
    process, random = psutil.Process(), np.random.default_rng(2)
    query = random.normal(size=DIMENSION).astype(np.float32)
    query /= np.linalg.norm(query)
    before = process.memory_info()
    loading = time_cpu(lambda: index.refresh((0, 1)), 1)
    searching = time_cpu(lambda: index.search(query, (0, 1), LIMIT), ASKS)
    after = process.memory_info()
    scores = index.search(query, (0, 1), LIMIT)
    choosing = time_cpu(lambda: scores.top(LIMIT), ASKS)
    append_codes(file, random, size, ADDED)
    adding = time_cpu(lambda: index.refresh((0, 2)), 1)
    own = (after.rss - after.shared) - (before.rss - before.shared)
    mapped = after.shared - before.shared
    print(
        f"{size:>9,}  search {searching}  best {LIMIT} {choosing}  load {loading}  {ADDED} more {adding}  "
        f"own memory {own:,} bytes, mapped {mapped:,}"
    )
    index.close()


def main() -> None:
    """Measure each size in a new process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of passages")
    parser.add_argument("--alone", action="store_true", help="measure the only size in this process")
    chosen = parser.parse_args()
    for size in chosen.sizes:
        if not chosen.alone:
            command = [sys.executable, "-m", "benchmarks.exact", "--alone", "--sizes", str(size)]
            subprocess.run(command, check=True)
            continue
        with tempfile.TemporaryDirectory(prefix="reverie-exact-") as folder:
            measure(size, Path(folder))


if __name__ == "__main__":
    main()
