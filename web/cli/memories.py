"""Memories on the command line: write one, list them, read, change, move, archive, bring back and purge one."""

import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from pipeline.enums import Kind, Outcome, Sensitivity, Trust
from web.cli import options
from web.cli.command import Command, State, pass_state
from web.cli.render import (
    format_minute,
    format_value,
    one_line,
    plain,
    print_if_none,
    print_memory,
    print_pairs,
    print_text,
    scope_name,
    terminal_width,
)

if TYPE_CHECKING:
    from web.client import Client

# However narrow the terminal, so much of a text is shown.
SHORTEST_TEXT = 20
# Of each of what led to a memory and what it came to.
CHAIN_CHARS = 100


@click.command(cls=Command)
@click.argument("text")
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="What the memory is.  [default: fact]")
@click.option("--tag", "tags", multiple=True, help="A tag of a-z, 0-9 and -; may be given several times.")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much it matters, 0 to 1.")
@click.option("--session", "session_id", metavar="ID", help="The session it belongs to.")
@click.option("--source", type=options.SOURCE, help="Where it comes from.  [default: user]")
@click.option(
    "--scope", callback=options.parse_scope, metavar="KIND[:ID]", help="How far it reaches.  [default: workspace]"
)
@click.option(
    "--occurred-at", callback=options.parse_time, metavar="TIME", help="When it happened, as 2026-01-31T12:00:00Z."
)
@click.option("--metadata", callback=options.parse_json_object, metavar="JSON", help="A JSON object to keep with it.")
@click.option("--expires-at", callback=options.parse_time, metavar="TIME", help="When it ends, as 2026-01-31.")
@click.option(
    "--sensitivity",
    type=click.Choice([one.value for one in Sensitivity]),
    help="Private is told to who asks for it only.  [default: normal]",
)
@click.option(
    "--severity", type=click.Choice(["info", "warning", "critical"]), help="Of a lesson: what ignoring it costs."
)
@click.option("--to", metavar="TEAM", help="The team to store it for.  [default: local, this machine]")
@pass_state
def remember(state: State, /, text: str, severity: str | None, **given: Any) -> None:
    """Store TEXT as a memory; `-` reads it from standard input."""
    if severity is not None and given["kind"] != Kind.LESSON:
        raise click.UsageError("--severity is of a lesson: say --kind lesson")
    details = {} if severity is None else {"details": {"severity": severity}}
    body = {"content": options.read_text(text)} | options.select_given_options(given) | details
    receipt = state.store(lambda client: client.remember(body), given["to"])
    known = f" (known as {receipt['duplicate_of']})" if receipt.get("duplicate_of") else ""
    reason = f": {plain(receipt['reason'])}" if receipt.get("reason") else ""
    state.show(receipt, f"{receipt['outcome']} {receipt['id']}{known}{reason}")


@click.command("list", cls=Command)
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Only memories of this kind.")
@click.option("--session", "session_id", metavar="ID", help="Only memories of this session.")
@click.option("--scope", metavar="KIND[:ID]", help="Only memories of this scope.")
@click.option("--archived", is_flag=True, help="The archived ones instead.")
@options.limit(20)
@pass_state
def list_(state: State, /, *, limit: int, archived: bool, **wanted: str | None) -> None:
    """List memories, newest first, one a line; `get` shows a whole one."""
    query = options.select_given_options(wanted) | ({"archived": "true"} if archived else {})
    found = state.ask(lambda client: client.list_items("/v1/memories", limit, **query))
    state.show(found, lambda: _print_list(found["items"]))


def _print_list(found: list[dict[str, Any]]) -> None:
    from pipeline.records import SHORT_ID

    print_if_none(found)
    width = terminal_width()
    for one in found:
        head = f"{one['id'][-SHORT_ID:]}  {one['kind']:<10}  {format_minute(one['occurred_at'])}  "
        click.echo(head + one_line(one["content"], max(SHORTEST_TEXT, width - len(head))))


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.argument("target", metavar="WORKSPACE")
@pass_state
def move(state: State, memory_id: str, target: str) -> None:
    """Move the memory ID to WORKSPACE; in this one it goes to the archive."""
    with state.client() as client:
        receipt = client.move(memory_id, target)
    known = ", which says the same already" if receipt["outcome"] == Outcome.MERGED else ""
    state.show(receipt, f"moved to {target}: {receipt['id']}{known}")


