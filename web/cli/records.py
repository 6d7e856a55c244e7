"""One memory on the command line: read it, change it, bring it back, remove every trace of it."""

import re
import sys
from typing import Any

import click

from pipeline.records import Trust
from web.cli import options
from web.cli.command import Command, State, pass_state
from web.cli.lines import day, one_line, print_memory, print_text, scope_name, shown
from web.cli.render import facts, plain

ANCHOR = re.compile(r"(?P<path>.+?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?")


def _anchor(_context: click.Context, _parameter: click.Parameter, given: str | None) -> dict[str, Any] | None:
    if given is None:
        return None
    found = ANCHOR.fullmatch(given)
    if found is None:
        raise click.BadParameter("must be PATH, PATH:LINE or PATH:FIRST-LAST")
    if found["first"] is None:
        return {"path": found["path"]}
    return {"path": found["path"], "lines": [int(found["first"]), int(found["last"] or found["first"])]}


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.named)
@pass_state
def get(state: State, memory_id: str) -> None:
    """Show the memory ID with where it came from, what it mentions, its edges and its history."""
    with state.client() as client:
        found = client.memory(memory_id)
    if state.json:
        state.print_json(found)
        return
    print_memory(found)
    click.echo()
    facts([(name, value) for name, value in _described(found) if value is not None])
    _print_below(found)


def _described(memory: dict[str, Any]) -> list[tuple[str, object]]:
    provenance = memory["provenance"]
    admission = provenance["admission"]
    validity = None
    if memory["valid_from"] is not None:
        validity = f"from {day(memory['valid_from'])}" + (
            f" until {day(memory['valid_to'])}" if memory["valid_to"] else ""
        )
    states = [name for name in ("pinned", "candidate", "instructs") if memory[name]]
    details = ", ".join(f"{name} {one_line(shown(value))}" for name, value in memory["details"].items())
    return [
        ("scope", one_line(scope_name(memory["scope"]))),
        ("trust", f"{memory['trust']}, from {memory['source']}"),
        ("importance", f"{memory['importance']:.2f}, {memory['tier']}"),
        ("state", ", ".join(states) or None),
        ("tags", ", ".join(memory["tags"]) or None),
        ("details", details or None),
        ("metadata", one_line(shown(memory["metadata"])) if memory["metadata"] else None),
        ("branch", memory["branch"]),
        ("code", _place(memory["anchor"])),
        ("holds", validity),
        ("written", f"{day(provenance['written_at'])} UTC"),
        ("admitted", None if admission is None else _decision(admission)),
        ("archived", day(memory["archived_at"])),
        ("recalled", f"{memory['recall_count']} times" if memory["recall_count"] else None),
        ("merged", f"{memory['merge_count']} times" if memory["merge_count"] else None),
        ("mentions", ", ".join(dict.fromkeys(one_line(one["name"]) for one in memory["entities"])) or None),
    ]


def _decision(admission: dict[str, Any]) -> str:
    return f"{admission['outcome']}{': ' if admission['reasons'] else ''}{'; '.join(admission['reasons'])}"


def _place(anchor: dict[str, Any] | None) -> str | None:
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
        click.echo(f"  {day(entry['at'])}  {plain(entry['event'])}")
        if entry["content"] is not None:
            print_text(entry["content"])


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.named)
@click.option("--content", metavar="TEXT", help="The new text; `-` reads standard input.")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much it matters, 0 to 1.")
@click.option("--tag", "tags", multiple=True, help="The tags, in place of all that there are; several times.")
@click.option("--no-tags", is_flag=True, help="Take all tags away.")
@click.option("--metadata", callback=options.json_object, metavar="JSON", help="The metadata, in place of the old.")
@click.option("--details", callback=options.json_object, metavar="JSON", help="Typed fields of its kind to change.")
@click.option("--pin/--unpin", "pinned", default=None, help="Whether it always counts as important.")
@click.option("--branch", help="The branch that it is true on.")
@click.option("--anchor", callback=_anchor, metavar="PATH[:FIRST-LAST]", help="The code that it is about.")
@click.option("--trust", type=click.Choice([trust.value for trust in Trust]), help="Whether it may be told as a rule.")
@pass_state
def edit(state: State, /, memory_id: str, *, no_tags: bool, **given: Any) -> None:
    """Change the memory ID; without an option, its text in your editor. An old text stays in the history."""
    if no_tags and given["tags"]:
        raise click.UsageError("--tag and --no-tags contradict each other")
    changes = options.told(given) | ({"tags": []} if no_tags else {})
    if "content" in changes:
        changes["content"] = options.from_input(changes["content"])
    with state.client() as client:
        if not changes:
            text = _edited(client.memory(memory_id)["content"])
            if text is None:
                click.echo("nothing was changed", err=True)
                return
            changes = {"content": text}
        found = client.edit(memory_id, changes)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"changed {found['id']}: {', '.join(changes)}")


def _edited(text: str) -> str | None:
    """Return what the user made of a text, None when nothing."""
    if not sys.stdin.isatty():
        raise click.UsageError("say what to change, as --content TEXT; `reverie edit --help` lists all")
    edited = click.edit(text, extension=".md")
    return None if edited is None or edited.strip() == text.strip() else edited.rstrip("\n")


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.named)
@pass_state
def restore(state: State, memory_id: str) -> None:
    """Bring the archived memory ID back."""
    with state.client() as client:
        found = client.restore(memory_id)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"restored {found['id']}: {one_line(found['content'])}")


@click.command(cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.named)
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
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"purged {found['id']}")
    return 0
