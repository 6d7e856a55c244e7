"""Commands for logs: background errors, actions of agents, runs of hooks, and the audit."""

from collections import Counter
from typing import Any

import click

from pipeline.kernel.times import local_second
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import (
    Fields,
    fill,
    format_field,
    format_minute,
    format_sizes,
    plain,
    print_fields,
    print_items,
    print_pairs,
    print_table,
    scope_name,
)
from web.cli.state import State
from web.http.client import Client

# Scopes and trust are counted over this many memories, the newest.
COUNTED = 10_000
FACTS = 200
ACTS = 50
# The subject of facts about the user, and the scopes in which they may be stored.
PERSON = "user"
PERSONAL_SCOPES = ("workspace", "user")


ACT: Fields = {
    "change": "id",
    "at": "at",
    "by": "actor",
    "what": lambda act: fill(f"{{action}} {{memory_id}}{' into {other_id}' if act['other_id'] else ''}", act),
    "undone": lambda act: format_minute(act["undone_at"]) or "no",
}
ACCESS: Fields = {
    "at": "at",
    "person": "person",
    "workspace": "workspace",
    "what": "action",
    "status": "status",
    "memories": "memories",
    "request": "request_id",
}
FACT: Fields = {"attribute": "attribute", "value": "value", "since": "valid_from", "source": "source"}


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def audit(context: click.Context) -> None:
    """Show what Reverie stores about you and your work, and undo automatic changes. Without a command, summarize."""
    if context.invoked_subcommand is None:
        state = context.ensure_object(State)
        nothing: dict[str, Any] = {"workspace": state.workspace, "memories": None}
        summary = state.ask_about_content(lambda client: _collect(client) | {"places": _list_files(state)}, nothing)
        state.show(summary, state.empty_text if summary is nothing else _print_summary)


@audit.command("list")
@options.limit(ACTS)
@pass_state
def list_acts(state: State, limit: int) -> None:
    """List automatic merges and archivings, newest first."""
    state.show_list(
        "/v1/audit",
        limit,
        ACT,
        "There are no automatic changes yet. Jobs merge and archive memories; `reverie jobs` lists them.",
    )


@audit.command("undo")
@click.argument("entry_id", metavar="ID", callback=options.check_name)
@pass_state
def undo(state: State, entry_id: str) -> None:
    """Undo the automatic change ID: restore the memory that was merged or archived."""
    state.act("POST", ("audit", entry_id, "undo"), says="restored {id}: {content}")


@audit.command("access")
@click.option("--person", metavar="ID", help="Only list requests of this person.")
@click.option("--since", type=options.PAST, metavar="TIME", help="Only list requests from this time on, such as 7d.")
@options.limit(ACTS)
@pass_state
def list_accesses(state: State, person: str | None, since: str | None, limit: int) -> None:
    """List what people read and wrote, newest first; with --workspace, in that workspace only."""
    filters = {"person": person, "since": since, "workspace": state.named_workspace}
    state.show_list(
        "/v1/access-log",
        limit,
        ACCESS,
        "No request by a person is recorded. Add people with `reverie user add NAME`.",
        **filters,
    )


def _print_summary(summary: dict[str, Any]) -> None:
    print_fields(summary, SUMMARY)
    if summary["personal"]:
        click.echo("\nabout you")
        print_table(summary["personal"], FACT)
    click.echo("\nfiles")
    print_pairs(list(summary["places"].items()))
    click.echo("\nmerged or archived automatically")
    print_items(summary["acts"], ACT, "none")
    if summary["acts"]:
        click.echo("`reverie logs audit undo ID` undoes one; `reverie logs audit list -n 1000` lists more")


def _collect(client: Client) -> dict[str, Any]:
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


def _describe_scopes(summary: dict[str, Any]) -> str:
    newest = f" (of the newest {COUNTED})" if summary["counted"] == COUNTED else ""
    return (
        f"{format_field('scopes', summary['scopes']) or 'none'}{newest}; memories of a single session are not counted"
    )


def _list_waiting(summary: dict[str, Any]) -> str:
    counts = {name: f"{count} or more" if count == ACTS else count for name, count in summary["waiting"].items()}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing"


SUMMARY: Fields = {
    "workspace": "workspace",
    "memories": lambda summary: fill("{active} active, {archived} archived", summary["memories"]),
    "sessions": lambda summary: f"{summary['memories']['sessions']}, {summary['incognito']} incognito",
    "kinds": "memories.by_kind",
    "sources": "memories.by_source",
    "scopes": _describe_scopes,
    "trust": "trust",
    "entities": "entities",
    "to review": _list_waiting,
    "sizes": lambda summary: format_sizes(summary["bytes"]),
}
NO_RUNS = "No hook has run in the last two weeks. Connect your agents with `reverie setup`."
ERROR: Fields = {
    "at": lambda error: local_second(error["at"]),
    "component": "component",
    "workspace": "workspace",
    "message": "message",
    "repaired": "repaired_at",
}
ACTION: Fields = {
    "at": lambda action: local_second(action["at"]),
    "type": "type",
    "target": "target",
    "": lambda action: "" if action["ok"] else "(failed)",
}
HOOK_RUN: Fields = {
    "run": "id",
    "at": lambda run: local_second(run["at"]),
    "host": "host",
    "event": "event",
    "took": lambda run: f"{run['took_ms']:.1f} ms",
    "outcome": "outcome",
    "characters": "chars",
    "memories": lambda run: len(run["memory_ids"]),
    "reason": "reason",
}


@click.group(cls=Group)
def logs() -> None:
    """Show background errors, what agents did, what Reverie showed to them, and the audit."""


@logs.command()
@options.limit(20)
@pass_state
def errors(state: State, limit: int) -> None:
    """List background errors, newest first."""
    state.show_list("/v1/errors", limit, ERROR, "No background errors.")


@logs.command()
@options.limit(20)
@click.option("--session", metavar="ID", help="Only list actions of this session.")
@pass_state
def journal(state: State, limit: int, session: str | None) -> None:
    """List what agents did, newest first: edits, tests, commits, deployments, commands."""
    state.show_list(
        "/v1/journal",
        limit,
        ACTION,
        "No actions are recorded yet. Connect your agents with `reverie setup`.",
        session_id=session,
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
        state.show(state.ask(lambda client: client.request("GET", ("hook-runs", run))), _print_run)
        return
    filters = {"session_id": session, "workspace": state.named_workspace}
    state.show_list("/v1/hook-runs", limit, HOOK_RUN, NO_RUNS, **filters)


def _print_run(run: dict[str, Any]) -> None:
    if run["prompt"] is not None:
        click.echo(f"prompt:\n{plain(run['prompt'])}\n\nshown:")
    click.echo(plain(run["text"]) or f"Nothing was shown: {plain(run['reason'])}")
    if run["left_out"]:
        click.echo("\nleft out:")
        print_table(run["left_out"], {"score": "score", "source": "source", "text": "text", "reason": "reason"})


logs.add_command(audit)
