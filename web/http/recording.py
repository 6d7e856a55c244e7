"""Whether the connected hosts are recorded: for `status`, `doctor`, the overview and the start of a session."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from config.paths import HomePaths
from pipeline.features.diagnostics.recording_check import ConnectedHost, HostRecording, check_recording
from pipeline.sessions.watch import find_places
from web.hooks.client import HOOK_CLIENT, SERVER_OPTION
from web.hosts.hook_entries import EVENTS
from web.hosts.hosts import BY_NAME
from web.hosts.installed_files import STATE_FILE, InstalledFile, read_state

# The command of a hook that sends its events to a team's server instead of this machine's.
_OF_TEAM = re.compile(rf"{re.escape(HOOK_CLIENT)}[^\n]{{0,200}}?[\s\"]{re.escape(SERVER_OPTION)}[\s\"]")


def list_connected_hosts(root: Path, was_heard: Callable[[str], bool]) -> list[ConnectedHost]:
    """List the hosts whose hooks were set up on this machine, or that a plugin connects and that were heard."""
    records = read_state(root)
    set_up = {name for record in records.values() for name in record.hosts}
    set_up -= {name for file, record in records.items() if _is_of_team(file, record) for name in record.hosts}
    set_up_at = (root / STATE_FILE).stat().st_mtime if records else 0.0
    return [
        ConnectedHost(name, BY_NAME[name].title, BY_NAME[name].agents, set_up_at if name in set_up else 0.0)
        for name in EVENTS
        if name in set_up or was_heard(name)
    ]


def _is_of_team(file: str, record: InstalledFile) -> bool:
    if record.hosts.isdisjoint(EVENTS):
        return False
    try:
        return _OF_TEAM.search(Path(file).read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def check_hosts(paths: HomePaths) -> list[HostRecording]:
    """Check the recording of every connected host."""
    return check_recording(partial(list_connected_hosts, paths.root), paths.host_activity, find_places())
