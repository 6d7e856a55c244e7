"""What `reverie setup` prints: the plan, each changed line on request, the result, and the import that it offers."""

import difflib
import re
import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from config.settings import Settings, environment_with
from pipeline.kernel.errors import ReverieError
from pipeline.sessions.discovery import StoredSessions, find_stored_sessions
from web.cli.render import count_of, format_size, open_console, pick, plain, print_wrapped, show_waiting, table
from web.cli.state import State
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import Host
from web.hosts.setup_plan import FileChange

HIDDEN = "•••"
# A token of an earlier setup or of another server, which the diff must not show.
_BEARER = re.compile(r"(?<=bearer )[\w.~+/-]{8,}=*", re.IGNORECASE)
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_ENDS = {"create": " (new)", "delete": " (deleted)", "error": " (cannot be changed)"}
QUESTIONS = 3
WORKSPACES_ASKED = 5
# The time in which the first sessions should be stored, indexed and concluded.
QUESTIONS_WITHIN_S = 45.0
POLL_S = 1.0


def show_plan(
    hosts: Sequence[Host],
    connections: Sequence[str],
    changes: Sequence[FileChange],
    home: Path,
    *,
    removes: bool,
) -> None:
    """Print one row per agent: what setup connects, and the files that it changes."""
    columns = ("agent", "disconnect" if removes else "connect", "files that change")
    rows = []
    for host, connection in zip(hosts, connections, strict=True):
        theirs = [change for change in changes if host.name in change.hosts and change.action != "none"]
        if theirs or not removes:
            rows.append((host.title, connection, theirs))
    if rows:
        # Two blanks separate the columns.
        widths = [max(map(len, cells)) + 2 for cells in zip(columns[:2], *(row[:2] for row in rows), strict=True)]
        room = open_console().width - sum(widths)
        table(columns, [(*row[:2], _name_files(row[2], home, room)) for row in rows])


def show_diffs(changes: Sequence[FileChange]) -> None:
    """Print every line that changes."""
    for change in changes:
        for line in _diff(change):
            click.echo(click.style(line, fg=_COLOURS.get(line[:1])))


def list_titles(hosts: Sequence[Host], changes: Sequence[FileChange]) -> list[str]:
    """Return the agents without an error in any of their files."""
    failed = {name for change in changes if change.error is not None for name in change.hosts}
    changed = {name for change in changes for name in change.hosts}
    return [host.title for host in hosts if host.name in changed - failed]


def show_agents(titles: Sequence[str], changes: Sequence[FileChange], *, removed: bool) -> None:
    """Print which agents are connected or disconnected, and how many files changed for it."""
    count = sum(change.is_pending for change in changes)
    changed = f"{count_of(count, 'file')} changed). Restart them." if count else "up to date)."
    print_wrapped(f"{'Disconnected' if removed else 'Connected'}: {', '.join(titles)} ({changed}")


def show_next_steps(url: str | None, undo: str | None) -> None:
    """Print the address of the server, and how to undo the setup."""
    if url is not None:
        click.echo(f"Server: {url}")
    if undo is not None:
        click.echo(f"Undo: `{undo}`")


def show_kept(settings: Settings, command: str, home: Path) -> None:
    """Print what a removal keeps, and how to connect the agents again."""
    print_wrapped(
        f"All memories stay in {plain(_shorten(settings.paths.root, home))}. `reverie down` stops the server."
    )
    click.echo(f"Undo: `{command}`")


def describe(change: FileChange) -> dict[str, Any]:
    """Return a change as a JSON object."""
    fields = pick(change, "hosts", "action", "error", "remarks")
    return {"path": str(change.path), **fields, "diff": "\n".join(_diff(change))}


def _name_files(changes: Sequence[FileChange], home: Path, room: int) -> str | None:
    """Return the names of files; if they need more room, only their number and the folders that fit."""
    if not changes:
        return None
    names = [f"{_shorten(change.path, home)}{_ENDS.get(change.action, '')}" for change in changes]
    count = count_of(len(changes), "file")
    folders = list(dict.fromkeys(_shorten(change.path.parent, home) for change in changes))
    summaries = [", ".join(names), f"{count} in {', '.join(folders)}", f"{count} in {min(folders, key=len)}, …"]
    return next((summary for summary in summaries if len(summary) <= room), count)


def _shorten(path: Path, home: Path) -> str:
    return str("~" / path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _diff(change: FileChange) -> Iterator[str]:
    """Yield the lines of a unified diff with hidden tokens."""
    if change.error is not None or change.before == change.after:
        return
    before, after = (_lines(content) for content in (change.before, change.after))
    old, new = ("/dev/null" if content is None else str(change.path) for content in (change.before, change.after))
    for line in difflib.unified_diff(before, after, old, new, lineterm=""):
        yield plain(line).rstrip("\n")


def _lines(content: bytes | None) -> list[str]:
    text = _BEARER.sub(HIDDEN, (content or b"").decode("utf-8", "replace"))
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]


