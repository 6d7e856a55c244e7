"""Whether the connected hosts are recorded: for `status`, `doctor`, the overview and the start of a session."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from config.paths import HomePaths
from pipeline.services.recording_check import ConnectedHost, HostRecording, check_recording
from pipeline.services.session_watch import find_places
from web.hosts.hook_entries import EVENTS
from web.hosts.hosts import BY_NAME
from web.hosts.installed_files import STATE_FILE, InstalledFile, read_state

# Hooks of a team's server do not come here.
TEAM_OPTION = "--server"


def list_connected_hosts(root: Path, was_heard: Callable[[str], bool]) -> list[ConnectedHost]:
    """List the hosts whose hooks were set up on this machine, or that a plugin connects and that were heard."""
    records = {file: record for file, record in read_state(root).items() if not _is_of_team(file, record)}
    set_up = {name for record in records.values() for name in record.hosts}
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
        return TEAM_OPTION in Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def check_hosts(paths: HomePaths) -> list[HostRecording]:
    """Check the recording of every connected host."""
    return check_recording(partial(list_connected_hosts, paths.root), paths.host_activity, find_places())
