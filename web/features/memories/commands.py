"""Commands for single memories: store, list, show, change, archive, restore and purge."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pipeline.kernel.enums import Kind, Sensitivity, Trust
from pipeline.kernel.errors import ServerUnreachable
from pipeline.kernel.records import SHORT_ID
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import (
    Fields,
    count_of,
    fill,
    format_minute,
    format_value,
    name_source,
    one_line,
    plain,
    print_fields,
    print_memory,
    print_text,
    terminal_width,
)
from web.cli.state import State
from web.features.changes import commands as live
from web.hooks.spool.writes import MEMORIES, add_client_ids, spool_write
from web.http.client import EVERYTHING
from web.http.receipt_text import describe_kept

# The least width of a text, however narrow the terminal is.
SHORTEST_TEXT = 20
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
    body = add_client_ids("POST", MEMORIES, body)
    try:
        receipt = state.store(lambda client: client.remember(body), fields["to"])
    except ServerUnreachable:
        workspace = state.choice(Path(), to_write=True).workspace
        spooled = spool_write(state.settings, "POST", MEMORIES, body, workspace)
        if spooled is None:
            raise
        state.show({"outcome": "spooled", "id": body["id"]}, f"spooled {body['id']}: {spooled}")
        return
    duplicate = f" (same as {receipt['duplicate_of']})" if receipt.get("duplicate_of") else ""
    reason = f": {plain(receipt['reason'])}" if receipt.get("reason") else ""
    renamed = _describe_renamed(receipt.get("renamed_tags") or {})
    state.show(receipt, f"{receipt['outcome']} {receipt['id']}{duplicate}{reason}{describe_kept(receipt)}{renamed}")


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
        with state.client() as client:
            feed = live.MemoryFeed(client, **query)
            for memory in feed.read(FOLLOWED_LINES if limit is None else limit):
                live.print_new(state, memory, print_memory)
            live.follow(state, feed, print_memory)
        return
    empty = "No memories match." if query else NO_MEMORIES
    state.show_list("/v1/memories", 20 if limit is None else limit, _print_line, empty, **query)


def _print_line(memory: dict[str, Any]) -> None:
    head = f"{memory['id'][-SHORT_ID:]}  {memory['kind']:<10}  {format_minute(memory['occurred_at'])}  "
    click.echo(head + one_line(memory["content"], max(SHORTEST_TEXT, terminal_width() - len(head))))


@click.command(cls=Command)
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.check_name)
@click.option("--hard", is_flag=True, help="Delete the memory permanently, as `reverie purge` does.")
@click.option("--ambient", is_flag=True, help="Archive all memories that capture stored automatically.")
@click.option("--session", "session_id", metavar="ID", help="With --ambient, only archive those of this session.")
@options.yes
@pass_state
def forget(
    state: State, memory_id: str | None, *, hard: bool, ambient: bool, session_id: str | None, yes: bool
) -> None:
    """Archive the memory ID. `reverie restore ID` restores it."""
    if (memory_id is None) != ambient:
        raise click.UsageError("Name one memory by its ID, or use --ambient.")
    if ambient and hard:
        raise click.UsageError("--hard needs the ID of a single memory.")
    if session_id is not None and not ambient:
        raise click.UsageError("--session requires --ambient.")
    if hard and memory_id is not None:
        _purge(state, memory_id, yes=yes)
        state.show({"forgotten": [memory_id], "purged": True}, f"purged {memory_id}")
        return
    with state.client() as client:
        memories = client.items("/v1/memories", EVERYTHING, session_id=session_id)
        ids = [memory_id] if memory_id else [memory["id"] for memory in memories if memory["source"] == "ambient"]
        for ambient_id in ids:
            client.call("DELETE", ("memories", ambient_id))
    text = f"archived {memory_id or count_of(len(ids), 'ambient memory', 'ambient memories')}"
    state.show({"forgotten": ids, "purged": False}, text)


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
    state.show(state.ask(lambda client: client.memory(memory_id, team)), _print_memory)


def _print_memory(memory: dict[str, Any]) -> None:
    print_memory(memory)
    click.echo()
    print_fields(memory, MEMORY)
    for edge in memory["edges"]:
        click.echo(fill(f"{'→' if edge['direction'] == 'out' else '←'} {{kind}} {{id}} (by {{made_by}})", edge))
    if memory["history"]:
        click.echo("\nhistory")
    for entry in memory["history"]:
        click.echo(fill("  {at}  {event}", entry))
        print_text(entry["content"] or "")


def _describe_validity(memory: dict[str, Any]) -> str | None:
    until = " until {valid_to}" if memory["valid_to"] else ""
    return memory["valid_from"] and fill(f"from {{valid_from}}{until}", memory)


def _describe_anchor(memory: dict[str, Any]) -> str | None:
    anchor = memory["anchor"]
    if anchor is None:
        return None
    lines = f":{anchor['lines'][0]}-{anchor['lines'][1]}" if anchor["lines"] else ""
    return f"{one_line(anchor['path'])}{lines}{' (changed since)' if anchor['stale'] else ''}"


MEMORY: Fields = {
    "scope": "scope",
    "trust": lambda memory: f"{memory['trust']}, from {name_source(memory)}",
    "importance": lambda memory: fill("{importance}, {tier}", memory),
    "state": lambda memory: ", ".join(name for name in ("pinned", "candidate", "instructs") if memory[name]),
    "tags": "tags",
    "details": "details",
    "metadata": lambda memory: one_line(format_value(memory["metadata"] or "")),
    "branch": "branch",
    "code": _describe_anchor,
    "valid": _describe_validity,
    "expires": "expires_at",
    "visible": lambda memory: (
        fill("only when you search for it ({sensitivity})", memory) if memory["sensitivity"] != "normal" else None
    ),
    "written": "provenance.written_at",
    "admitted": "provenance.admission.outcome",
    "reasons": lambda memory: "; ".join((memory["provenance"]["admission"] or {"reasons": ()})["reasons"]),
    "archived": "archived_at",
    "author": lambda memory: memory.get("author"),
    "shared": lambda memory: "with everyone in the workspace" if memory.get("shared") else None,
    "recalled": lambda memory: memory["recall_count"] or None,
    "merged": lambda memory: memory["merge_count"] or None,
    "because": lambda memory: " → ".join(one_line(cause["content"]) for cause in memory["chain"]),
    "mentions": lambda memory: ", ".join(dict.fromkeys(one_line(entity["name"]) for entity in memory["entities"])),
}


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
        memory = client.request("PATCH", ("memories", memory_id), changes)
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
    state.act("POST", ("memories", memory_id, "restore"), says="restored {id}: {content}")


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@options.yes
@pass_state
def purge(state: State, memory_id: str, *, yes: bool) -> None:
    """Delete the memory ID permanently, also from indexes and snapshots. This cannot be undone."""
    receipt = _purge(state, memory_id, yes=yes)
    state.show(receipt, f"purged {receipt['id']}")


def _purge(state: State, memory_id: str, *, yes: bool) -> dict[str, Any]:
    """Purge a memory after a confirmation and return the receipt."""
    with state.client() as client:
        if not (yes or state.json):
            print_memory(client.memory(memory_id))
        options.confirm(state, "Delete this memory permanently?", yes=yes, refusal="nothing was purged")
        return client.purge(memory_id)
