#!/usr/bin/env bash
# python-ulid 4.1.0: with several threads, the ULIDs of one thread are not in ascending order.
#
# Expected: the default generator is documented as monotonic within a millisecond, guarded by a lock, and safe to share
#   across threads. A thread that calls `ULID()` repeatedly gets ascending values, whatever other threads do.
# Observed: the clock is read before the lock is taken. If another thread gets a value of the next millisecond in
#   between, the generator forgets the randomness of the earlier millisecond and starts it again, often below the last
#   value. No two ULIDs are equal. With one thread, the order is right. Do not use ULIDs of one process as its order.
#
# Output (the second count varies, and is not 0):
#   1 thread:  0 of 200,000 ULIDs are smaller than the one before
#   4 threads: 37 of 200,000 ULIDs are smaller than the one before in their thread
#   duplicates: 0
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check python-ulid==4.1.0

"$work/venv/bin/python" - <<'PYTHON'
import threading

from ulid import ULID

COUNT = 200_000
# The order of threads is up to the system: as many attempts until one of them shows it.
ATTEMPTS = 10


def generate(threads):
    """Return the ULIDs of each thread, in the order in which it got them."""
    generated = [[] for _ in range(threads)]
    start = threading.Barrier(threads)

    def run(own):
        start.wait()
        own.extend(ULID() for _ in range(COUNT // threads))

    running = [threading.Thread(target=run, args=(own,)) for own in generated]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return generated


def count_inversions(generated):
    return sum(after < before for own in generated for before, after in zip(own, own[1:]))


alone = count_inversions(generate(1))
for _ in range(ATTEMPTS):
    generated = generate(4)
    inversions = count_inversions(generated)
    if inversions:
        break
duplicates = COUNT - len({ulid for own in generated for ulid in own})
print(f"1 thread:  {alone} of {COUNT:,} ULIDs are smaller than the one before")
print(f"4 threads: {inversions} of {COUNT:,} ULIDs are smaller than the one before in their thread")
print(f"duplicates: {duplicates}")
raise SystemExit("changed: the order is right" if alone or duplicates or not inversions else 0)
PYTHON
