"""Overview: what was learned, changed and forgotten today, memory counts, health and suggestions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from flask import g, url_for

from pipeline.features.diagnostics.recording_check import HostRecording, describe_problem
from pipeline.features.maintenance.operations import Overview, read_overview
from pipeline.features.today.usecases import WorkspaceDay, list_day, list_written_since
from pipeline.kernel.records.people import Role
from pipeline.write.revise import text_mark
from web.dashboard.filters import find_day
from web.dashboard.view import Link, Section, View, describe_imported, show
from web.hosts import installed_files
from web.http.access import may_enter
from web.http.recording import check_hosts

section = Section("overview", link=Link("Overview", "overview_home", "Memory"))
# Changes of each workspace on the page; the timeline lists all memories.
MOST_LISTED = 50


@dataclass(frozen=True, slots=True)
class Hint:
    """A suggested next step, with a link or a command."""

    text: str
    label: str = ""
    path: str = ""
    command: str = ""


@section.page("/")
def home(view: View) -> str:
    """Show what happened today in all workspaces, and the state of this one."""
    services = view.container
    overview = read_overview(view.workspace, services.operations, services.settings, services.snapshots, view.now)
    return show(
        "overview.html",
        view,
        title="Overview",
        overview=overview,
        days=_list_days(view),
        may_undo=lambda workspace: g.caller.may(workspace, Role.OWNER),
        text_mark=text_mark,
        hints=_hints(view, overview),
        sessions=describe_imported(view),
    )


def _list_days(view: View) -> list[WorkspaceDay]:
    """Return the day of every workspace of the reader, that of this page first."""
    services = view.container
    since, until = find_day(view.now)
    written = list_written_since(services.databases, since)
    names = [name for name in written if may_enter(g.caller, name, services.people)]
    names.sort(key=lambda name: name != view.workspace_id)
    return list_day((services.workspace(name).of(g.caller) for name in names), since, until, MOST_LISTED)


def _list_unrecorded(view: View) -> Sequence[HostRecording]:
    services = view.container
    if view.workspace.person_id is not None:
        return ()
    return services.recording.list_problems(partial(check_hosts, services.settings.paths))


def _hints(view: View, overview: Overview) -> list[Hint]:
    health, waiting = overview.health, overview.decisions
    hints = []
    if view.workspace.access.is_incognito:
        text = "This workspace is incognito: Reverie stores nothing in it."
        hints.append(Hint(text, "Open settings", url_for("dashboard.settings_list_all")))
    hints += [Hint(f"{describe_problem(found).capitalize()}. {found.remedy}.") for found in _list_unrecorded(view)]
    if health.pending and not health.workers:
        hints.append(
            Hint("Memories wait in the queue, but no worker is running. Start the workers:", command="reverie up")
        )
    if health.dead:
        text = f"Processing failed permanently for {health.dead} queue entr{'ies' if health.dead > 1 else 'y'}."
        hints.append(Hint(text, "Show errors and retry", f"{url_for('dashboard.workers_state')}#dead"))
    if waiting:
        text = f"{waiting} decision{'s' * (waiting > 1)} wait{'s' * (waiting == 1)} in your inbox."
        hints.append(Hint(text, "Open the inbox", url_for("dashboard.inbox_review_entries")))
    if not installed_files.read_state(view.container.settings.paths.root) and not overview.has_agents:
        text = "No agent has used this workspace yet. Connect the agents on this machine:"
        hints.append(Hint(text, command="reverie setup"))
    if health.snapshot.is_ever_taken and health.snapshot.is_known and health.snapshot.at is None:
        text = "This workspace has no snapshot yet. The next nightly job takes one."
        hints.append(Hint(text, "Take a snapshot now", f"{url_for('dashboard.workers_state')}#job-snapshot"))
    return hints