@dataclass(frozen=True, slots=True)
class ImportOffer:
    """The sessions on this machine, and whether setup would import them."""

    sessions: Sequence[StoredSessions] = ()
    is_limited: bool = False
    """Whether the user named the agents to set up."""

    @property
    def waiting(self) -> list[StoredSessions]:
        """Return the agents with sessions that can be imported."""
        return [sessions for sessions in self.sessions if sessions.problem is None]

    def ask(self, *, pending: bool) -> str:
        """Return the one question of a setup; `pending` says whether files would change."""
        if not self.waiting:
            return "Write these changes?"
        files = sum(sessions.files for sessions in self.waiting)
        databases = sum(sessions.databases for sessions in self.waiting)
        named = [f"{files:,} session{'s' * (files != 1)}"] if files else []
        named += [f"the sessions in {count_of(databases, 'database')}"] if databases else []
        action = f"mport {' and '.join(named)}"
        return f"Write these changes and i{action}?" if pending else f"I{action}?"

    def describe(self) -> list[dict[str, Any]]:
        """Return the sessions as JSON objects."""
        return [asdict(sessions) for sessions in self.sessions]

    def show(self) -> None:
        """Print the number of each agent's sessions, their size and age, and the agents that cannot be read."""
        if self.waiting:
            counts = ", ".join(map(_count_sessions, self.waiting))
            size = format_size(sum(sessions.size for sessions in self.waiting))
            oldest = min((sessions.oldest_at for sessions in self.waiting if sessions.oldest_at), default=None)
            print_wrapped(f"Past sessions: {counts} ({size}{f', since {oldest[:10]}' if oldest else ''})")
        for sessions in self.sessions:
            if sessions.problem is not None:
                click.echo(f"Cannot list the sessions of {sessions.label}: {plain(sessions.problem)}", err=True)


def find_offer(state: State, host_env: HostEnvironment, hosts: Sequence[Host] | None) -> ImportOffer:
    """Look for the sessions of some hosts, or of all agents."""
    agents = None if hosts is None else {agent for host in hosts for agent in host.agents}
    with show_waiting("looking for sessions", quiet=state.json):
        sessions = find_stored_sessions(host_env.home, environment_with({}), host_env.platform, agents)
    return ImportOffer(sessions, is_limited=agents is not None)


def start_import(state: State, offer: ImportOffer) -> None:
    """Start the import in the background, if there are sessions."""
    if not offer.waiting:
        return
    from pipeline.sessions.import_progress import start_import_in_background

    agents = [sessions.agent for sessions in offer.waiting] if offer.is_limited else []
    start_import_in_background(state.settings, agents)
    click.echo("Importing the sessions in the background; `reverie status` shows the progress.", err=state.json)


def suggest_questions(state: State, offer: ImportOffer | None) -> None:
    """Print what to try now: questions that the first imported sessions answer, or how to import something."""
    commands: list[str] = []
    if offer is not None and offer.waiting:
        try:
            commands = find_questions(state)
        except ReverieError as error:
            # Everything that was asked for is done or runs in the background.
            click.echo(f"No questions are suggested: {error}", err=True)
    if not commands:
        click.echo("Try now: `reverie index project` in a project; `reverie dashboard`")
        return
    click.echo("Try now what your past sessions answer:")
    for command in commands:
        click.echo(f"  {command}")


def find_questions(state: State) -> list[str]:
    """Return commands that ask what imported sessions answer; wait a short time for the first sessions."""
    pause, deadline = threading.Event(), time.monotonic() + QUESTIONS_WITHIN_S
    with show_waiting("reading the first sessions", quiet=False), state.client() as client:
        while True:
            progress = client.request("GET", "/v1/sessions/import")
            # The current folder first, then the workspaces with most sessions.
            names = sorted(progress["workspaces"], key=lambda name: -progress["workspaces"][name])
            names = sorted(names, key=lambda name: name != client.workspace)[:WORKSPACES_ASKED]
            answers = [(name, client.request("GET", "/v1/sessions/questions", workspace=name)) for name in names]
            questions = [(name, item) for name, answer in answers for item in answer["questions"]][:QUESTIONS]
            is_over = (
                bool(names)
                and not progress["running"]
                and not any(
                    # Conclusions of sessions are still being extracted.
                    client.queue(name)["pending"].get("conclude")
                    for name in names
                )
            )
            if len(questions) == QUESTIONS or is_over or time.monotonic() >= deadline:
                break
            pause.wait(POLL_S)
    if progress["text"]:
        click.echo(plain(progress["text"]))
    chosen = {name: "" if name == state.workspace else f"-w {name} " for name in names}
    return [f"reverie {item['ask']} {chosen[name]}{_quote_argument(item['text'])}" for name, item in questions]


def _quote_argument(text: str) -> str:
    quoted = shlex.quote(text)
    return quoted if quoted == text or set(text) & set('"$`\\!') else f'"{text}"'


def list_connections(
    hosts: Sequence[Host], host_env: HostEnvironment, reverie: Installation, changes: Sequence[FileChange]
) -> list[str]:
    """Return what setup connects of each host."""
    connections = []
    for host in hosts:
        actions = {change.action for change in changes if host.name in change.hosts}
        names = ", ".join(host.list_connections(host_env, reverie))
        connections.append("cannot be changed" if "error" in actions else names if actions - {"none"} else "up to date")
    return connections


def _count_sessions(stored: StoredSessions) -> str:
    counts = [f"{stored.files:,}"] if stored.files else []
    counts += [count_of(stored.databases, "database")] if stored.databases else []
    return f"{stored.label} {' + '.join(counts)}"
