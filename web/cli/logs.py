"""Commands for logs: background errors, actions of agents, runs of hooks, and the audit."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from pipeline.times import local_second
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import (
    SCORE,
    Column,
    format_minute,
    format_size,
    format_value,
    minute_of,
    one_line,
    plain,
    print_pairs,
    print_table,
    scope_name,
    text_of,
)
from web.cli.state import State

if TYPE_CHECKING:
    from web.client import Client


# Scopes and trust are counted over this many memories, the newest.
COUNTED = 10_000
FACTS = 200
ACTS = 50
# The subject of facts about the user, and the scopes in which they may be stored.
PERSON = "user"
PERSONAL_SCOPES = ("workspace", "user")


def _format_act(act: dict[str, Any]) -> str:
    into = f" into {act['other_id']}" if act["other_id"] else ""
    return f"{act['action']} {act['memory_id']}{into}"


ACT_COLUMNS: dict[str, Column] = {
    "change": "id",
    "at": minute_of("at"),
    "by": "actor",
    "what": _format_act,
    "undone": lambda act: format_minute(act["undone_at"]) or "no",
}


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def audit(context: click.Context) -> None:
    """Show what Reverie stores about you and your work, and undo automatic changes. Without a command, summarize."""
    if context.invoked_subcommand is None:
        _show_summary(context.ensure_object(State))


@audit.command("list")
@options.limit(ACTS)
@pass_state
def list_acts(state: State, limit: int) -> None:
    """List automatic merges and archivings, newest first."""
    page = state.list_items("/v1/audit", limit)
    empty = "There are no automatic changes yet. Jobs merge and archive memories; `reverie jobs` lists them."
    state.show_table(page, ACT_COLUMNS, empty=empty)


@audit.command("undo")
@click.argument("entry_id", metavar="ID", callback=options.check_name)
@pass_state
def undo(state: State, entry_id: str) -> None:
    """Undo the automatic change ID: restore the memory that was merged or archived."""
    memory = state.ask(lambda client: client.request("POST", ("audit", entry_id, "undo")))
    state.show(memory, f"restored {memory['id']}: {one_line(memory['content'])}")


@audit.command("access")
@click.option("--person", metavar="ID", help="Only list requests of this person.")
@click.option("--since", type=options.PAST, metavar="TIME", help="Only list requests from this time on, such as 7d.")
@options.limit(ACTS)
@pass_state
def list_accesses(state: State, person: str | None, since: str | None, limit: int) -> None:
    """List what people read and wrote, newest first; with --workspace, in that workspace only."""
    filters = options.select_given_options({"person": person, "since": since, "workspace": state.named_workspace})
    page = state.list_items("/v1/access-log", limit, **filters)
    columns: dict[str, Column] = {
        "at": minute_of("at"),
        "person": "person",
        "workspace": lambda entry: entry["workspace"] or "",
        "what": "action",
        "status": "status",
        "memories": lambda entry: entry["memories"] or "",
        "request": "request_id",
    }
    empty = "No request by a person is recorded. Add people with `reverie user add NAME`."
    state.show_table(page, columns, empty=empty)


def _show_summary(state: State) -> None:
    nothing: dict[str, Any] = {}
    summary = state.ask_about_content(lambda client: _collect(client) | {"places": _list_files(state)}, nothing)
    if not summary:
        state.show({"workspace": state.workspace, "memories": None}, state.empty_text)
        return
    state.show(summary, lambda: _print_summary(summary))


def _print_summary(summary: dict[str, Any]) -> None:
    _print_counts(summary)
    if summary["personal"]:
        click.echo("\nabout you")
        columns: dict[str, Column] = {
            "  attribute": lambda fact: f"  {one_line(fact['attribute'])}",
            "value": lambda fact: one_line(format_value(fact["value"])),
            "since": minute_of("valid_from"),
            "source": "source",
        }
        print_table(summary["personal"], columns)
    click.echo("\nfiles")
    print_pairs([(f"  {name}", file) for name, file in summary["places"].items()])
    click.echo("\nmerged or archived automatically")
    if summary["acts"]:
        print_table(summary["acts"], ACT_COLUMNS)
        click.echo("`reverie logs audit undo ID` undoes one; `reverie logs audit list -n 1000` lists more")
    else:
        click.echo("  none")


def _collect(client: "Client") -> dict[str, Any]:
    stats = client.stats()
    counted = 0
    scopes: Counter[str] = Counter()
    trust: Counter[str] = Counter()
    for memory in client.items("/v1/memories", COUNTED):
        counted += 1
        scopes[scope_name(memory["scope"])] += 1
        trust[memory["trust"]] += 1
    # A fact in the personal store is listed for both scopes.
    personal = {
        fact["id"]: fact
        for scope in PERSONAL_SCOPES
        for fact in client.items("/v1/facts", FACTS, subject=PERSON, scope=scope)
        if fact["valid_to"] is None
    }
    return {
        "workspace": stats["workspace"],
        "memories": stats["memories"],
        "counted": counted,
        "scopes": dict(scopes),
        "trust": dict(trust),
        "entities": stats["graph"]["entities"],
        "bytes": stats["bytes"],
        "personal": list(personal.values()),
        "incognito": len(client.request("GET", "/v1/incognito")["items"]),
        "waiting": {
            "candidates": len(client.list_items("/v1/candidates", ACTS)["items"]),
            "duplicates": len(client.list_items("/v1/duplicates", ACTS)["items"]),
        },
        "acts": [act for act in client.items("/v1/audit", ACTS) if act["undone_at"] is None],
    }


def _list_files(state: State) -> dict[str, str]:
    paths, workspace = state.settings.paths, state.settings.paths.workspace(state.workspace)
    return {
        "memories": state.settings.store_place or str(workspace.events),
        "vectors": str(workspace.vectors),
        "lexical": str(workspace.lexical),
        "snapshots": str(workspace.snapshots),
        "logs": str(paths.logs),
        "errors": str(paths.home),
    }


def _print_counts(summary: dict[str, Any]) -> None:
    memories, waiting = summary["memories"], summary["waiting"]
    newest = f" (of the newest {COUNTED})" if summary["counted"] == COUNTED else ""
    review = ", ".join(f"{_at_least(count)} {name}" for name, count in waiting.items() if count)
    scopes = _format_counts(summary["scopes"].items()) or "none"
    print_pairs(
        [
            ("workspace", summary["workspace"]),
            ("memories", f"{memories['active']} active, {memories['archived']} archived"),
            ("sessions", f"{memories['sessions']}, {summary['incognito']} incognito"),
            ("kinds", _format_counts(memories["by_kind"].items())),
            ("sources", _format_counts(memories["by_source"].items())),
            ("scopes", f"{scopes}{newest}; memories of a single session are not counted"),
            ("trust", _format_counts(summary["trust"].items())),
            ("entities", summary["entities"]),
            ("to review", review or "nothing"),
            ("sizes", ", ".join(f"{name} {format_size(count)}" for name, count in summary["bytes"].items())),
        ]
    )


def _at_least(count: int) -> str:
    return f"{count} or more" if count == ACTS else str(count)


def _format_counts(counts: Iterable[tuple[str, int]]) -> str | None:
    return ", ".join(f"{one_line(name)} {count}" for name, count in counts) or None


NO_RUNS = "No hook has run in the last two weeks. Connect your agents with `reverie setup`."


@click.group(cls=Group)
def logs() -> None:
    """Show background errors, what agents did, what Reverie showed to them, and the audit."""


@logs.command()
@options.limit(20)
@pass_state
def errors(state: State, limit: int) -> None:
    """List background errors, newest first."""
    page = state.list_items("/v1/errors", limit)
    state.show_items(page, _print_error, "No background errors.")


def _print_error(error: dict[str, Any]) -> None:
    workspace = f" ({plain(error['workspace'])})" if error["workspace"] else ""
    repaired = f"  (repaired at {format_minute(error['repaired_at'])})" if error["repaired_at"] else ""
    click.echo(
        f"{local_second(error['at'])}  {plain(error['component'])}{workspace}: {plain(error['message'])}{repaired}"
    )


@logs.command()
@options.limit(20)
@click.option("--session", metavar="ID", help="Only list actions of this session.")
@pass_state
def journal(state: State, limit: int, session: str | None) -> None:
    """List what agents did, newest first: edits, tests, commits, deployments, commands."""
    page = state.list_items("/v1/journal", limit, session_id=session)
    state.show_items(
        page,
        lambda action: click.echo(
            f"{local_second(action['at'])}  {action['type']:<7} {plain(action['target'])}"
            f"{'' if action['ok'] else '  (failed)'}"
        ),
        "No actions are recorded yet. Connect your agents with `reverie setup`.",
    )


@logs.group(bare_command="log", default_command="log")
def hooks() -> None:
    """Show what hooks and tools showed to agents in the last two weeks. Without a command, list it."""


@hooks.command("log")
@click.argument("run", metavar="[RUN]", required=False)
@options.limit(30)
@click.option("--session", metavar="ID", help="Only list runs in this session.")
@pass_state
def log(state: State, run: str | None, limit: int, session: str | None) -> None:
    """List runs of hooks and tools, newest first; with RUN, print what was shown and what was left out, and why.

    All workspaces are listed, with -w only one.
    """
    if run is not None:
        record = state.ask(lambda client: client.call("GET", f"/v1/hook-runs/{quote(run, safe='')}"))
        state.show(record, lambda: _print_run(record))
        return
    page = state.list_items("/v1/hook-runs", limit, session_id=session, workspace=state.named_workspace)
    state.show_items(page, _print_hook_run, NO_RUNS)


def _print_run(run: dict[str, Any]) -> None:
    if run["prompt"] is not None:
        click.echo(f"prompt:\n{plain(run['prompt'])}\n\nshown:")
    click.echo(plain(run["text"]) or f"Nothing was shown: {plain(run['reason'])}")
    if run["left_out"]:
        click.echo("\nleft out:")
        columns = {**SCORE, "source": "source", "text": text_of("text"), "reason": "reason"}
        print_table(run["left_out"], columns, right=["score"])


def _print_hook_run(run: dict[str, Any]) -> None:
    outcome = f"{run['chars']} characters, {len(run['memory_ids'])} memories" if run["chars"] else run["reason"]
    click.echo(
        f"{run['id']:>6}  {local_second(run['at'])}  {run['host']:<12} {run['event']:<18} "
        f"{run['took_ms']:7.1f} ms  {run['outcome']:<6} {plain(outcome or '')}"
    )


logs.add_command(audit)
