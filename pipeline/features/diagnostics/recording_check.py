"""Check that each connected host is still recorded: its transcripts, hooks and stored turns must not drift apart."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from pipeline.kernel.errors import ReverieError, UnreadableTranscript
from pipeline.kernel.store.host_activity import HostActivity, Sign
from pipeline.kernel.store.turns import Role
from pipeline.kernel.times import parse
from pipeline.sessions.readers.reader import READERS, Places, Said, TranscriptFile, load_reader

# The hosts are looked at again after this time: for a page of the dashboard, and for the start of a session.
FRESH_S, REFRESH_S = 30.0, 600.0
DAY_S = 86_400.0
# A host may write a prompt into its transcript before its hook runs, and a turn is stored in the background.
GRACE_S = 120.0
# A transcript that is read for its last prompt; the newest ones are usually much smaller.
LARGEST_READ = 64 * 1024 * 1024
# The newest transcript may be of a subagent and have no prompt.
NEWEST_FILES = 3


@dataclass(frozen=True, slots=True)
class ConnectedHost:
    """A host whose hooks were set up: its name and title, the readers of its sessions, and when it was set up."""

    name: str
    title: str
    agents: Sequence[str]
    set_up_at: float


@dataclass(frozen=True, slots=True)
class HostRecording:
    """When a host was last seen, in seconds since the epoch, and why it is not recorded, if it is not."""

    host: ConnectedHost
    prompt_at: float | None
    hook_at: float | None
    turn_at: float | None
    shown_at: float | None
    problem: str | None = None
    remedy: str | None = None
    silent_since: float | None = None


def check_recording(
    list_hosts: Callable[[Callable[[str], bool]], Iterable[ConnectedHost]], folder: Path, places: Places
) -> list[HostRecording]:
    """Compare what each host wrote with what its hooks delivered and what was stored.

    `list_hosts` takes a function that returns whether a hook of a host was ever heard.
    """
    activity = HostActivity(folder)
    hosts = list_hosts(lambda name: activity.read(name, Sign.HOOK) is not None)
    return [_check_host(host, activity, places) for host in hosts]


def _check_host(host: ConnectedHost, activity: HostActivity, places: Places) -> HostRecording:
    hook_at, ended_at = activity.read(host.name, Sign.HOOK), activity.read(host.name, Sign.TURN_ENDED)
    taken_at, shown_at = activity.read(host.name, Sign.TURN_TAKEN), activity.read(host.name, Sign.SHOWN)
    prompt_at = find_last_prompt(host.agents, places)
    seen = HostRecording(host, prompt_at, hook_at, taken_at, shown_at)
    return judge(seen, ended_at)


def judge(seen: HostRecording, ended_at: float | None) -> HostRecording:
    """Return what was seen of a host with its problem: hooks that do not run, or turns that are not stored."""
    # Prompts before the setup had no hooks.
    heard_at = max(seen.hook_at or 0.0, seen.host.set_up_at)
    if seen.prompt_at is not None and seen.prompt_at > heard_at + GRACE_S:
        return replace(
            seen,
            problem=f"{seen.host.title} has a later prompt in its transcripts, but its hooks do not run",
            remedy=f"`reverie setup {seen.host.name}` writes the hooks again; then restart {seen.host.title}",
            silent_since=heard_at,
        )
    if ended_at is not None and ended_at > (seen.turn_at or 0.0) + GRACE_S:
        return replace(
            seen,
            problem=f"hooks of {seen.host.title} run, but its turns are not stored",
            remedy="`reverie logs errors` has the reason; `reverie down` and `reverie up --daemon` start Reverie again",
            silent_since=seen.turn_at or seen.host.set_up_at,
        )
    return seen


def find_last_prompt(agents: Iterable[str], places: Places) -> float | None:
    """Return when a person last wrote a prompt, by the newest transcript with one; None without one."""
    files = [
        file
        for agent in agents
        if agent in READERS
        for file in load_reader(agent).discover(places)
        if file.size <= LARGEST_READ
    ]
    newest = sorted(files, key=lambda file: file.modified, reverse=True)
    prompts = (_find_last_prompt_of(file) for file in islice(newest, NEWEST_FILES))
    return next((prompt for prompt in prompts if prompt is not None), None)


def _find_last_prompt_of(file: TranscriptFile) -> float | None:
    try:
        times = [
            parse(entry.at).timestamp()
            for part in load_reader(file.agent).read(file, None)
            for entry in part.entries
            if isinstance(entry, Said) and entry.role is Role.USER and entry.at is not None
        ]
    except UnreadableTranscript:
        return None
    return max(times, default=None)


def describe_problem(recording: HostRecording) -> str:
    """Return one line about a host that is not recorded: since when, if it ever was, and why."""
    since = (
        "never recorded"
        if not recording.silent_since
        else f"not recording since {_format_time(recording.silent_since)}"
    )
    return f"{since}: {recording.problem}"


def _format_time(at: float) -> str:
    when, now = datetime.fromtimestamp(at).astimezone(), datetime.now().astimezone()
    return f"{when:%H:%M}" if when.date() == now.date() else f"{when:%Y-%m-%d %H:%M}"


# Checks all connected hosts.
Check = Callable[[], list[HostRecording]]


class RecordingWatch:
    """Check the hosts in the background, and warn a session once a day of hosts that are not recorded."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._problems: Sequence[HostRecording] = ()
        self._checked_at = self._warned_at = float("-inf")

    def list_problems(self, check: Check) -> Sequence[HostRecording]:
        """Return the hosts that are not recorded now."""
        with self._lock:
            if time.monotonic() - self._checked_at > FRESH_S:
                self._refresh(check)
            return self._problems

    def take_warning(self, check: Check) -> str | None:
        """Return a warning for an agent's session, at most once a day; look again in the background."""
        now = time.monotonic()
        if now - self._checked_at > REFRESH_S and not self._lock.locked():
            threading.Thread(target=self.list_problems, args=(check,), name="recording-check", daemon=True).start()
        if not self._problems or now - self._warned_at < DAY_S:
            return None
        self._warned_at = now
        lines = [f"- {describe_problem(found)}. Remedy for the user: {found.remedy}." for found in self._problems]
        return "\n".join(["Reverie misses a part of the user's sessions:", *lines])

    def _refresh(self, check: Check) -> None:
        try:
            self._problems = [recording for recording in check() if recording.problem is not None]
        except (OSError, ValueError, ReverieError) as error:
            self._report(f"the recording of hosts cannot be checked: {type(error).__name__}: {error}")
        self._checked_at = time.monotonic()