@click.command(cls=Command)
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.check_name)
@click.option("--hard", is_flag=True, help="Remove every trace of the memory ID, for good, without asking.")
@click.option("--ambient", is_flag=True, help="Archive all that was noted without being asked.")
@click.option("--session", "session_id", metavar="ID", help="With --ambient, only of this session.")
@pass_state
def forget(state: State, memory_id: str | None, *, hard: bool, ambient: bool, session_id: str | None) -> None:
    """Archive the memory ID; `reverie restore ID` brings it back."""
    if (memory_id is None) != ambient:
        raise click.UsageError("name either one memory by its ID, or --ambient")
    if ambient and hard:
        raise click.UsageError("--hard needs the ID of one memory")
    if session_id is not None and not ambient:
        raise click.UsageError("--session goes with --ambient")
    with state.client() as client:
        ids = _list_ambient(client, session_id) if memory_id is None else [memory_id]
        for one in ids:
            client.call("DELETE", f"/v1/memories/{quote(one, safe='')}", query={"hard": "true"} if hard else None)
    if state.json:
        state.print_json({"forgotten": ids, "purged": hard})
    elif memory_id is None:
        click.echo(f"{len(ids)} ambient {'memory' if len(ids) == 1 else 'memories'} archived")
    else:
        click.echo(f"{'purged' if hard else 'archived'} {memory_id}")


def _list_ambient(client: "Client", session_id: str | None) -> list[str]:
    """List the ids of what is active and was noted without being asked."""
    from web.client import EVERYTHING

    found = client.items("/v1/memories", EVERYTHING, session_id=session_id)
    return [memory["id"] for memory in found if memory["source"] == "ambient"]


ANCHOR = re.compile(r"(?P<path>.+?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?")


