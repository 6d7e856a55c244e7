"""Commands for single memories: store, list, show, change, archive, restore and purge."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from pipeline.enums import Kind, Sensitivity, Trust
from pipeline.errors import ServerUnreachable
from pipeline.records import SHORT_ID
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import (
    count_of,
    format_minute,
    format_value,
    name_source,
    one_line,
    plain,
    print_if_none,
    print_memory,
    print_pairs,
    print_text,
    scope_name,
    terminal_width,
)
from web.cli.state import State
from web.receipt_text import describe_kept

if TYPE_CHECKING:
    from web.client import Client

# The least width of a text, however narrow the terminal is.
SHORTEST_TEXT = 20
# The length of each memory in the chain of reasons.
CHAIN_CHARS = 100
FOLLOWED_LINES = 10
NO_MEMORIES = 'There are no memories here yet. Store one with `reverie remember "…"`.'


@click.command(cls=Command)
@options.words("text", "TEXT...")
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Kind of the memory.  [default: fact]")
@click.option("--tag", "tags", multiple=True, help="Add a tag of a-z, 0-9 and -. Can be repeated.")
@click.option("--importance", type=click.FloatRange(0, 1), help="Importance from 0 to 1.")
@click.option("--session", "session_id", metavar="ID", help="Session that the memory belongs to.")
@click.option("--source", type=options.SOURCE, help="Source of the memory.  [default: user]")
@click.option(
    "--scope", callback=options.parse_scope, metavar="KIND[:ID]", help="Who sees the memory.  [default: workspace]"
)
@click.option(
    "--occurred-at", type=options.PAST, metavar="TIME", help="When it happened, such as yesterday or 2026-01-31."
)
@click.option("--metadata", callback=options.parse_json_object, metavar="JSON", help="JSON object to store with it.")
@click.option(
    "--expires-at",
    type=options.EXPIRY,
    metavar="TIME",
    help="When it expires, such as 30d or 2026-12-31 (at the end of the day).",
)
@click.option(
    "--sensitivity",
    type=click.Choice([sensitivity.value for sensitivity in Sensitivity]),
    help="Private memories are never injected into a prompt; they appear only when you search for them.  "
    "[default: normal]",
)
@click.option(
    "--severity",
    type=click.Choice(["info", "warning", "critical"]),
    help="How serious it is to ignore this lesson. Requires --kind lesson.",
)
@click.option("--to", metavar="TEAM", help="Store the memory for this team.  [default: local, this machine]")
@pass_state
def remember(state: State, /, text: str, severity: str | None, **fields: Any) -> None:
    """Store TEXT as a memory; `-` reads it from standard input. Quotes are optional."""
    if severity is not None and fields["kind"] != Kind.LESSON:
        raise click.UsageError("--severity applies to lessons only. Add --kind lesson.")
    details = {} if severity is None else {"details": {"severity": severity}}
    body = {"content": options.read_text(text)} | options.select_given_options(fields) | details
    receipt = _send(state, body, fields["to"])
    if receipt is None:
        return
    duplicate = f" (same as {receipt['duplicate_of']})" if receipt.get("duplicate_of") else ""
    reason = f": {plain(receipt['reason'])}" if receipt.get("reason") else ""
    renamed = _describe_renamed(receipt.get("renamed_tags") or {})
    state.show(receipt, f"{receipt['outcome']} {receipt['id']}{duplicate}{reason}{describe_kept(receipt)}{renamed}")


def _send(state: State, body: dict[str, Any], team: str | None) -> dict[str, Any] | None:
    """Store a memory and return its receipt; None if it waits in the spool because no server answers."""
    from web.spool.writes import MEMORIES, add_client_ids, spool_write

    body = add_client_ids("POST", MEMORIES, body)
    try:
        return state.store(lambda client: client.remember(body), team)
    except ServerUnreachable:
        workspace = state.choice(Path(), to_write=True).workspace
        spooled = spool_write(state.settings, "POST", MEMORIES, body, workspace)
        if spooled is None:
            raise
    state.show({"outcome": "spooled", "id": body["id"]}, f"spooled {body['id']}: {spooled}")
    return None


def _describe_renamed(renamed: Mapping[str, str]) -> str:
    tags = ", ".join(f"{plain(tag)} as {stored or 'nothing'}" for tag, stored in renamed.items())
    return f"; tags stored: {tags}" if tags else ""


@click.command("list", cls=Command)
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Only list memories of this kind.")
@click.option("--tag", help="Only list memories with this tag.")
@click.option("--session", "session_id", metavar="ID", help="Only list memories of this session.")
@click.option("--scope", metavar="KIND[:ID]", help="Only list memories of this scope.")
@click.option("--archived", is_flag=True, help="List archived memories instead.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0, 100_000),
    help="Maximum number of results.  [default: 20; with --follow 10]",
)
@click.option("--follow", is_flag=True, help="Print each new memory as it is written, until Ctrl-C.")
@pass_state
def list_(
    state: State,
    /,
    *,
    limit: int | None,
    archived: bool,
    follow: bool,
    **filters: str | None,
) -> None:
    """List memories, newest first, one per line. `reverie get ID` shows a complete memory."""
    query = options.select_given_options(filters) | ({"archived": "true"} if archived else {})
    if follow:
        _follow(state, FOLLOWED_LINES if limit is None else limit, query)
        return
    page = state.list_items("/v1/memories", 20 if limit is None else limit, **query)
    empty = "No memories match." if query else NO_MEMORIES
    state.show(page, lambda: _print_list(page["items"], empty))


def _follow(state: State, lines: int, query: dict[str, Any]) -> None:
    from web.cli.follow import Feed, follow, print_memories

    with state.client() as client:
        feed = Feed(client, **query)
        print_memories(state, feed.poll(lines))
        follow(state, feed)


def _print_list(memories: list[dict[str, Any]], empty: str) -> None:
    print_if_none(memories, empty)
    width = terminal_width()
    for memory in memories:
        head = f"{memory['id'][-SHORT_ID:]}  {memory['kind']:<10}  {format_minute(memory['occurred_at'])}  "
        click.echo(head + one_line(memory["content"], max(SHORTEST_TEXT, width - len(head))))


@click.command(cls=Command)
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.check_name)
@click.option("--hard", is_flag=True, help="Delete the memory permanently, as `reverie purge` does.")
@click.option("--ambient", is_flag=True, help="Archive all memories that capture stored automatically.")
@click.option("--session", "session_id", metavar="ID", help="With --ambient, only archive those of this session.")
@options.yes
@pass_state
def forget(state: State, memory_id: str | None, *, hard: bool, ambient: bool, session_id: str | None, yes: bool) -> int:
    """Archive the memory ID. `reverie restore ID` restores it."""
    if (memory_id is None) != ambient:
        raise click.UsageError("Name one memory by its ID, or use --ambient.")
    if ambient and hard:
        raise click.UsageError("--hard needs the ID of a single memory.")
    if session_id is not None and not ambient:
        raise click.UsageError("--session requires --ambient.")
    with state.client() as client:
        if hard and memory_id is not None:
            return (
                0 if _purge(state, client, memory_id, yes=yes, answer={"forgotten": [memory_id], "purged": True}) else 1
            )
        ids = _list_ambient(client, session_id) if memory_id is None else [memory_id]
        for ambient_id in ids:
            client.call("DELETE", f"/v1/memories/{quote(ambient_id, safe='')}")
    text = f"archived {memory_id or count_of(len(ids), 'ambient memory', 'ambient memories')}"
    state.show({"forgotten": ids, "purged": False}, text)
    return 0


def _list_ambient(client: "Client", session_id: str | None) -> list[str]:
    """List the IDs of active memories that capture stored automatically."""
    from web.client import EVERYTHING

    memories = client.items("/v1/memories", EVERYTHING, session_id=session_id)
    return [memory["id"] for memory in memories if memory["source"] == "ambient"]


ANCHOR = re.compile(r"(?P<path>.+?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?")


def _parse_anchor(_context: click.Context, _parameter: click.Parameter, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    match = ANCHOR.fullmatch(text)
    if match is None:
        raise click.BadParameter("Use PATH, PATH:LINE or PATH:FIRST-LAST.")
    if match["first"] is None:
        return {"path": match["path"]}
    return {"path": match["path"], "lines": [int(match["first"]), int(match["last"] or match["first"])]}


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@click.option("--from", "team", metavar="TEAM", help="Team that stores the memory.  [default: local, this machine]")
@pass_state
def get(state: State, memory_id: str, team: str | None) -> None:
    """Show the memory ID with its origin, entities, links and history."""
    memory = state.ask(lambda client: client.memory(memory_id, team))
    if state.json:
        state.print_json(memory)
        return
    print_memory(memory)
    click.echo()
    print_pairs([(name, value) for name, value in _describe(memory) if value is not None])
    _print_links(memory)


def _describe(memory: dict[str, Any]) -> list[tuple[str, object]]:
    provenance = memory["provenance"]
    admission = provenance["admission"]
    states = [name for name in ("pinned", "candidate", "instructs") if memory[name]]
    details = ", ".join(f"{name} {one_line(format_value(value))}" for name, value in memory["details"].items())
    is_private = memory["sensitivity"] != "normal"
    return [
        ("scope", one_line(scope_name(memory["scope"]))),
        ("trust", f"{memory['trust']}, from {name_source(memory)}"),
        ("importance", f"{memory['importance']:.2f}, {memory['tier']}"),
        ("state", ", ".join(states) or None),
        ("tags", ", ".join(memory["tags"]) or None),
        ("details", details or None),
        ("metadata", one_line(format_value(memory["metadata"])) if memory["metadata"] else None),
        ("branch", memory["branch"]),
        ("code", _format_anchor(memory["anchor"])),
        ("valid", _format_validity(memory)),
        ("expires", format_minute(memory["expires_at"])),
        ("visible", f"only when you search for it ({memory['sensitivity']})" if is_private else None),
        ("written", format_minute(provenance["written_at"])),
        ("admitted", None if admission is None else _format_decision(admission)),
        ("archived", format_minute(memory["archived_at"])),
        ("author", memory.get("author")),
        ("shared", "with everyone in the workspace" if memory.get("shared") else None),
        ("recalled", f"{memory['recall_count']} times" if memory["recall_count"] else None),
        ("merged", f"{memory['merge_count']} times" if memory["merge_count"] else None),
        ("because", " → ".join(one_line(cause["content"], CHAIN_CHARS) for cause in memory["chain"]) or None),
        ("mentions", ", ".join(dict.fromkeys(one_line(entity["name"]) for entity in memory["entities"])) or None),
    ]


def _format_validity(memory: dict[str, Any]) -> str | None:
    if memory["valid_from"] is None:
        return None
    until = f" until {format_minute(memory['valid_to'])}" if memory["valid_to"] else ""
    return f"from {format_minute(memory['valid_from'])}{until}"


def _format_decision(admission: dict[str, Any]) -> str:
    return f"{admission['outcome']}{': ' if admission['reasons'] else ''}{'; '.join(admission['reasons'])}"


def _format_anchor(anchor: dict[str, Any] | None) -> str | None:
    if anchor is None:
        return None
    lines = f":{anchor['lines'][0]}-{anchor['lines'][1]}" if anchor["lines"] else ""
    return f"{one_line(anchor['path'])}{lines}{' (changed since)' if anchor['stale'] else ''}"


def _print_links(memory: dict[str, Any]) -> None:
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
@click.option("--content", metavar="TEXT", help="New text; `-` reads it from standard input.")
@click.option("--importance", type=click.FloatRange(0, 1), help="New importance from 0 to 1.")
@click.option("--tag", "tags", multiple=True, help="Replace all tags by this one. Can be repeated.")
@click.option("--no-tags", is_flag=True, help="Remove all tags.")
@click.option(
    "--metadata", callback=options.parse_json_object, metavar="JSON", help="JSON object that replaces the metadata."
)
@click.option(
    "--details", callback=options.parse_json_object, metavar="JSON", help="Fields to change that belong to its kind."
)
@click.option("--pin/--unpin", "pinned", default=None, help="Keep the memory important, or stop doing so.")
@click.option("--branch", help="Git branch on which the memory is true.")
@click.option("--anchor", callback=_parse_anchor, metavar="PATH[:FIRST-LAST]", help="Code that the memory describes.")
@click.option(
    "--trust",
    type=click.Choice([trust.value for trust in Trust]),
    help="Whether agents may follow the memory as a rule.",
)
@pass_state
def edit(state: State, /, memory_id: str, *, no_tags: bool, **fields: Any) -> None:
    """Change the memory ID. Without options, edit its text in your editor; its history keeps the old text."""
    from pipeline.text.normalize import normalize_tag

    if no_tags and fields["tags"]:
        raise click.UsageError("--tag and --no-tags exclude each other.")
    changes = options.select_given_options(fields) | ({"tags": []} if no_tags else {})
    if "content" in changes:
        changes["content"] = options.read_text(changes["content"])
    with state.client() as client:
        if not changes:
            text = _edit_text(client.memory(memory_id)["content"])
            if text is None:
                click.echo("nothing was changed", err=True)
                return
            changes = {"content": text}
        memory = client.edit(memory_id, changes)
    renamed = {tag: stored for tag in fields["tags"] if (stored := normalize_tag(tag)) != tag}
    state.show(memory, f"changed {memory['id']}: {', '.join(changes)}{_describe_renamed(renamed)}")


def _edit_text(text: str) -> str | None:
    """Return the text after the user edited it, None if it is unchanged."""
    if not sys.stdin.isatty():
        raise click.UsageError("Name a change, such as --content TEXT. `reverie edit --help` lists all options.")
    edited = click.edit(text, extension=".md")
    return None if edited is None or edited.strip() == text.strip() else edited.rstrip("\n")


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def restore(state: State, memory_id: str) -> None:
    """Restore the archived memory ID."""
    memory = state.ask(lambda client: client.request("POST", ("memories", memory_id, "restore")))
    state.show(memory, f"restored {memory['id']}: {one_line(memory['content'])}")


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@options.yes
@pass_state
def purge(state: State, memory_id: str, *, yes: bool) -> int:
    """Delete the memory ID permanently, also from indexes and snapshots. This cannot be undone."""
    with state.client() as client:
        return 0 if _purge(state, client, memory_id, yes=yes) else 1


def _purge(state: State, client: "Client", memory_id: str, *, yes: bool, answer: dict[str, Any] | None = None) -> bool:
    """Purge a memory after a confirmation and print the receipt, or an answer; return whether it was purged."""
    if not (yes or state.json):
        print_memory(client.memory(memory_id))
    if not options.confirm(state, "Delete this memory permanently?", yes=yes, refusal="nothing was purged"):
        return False
    receipt = client.purge(memory_id)
    state.show(receipt if answer is None else answer, f"purged {memory_id if answer else receipt['id']}")
    return True
