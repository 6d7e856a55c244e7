"""What do you know about me: everything that is kept, in numbers and places, and what was done without asking."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from web.cli import options
from web.cli.command import Group, State, pass_state
from web.cli.lines import day, one_line, scope_name, shown
from web.cli.render import facts, plain, size, table

if TYPE_CHECKING:
    from web.client import Client

# Who reaches what is counted over so many memories, the newest.
COUNTED = 10_000
FACTS = 200
ACTS = 50
# The subject under which facts about the person stand, and the scopes in which they may.
PERSON = "user"
PERSONAL_SCOPES = ("workspace", "user")


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def audit(context: click.Context) -> None:
    """Tell what Reverie knows about you: counts, facts, files, and what was merged or archived without asking."""
    if context.invoked_subcommand is None:
        _overview(context.ensure_object(State))


@audit.command("list")
@options.limit(ACTS)
@pass_state
def list_acts(state: State, limit: int) -> None:
    """List what was merged or archived without asking, newest first."""
    with state.client() as client:
        found = client.listing("/v1/audit", limit)
    if state.json:
        state.print_json(found)
    else:
        _print_acts(found["items"])


@audit.command("undo")
@click.argument("entry_id", metavar="ID", callback=options.named)
@pass_state
def undo(state: State, entry_id: str) -> None:
    """Take the act ID back: what was merged or archived is there again."""
    with state.client() as client:
        found = client.undo(entry_id)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"{found['id']} is back: {one_line(found['content'])}")


def _overview(state: State) -> None:
    with state.client() as client:
        found = _asked(client) | {"places": _places(state)}
    if state.json:
        state.print_json(found)
        return
    _print_counts(found)
    if found["personal"]:
        click.echo("\nabout you")
        rows = [
            [one_line(one["attribute"]), one_line(shown(one["value"])), day(one["valid_from"]), one["source"]]
            for one in found["personal"]
        ]
        table(["  attribute", "value", "since", "source"], [[f"  {row[0]}", *row[1:]] for row in rows])
    click.echo("\nwhere it is")
    facts([(f"  {name}", place) for name, place in found["places"].items()])
    click.echo("\nmerged or archived without asking")
    if found["acts"]:
        _print_acts(found["acts"])
        click.echo("`reverie audit undo ID` takes one back, `reverie audit list -n 1000` lists more")
    else:
        click.echo("  nothing")


def _asked(client: "Client") -> dict[str, Any]:
    stats = client.stats()
    counted = 0
    scopes: Counter[str] = Counter()
    trust: Counter[str] = Counter()
    for memory in client.items("/v1/memories", COUNTED):
        counted += 1
        scopes[scope_name(memory["scope"])] += 1
        trust[memory["trust"]] += 1
    personal = [
        fact
        for scope in PERSONAL_SCOPES
        for fact in client.items("/v1/facts", FACTS, subject=PERSON, scope=scope)
        if fact["valid_to"] is None
    ]
    return {
        "workspace": stats["workspace"],
        "memories": stats["memories"],
        "counted": counted,
        "scopes": dict(scopes),
        "trust": dict(trust),
        "entities": stats["graph"]["entities"],
        "bytes": stats["bytes"],
        "personal": personal,
        "incognito": len(client.incognito()["items"]),
        "waiting": {
            "candidates": len(client.listing("/v1/candidates", ACTS)["items"]),
            "duplicates": len(client.listing("/v1/duplicates", ACTS)["items"]),
        },
        "acts": [act for act in client.items("/v1/audit", ACTS) if act["undone_at"] is None],
    }


def _places(state: State) -> dict[str, str]:
    home, workspace = state.settings.paths, state.settings.paths.workspace(state.workspace)
    return {
        "memories": str(workspace.events),
        "vectors": str(workspace.vectors),
        "lexical": str(workspace.lexical),
        "snapshots": str(workspace.snapshots),
        "logs": str(home.logs),
        "errors": str(home.operations),
    }


def _print_counts(found: dict[str, Any]) -> None:
    memories, waiting = found["memories"], found["waiting"]
    newest = f" (of the newest {COUNTED})" if found["counted"] == COUNTED else ""
    review = ", ".join(f"{_at_least(count)} {name}" for name, count in waiting.items() if count)
    facts(
        [
            ("workspace", found["workspace"]),
            ("memories", f"{memories['active']} active, {memories['archived']} archived"),
            ("sessions", f"{memories['sessions']}, {found['incognito']} off the record"),
            ("kinds", _counts(memories["by_kind"].items())),
            ("sources", _counts(memories["by_source"].items())),
            ("reach", f"{_counts(found['scopes'].items()) or 'none'}{newest}; what one session owns is not shown"),
            ("trust", _counts(found["trust"].items())),
            ("entities", found["entities"]),
            ("to review", review or "nothing"),
            ("sizes", ", ".join(f"{name} {size(count)}" for name, count in found["bytes"].items())),
        ]
    )


def _at_least(count: int) -> str:
    return f"{count} or more" if count == ACTS else str(count)


def _counts(counts: Iterable[tuple[str, int]]) -> str | None:
    return ", ".join(f"{one_line(name)} {count}" for name, count in counts) or None


def _print_acts(acts: list[dict[str, Any]]) -> None:
    rows = [
        [act["id"], day(act["at"]), plain(act["actor"]), _act(act), day(act["undone_at"]) or ("no")] for act in acts
    ]
    table(["act", "at", "by", "what", "undone"], rows)


def _act(act: dict[str, Any]) -> str:
    into = f" into {act['other_id']}" if act["other_id"] else ""
    return f"{act['action']} {act['memory_id']}{into}"