def _parse_anchor(_context: click.Context, _parameter: click.Parameter, given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    found = ANCHOR.fullmatch(given)
    if found is None:
        raise click.BadParameter("must be PATH, PATH:LINE or PATH:FIRST-LAST")
    if found["first"] is None:
        return {"path": found["path"]}
    return {"path": found["path"], "lines": [int(found["first"]), int(found["last"] or found["first"])]}


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.option("--from", "team", metavar="TEAM", help="The team whose memory it is of.  [default: local]")
@pass_state
def get(state: State, memory_id: str, team: str | None) -> None:
    """Show the memory ID with where it came from, what it mentions, its edges and its history."""
    found = state.ask(lambda client: client.memory(memory_id, team))
    if state.json:
        state.print_json(found)
        return
    print_memory(found)
    click.echo()
    print_pairs([(name, value) for name, value in _describe(found) if value is not None])
    _print_below(found)


def _describe(memory: dict[str, Any]) -> list[tuple[str, object]]:
    provenance = memory["provenance"]
    admission = provenance["admission"]
    validity = None
    if memory["valid_from"] is not None:
        validity = f"from {format_minute(memory['valid_from'])}" + (
            f" until {format_minute(memory['valid_to'])}" if memory["valid_to"] else ""
        )
    states = [name for name in ("pinned", "candidate", "instructs") if memory[name]]
    details = ", ".join(f"{name} {one_line(format_value(value))}" for name, value in memory["details"].items())
    return [
        ("scope", one_line(scope_name(memory["scope"]))),
        ("trust", f"{memory['trust']}, from {memory['source']}"),
        ("importance", f"{memory['importance']:.2f}, {memory['tier']}"),
        ("state", ", ".join(states) or None),
        ("tags", ", ".join(memory["tags"]) or None),
        ("details", details or None),
        ("metadata", one_line(format_value(memory["metadata"])) if memory["metadata"] else None),
        ("branch", memory["branch"]),
        ("code", _format_anchor(memory["anchor"])),
        ("holds", validity),
        ("ends", format_minute(memory["expires_at"])),
        ("told", None if memory["sensitivity"] == "normal" else f"only to who asks ({memory['sensitivity']})"),
        ("written", f"{format_minute(provenance['written_at'])} UTC"),
        ("admitted", None if admission is None else _format_decision(admission)),
        ("archived", format_minute(memory["archived_at"])),
        ("author", memory.get("author")),
        ("shared", "with everybody in the workspace" if memory.get("shared") else None),
        ("recalled", f"{memory['recall_count']} times" if memory["recall_count"] else None),
        ("merged", f"{memory['merge_count']} times" if memory["merge_count"] else None),
        ("because", " → ".join(one_line(one["content"], CHAIN_CHARS) for one in memory["chain"]) or None),
        ("mentions", ", ".join(dict.fromkeys(one_line(one["name"]) for one in memory["entities"])) or None),
    ]


def _format_decision(admission: dict[str, Any]) -> str:
    return f"{admission['outcome']}{': ' if admission['reasons'] else ''}{'; '.join(admission['reasons'])}"


def _format_anchor(anchor: dict[str, Any] | None) -> str | None:
    if anchor is None:
        return None
    lines = f":{anchor['lines'][0]}-{anchor['lines'][1]}" if anchor["lines"] else ""
    return f"{one_line(anchor['path'])}{lines}{' (changed since)' if anchor['stale'] else ''}"


def _print_below(memory: dict[str, Any]) -> None:
    for edge in memory["edges"]:
        arrow = "→" if edge["direction"] == "out" else "←"
        click.echo(f"{arrow} {edge['kind']} {edge['id']} (by {plain(edge['made_by'])})")
    if memory["history"]:
        click.echo("\nhistory")
    for entry in memory["history"]:
        click.echo(f"  {format_minute(entry['at'])}  {plain(entry['event'])}")
        if entry["content"] is not None:
            print_text(entry["content"])


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.option("--content", metavar="TEXT", help="The new text; `-` reads standard input.")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much it matters, 0 to 1.")
@click.option("--tag", "tags", multiple=True, help="The tags, in place of all that there are; several times.")
@click.option("--no-tags", is_flag=True, help="Take all tags away.")
@click.option(
    "--metadata", callback=options.parse_json_object, metavar="JSON", help="The metadata, in place of the old."
)
@click.option(
    "--details", callback=options.parse_json_object, metavar="JSON", help="Typed fields of its kind to change."
)
@click.option("--pin/--unpin", "pinned", default=None, help="Whether it always counts as important.")
@click.option("--branch", help="The branch that it is true on.")
@click.option("--anchor", callback=_parse_anchor, metavar="PATH[:FIRST-LAST]", help="The code that it is about.")
@click.option("--trust", type=click.Choice([trust.value for trust in Trust]), help="Whether it may speak as a rule.")
@pass_state
def edit(state: State, /, memory_id: str, *, no_tags: bool, **given: Any) -> None:
    """Change the memory ID; without an option, its text in your editor. An old text stays in the history."""
    if no_tags and given["tags"]:
        raise click.UsageError("--tag and --no-tags contradict each other")
    changes = options.select_given_options(given) | ({"tags": []} if no_tags else {})
    if "content" in changes:
        changes["content"] = options.read_text(changes["content"])
    with state.client() as client:
        if not changes:
            text = _edit_text(client.memory(memory_id)["content"])
            if text is None:
                click.echo("nothing was changed", err=True)
                return
            changes = {"content": text}
        found = client.edit(memory_id, changes)
    state.show(found, f"changed {found['id']}: {', '.join(changes)}")


def _edit_text(text: str) -> str | None:
    """Return what the user made of a text, None when nothing."""
    if not sys.stdin.isatty():
        raise click.UsageError("say what to change, as --content TEXT; `reverie edit --help` lists all")
    edited = click.edit(text, extension=".md")
    return None if edited is None or edited.strip() == text.strip() else edited.rstrip("\n")


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def restore(state: State, memory_id: str) -> None:
    """Bring the archived memory ID back."""
    found = state.ask(lambda client: client.restore(memory_id))
    state.show(found, f"restored {found['id']}: {one_line(found['content'])}")


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_state
def purge(state: State, memory_id: str, *, yes: bool) -> int:
    """Remove every trace of the memory ID, from indexes and snapshots too; nothing brings it back."""
    if state.json and not yes:
        raise click.UsageError("--json cannot ask; add --yes")
    with state.client() as client:
        if not yes:
            print_memory(client.memory(memory_id))
            if not click.confirm("Purge this for good?", err=True):
                click.echo("nothing was purged", err=True)
                return 1
        found = client.purge(memory_id)
    state.show(found, f"purged {found['id']}")
    return 0
