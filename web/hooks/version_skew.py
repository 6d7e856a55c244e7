"""A server that runs other code than the hook client: restart it, or note it for `doctor` and `status`.

The hook client imports this module only if the builds differ (docs/decisions/0071). While two installations differ,
an agent waits for it at each step: it imports as little as the client.
"""
# ruff: noqa: PTH118, PTH120, PTH123 - pathlib alone takes longer than the hook client

import os
import sys
import time

from web.hooks.client import START_LOCK, run_up, take_lock

# One line per pair of builds that met: when, what was done, the client's build, the server's, the client's Python.
SKEW = "version-skew"
RESTARTED, NOTED = "restarted", "noted"
# A pair of builds causes one restart, or one note, in this time; all pairs together cause at most so many.
PAIR_S = 86_400.0
MOST_PAIRS = 20
# Restarts of one server are at least this far apart, whatever the builds.
RESTART_S = 600.0
# The build of a server from before builds existed.
UNKNOWN = "unknown"

Skew = tuple[float, str, str, str, str]


def heal_skew(home: str, server: str, client: str, variables: dict[str, str]) -> str:
    """Restart a server that runs older code of this installation; note a server of another installation.

    Return what was done, "" if the pair was handled before or another process starts the stack.
    """
    server = server or UNKNOWN
    try:
        if not _is_due(list_skews(home), server, client) or (lock := take_lock(home, START_LOCK)) is None:
            return ""
    except OSError:
        # Without the record on the disk, nothing limits the restarts.
        return ""
    try:
        return _heal_once(home, server, client, variables, lock)
    except OSError:
        return ""
    finally:
        os.close(lock)


def _heal_once(home: str, server: str, client: str, variables: dict[str, str], lock: int) -> str:
    skews = list_skews(home)
    if not _is_due(skews, server, client):
        return ""
    action = RESTARTED if _may_replace(server, client) else NOTED
    # Before the start: a restart that fails is not tried again.
    _write(home, [*skews, (time.time(), action, client, server, sys.executable)])
    if action == RESTARTED:
        # Until the new server answers, prompts wait for it, and no other hook starts a stack.
        run_up({**variables, "REVERIE_HOME": home}, lock, "--replace")
    return action


def _is_due(skews: list[Skew], server: str, client: str) -> bool:
    now = time.time()
    recent = [skew for skew in skews if abs(now - skew[0]) < PAIR_S]
    if len(recent) >= MOST_PAIRS or any(skew[2:4] == (client, server) for skew in recent):
        return False
    return not _may_replace(server, client) or all(
        action != RESTARTED or abs(now - at) >= RESTART_S for at, action, *_ in recent
    )


def _may_replace(server: str, client: str) -> bool:
    """Return whether a server can be of the client's installation; `up --replace` checks it."""
    return server == UNKNOWN or is_same_installation(server, client)


def is_same_installation(build: str, other: str) -> bool:
    """Return whether two builds were installed in the same folder."""
    return build.partition("-")[0] == other.partition("-")[0]


def list_skews(home: str) -> list[Skew]:
    """Return the recorded pairs, the oldest first; skip lines that cannot be read."""
    try:
        with open(os.path.join(home, SKEW), encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    skews: list[Skew] = []
    for line in lines:
        parts = line.split(" ", 4)
        try:
            skews.append((float(parts[0]), parts[1], parts[2], parts[3], parts[4]))
        except (ValueError, IndexError):
            continue
    return skews


def _write(home: str, skews: list[Skew]) -> None:
    """Write the recorded pairs of the last day."""
    now = time.time()
    lines = [f"{skew[0]:.3f} {' '.join(skew[1:])}\n" for skew in skews if abs(now - skew[0]) < PAIR_S]
    descriptor = os.open(os.path.join(home, SKEW), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)


def describe_skews(home: str, server: str) -> list[str]:
    """Return a message, with the commands, for each other installation whose hooks met the running server."""
    programs = {
        os.path.join(os.path.dirname(python), "reverie")
        for _, action, _, met, python in list_skews(home)
        if met == server and action == NOTED
    }
    return [
        f"hooks run another installation of Reverie than the server: {program}. Run `reverie setup` to connect the"
        f" hooks to the server's, or `reverie down` and `{program} up --daemon` to use the hooks'"
        for program in sorted(programs)
    ]
