"""Sessions of agents, and hook runs."""

from typing import Annotated

from pydantic import StringConstraints
from werkzeug.wrappers import Response

from pipeline.prompt import history as agent_history
from pipeline.sessions.search_usecases import search_sessions
from web.dashboard.view import PAGE_SIZE, Link, Paged, Search, Section, View, back, next_page, show

sessions_section = Section("sessions", link=Link("Sessions", "sessions_list_all", "Memory"))
hooks_section = Section("hooks", link=Link("Hook runs", "hooks_log", "Maintenance"))

SHOWN = 100

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True)]


@sessions_section.page("/sessions", Paged)
def list_all(view: View, *, q: Search = "") -> str:
    """List sessions, the most recently active first, or those that are most about some words."""
    if q:
        found = search_sessions(view.workspace, view.container.contexts, q, PAGE_SIZE, only_normal=False)
        return show("sessions.html", view, title="Sessions", asked=q, found=found)
    page = agent_history.list_sessions(view.workspace, PAGE_SIZE, int(view.query.before or 0))
    next_url = next_page(page.next_cursor)
    return show("sessions.html", view, title="Sessions", asked="", sessions=page.items, next_url=next_url)


@sessions_section.page("/sessions/<path:session_id>", Paged)
def one(view: View, session_id: str) -> str:
    """Show the messages, hook runs, actions, conclusions and memories of a session."""
    runs = view.container.agents.hook_runs
    record = agent_history.read_session(view.workspace, runs, session_id, SHOWN, view.query.before)
    earlier_url = next_page(record.next_cursor, anchor="said")
    return show("session.html", view, title=record.session.name or "Session", record=record, earlier_url=earlier_url)


@sessions_section.action("/sessions/rename/<path:session_id>")
def rename(view: View, session_id: str, *, name: Name) -> Response:
    """Rename a session."""
    agent_history.rename_session(view.workspace, session_id, name)
    return back(view, "Session renamed.")


@hooks_section.page("/hooks", Paged, empty_too=True)
def log(view: View) -> str:
    """List hook runs, newest first."""
    runs = view.container.agents.hook_runs
    page = runs.page(PAGE_SIZE, view.query.before, view.workspace.id, person_id=view.workspace.person_id)
    prompts = {each.id: runs.find_prompt(each) for each in page.items}
    next_url = next_page(page.next_cursor)
    return show("hook_runs.html", view, title="Hook runs", runs=page.items, prompts=prompts, next_url=next_url)


@hooks_section.page("/hooks/<run_id>", empty_too=True)
def run(view: View, run_id: str) -> str:
    """Show a hook run: the prompt, what the agent was shown, and what was left out."""
    runs = view.container.agents.hook_runs
    shown = runs.get(run_id, view.workspace.person_id)
    return show("hook_run.html", view, title="Hook run", run=shown, prompt=runs.find_prompt(shown))
