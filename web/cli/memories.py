"""Memories on the command line: write one, ask for some, read, change, archive, bring back and purge one."""

import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from pipeline.enums import Kind, Source, Trust
from web.cli import options
from web.cli.command import Command, State, pass_state
from web.cli.render import (
    format_minute,
    format_value,
    one_line,
    plain,
    print_memory,
    print_pairs,
    print_text,
    scope_name,
    table,
)

if TYPE_CHECKING:
    from web.client import Client

CHANNELS = ("lexical", "dense")


@click.command(cls=Command)
@click.argument("text")
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="What the memory is.  [default: fact]")
@click.option("--tag", "tags", multiple=True, help="A tag of a-z, 0-9 and -; may be given several times.")
@click.option("--importance", type=click.FloatRange(0, 1), help="How much it matters, 0 to 1.")
@click.option("--session", "session_id", metavar="ID", help="The session it belongs to.")
@click.option(
    "--source", type=click.Choice([source.value for source in Source]), help="Where it comes from.  [default: user]"
)
@click.option(
    "--scope", callback=options.parse_scope, metavar="KIND[:ID]", help="How far it reaches.  [default: workspace]"
)
@click.option(
    "--occurred-at", callback=options.parse_time, metavar="TIME", help="When it happened, as 2026-01-31T12:00:00Z."
)
@click.option("--metadata", callback=options.parse_json_object, metavar="JSON", help="A JSON object to keep with it.")
@click.option(
    "--severity", type=click.Choice(["info", "warning", "critical"]), help="Of a lesson: what ignoring it costs."
)
@pass_state
def remember(state: State, /, text: str, severity: str | None, **given: Any) -> None:
    """Store TEXT as a memory; `-` reads it from standard input."""
    if severity is not None and given["kind"] != Kind.LESSON:
        raise click.UsageError("--severity is of a lesson: say --kind lesson")
    details = {} if severity is None else {"details": {"severity": severity}}
    body = {"content": options.read_text(text)} | options.select_given_options(given) | details
    receipt = state.ask(lambda client: client.remember(body), to_write=True)
    known = f" (known as {receipt['duplicate_of']})" if receipt.get("duplicate_of") else ""
    reason = f": {plain(receipt['reason'])}" if receipt.get("reason") else ""
    state.show(receipt, f"{receipt['outcome']} {receipt['id']}{known}{reason}")


@click.command(cls=Command)
@click.argument("query")
@click.option("-k", "k", type=click.IntRange(1, 100), help="How many results.  [default: 10]")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in Kind]),
    multiple=True,
    help="Only memories of this kind.",
)
@click.option("--session", "session_id", metavar="ID", help="Only memories of this session.")
@click.option("--since", callback=options.parse_time, metavar="TIME", help="Only what happened then or later.")
@click.option("--until", callback=options.parse_time, metavar="TIME", help="Only what happened before this time.")
@click.option(
    "--as-of", callback=options.parse_time, metavar="TIME", help="What was believed on this day, as 2026-03-01."
)
@click.option("--group", type=click.Choice(["memory", "session"]), help="What a result is.  [default: memory]")
@click.option("--budget-ms", type=click.IntRange(1, 10_000), help="The deadline in milliseconds.")
@click.option(
    "--min-relevance",
    type=click.FloatRange(0, 1),
    help="How probably a result must be about QUERY, 0 for all.  [default: leave out what surely is not]",
)
@click.option("--explain", is_flag=True, help="Show why each result stands where it stands.")
@click.option("--why-not", "wanted", metavar="ID", help="Show instead why this memory is or is not among the results.")
@pass_state
def recall(state: State, /, query: str, *, explain: bool, wanted: str | None, **given: Any) -> None:
    """Find memories for QUERY, best first; an empty QUERY lists by importance and recency."""
    question = {"query": query} | options.select_given_options(given)
    if wanted is not None:
        _why_not(state, question | {"id": wanted})
        return
    if explain:
        question["explain"] = True
    answer = state.ask(lambda client: client.recall(question))
    if state.json:
        state.print_json(answer)
        return
    hits = _print_results(answer["results"])
    if explain and hits:
        click.echo()
        _print_signals(hits)
    states = ", ".join(f"{name} {channel['state']}" for name, channel in answer["channels"].items())
    count = len(answer["results"])
    click.echo(f"{count} result{'' if count == 1 else 's'} in {answer['took_ms']:.1f} ms ({states})", err=True)


@click.command(cls=Command)
@click.argument("query")
@click.argument("memory_id", metavar="[ID]", required=False)
@click.option("-k", "k", type=click.IntRange(1, 100), help="How many results.  [default: 10]")
@click.pass_context
def explain(context: click.Context, query: str, memory_id: str | None, k: int | None) -> None:
    """Show why each result of QUERY stands where it does; with ID, why that memory is or is not among them."""
    context.invoke(recall, query=query, explain=memory_id is None, wanted=memory_id, k=k)


def _print_results(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print results and return the memories among them in the order shown."""
    hits: list[dict[str, Any]] = []
    for result in results:
        if "best" in result:
            click.echo(f"session {plain(result['session_id'])}  {result['score']:.3f}")
        for hit in result.get("best", [result]):
            hits.append(hit)
            session = f"  session {plain(hit['session_id'])}" if hit["session_id"] and "best" not in result else ""
            click.echo(
                f"{len(hits):>3}  {hit['score']:.3f}  {hit['kind']}  {hit['occurred_at'][:16]}{session}  {hit['id']}"
            )
            for line in plain(hit["content"]).splitlines():
                click.echo(f"     {line}")
            if "superseded_by" in hit:
                click.echo(f"     superseded by {hit['superseded_by']}")
    return hits


def _why_not(state: State, question: dict[str, Any]) -> None:
    answer = state.ask(lambda client: client.why(question))
    if state.json:
        state.print_json(answer)
        return
    for reason in answer["reasons"]:
        click.echo(plain(reason))
    if answer["signals"] is not None:
        _print_signals([answer])


def _print_signals(hits: list[dict[str, Any]]) -> None:
    columns = ["#", *CHANNELS, "relevance", "score"]
    rows = []
    for number, hit in enumerate(hits, 1):
        signals = hit["signals"]
        seen = [_signal(signals["channels"].get(channel)) for channel in CHANNELS]
        rows.append([number, *seen, f"{signals['relevance']:.2f}", f"{hit['score']:.3f}"])
    table(columns, rows, right=[column for column in columns if column not in CHANNELS])
    click.echo("A channel shows rank / raw score / contribution.")
    for number, hit in enumerate(hits, 1):
        parts = ", ".join(f"{name} {value:+.3f}" for name, value in hit["signals"]["parts"].items())
        click.echo(f"{number:>3}  {parts}")
        for lift in hit["signals"]["lifted_by"]:
            click.echo(f"     {lift['part']} {lift['contribution']:+.3f} from {lift['id']}")


def _signal(signal: dict[str, Any] | None) -> str | None:
    if signal is None:
        return None
    rank = "-" if signal["rank"] is None else signal["rank"]
    return f"{rank} / {signal['score']:.3f} / {signal['contribution']:+.3f}"


EVERYTHING = 1_000_000


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
@pass_state
def get(state: State, memory_id: str) -> None:
    """Show the memory ID with where it came from, what it mentions, its edges and its history."""
    found = state.ask(lambda client: client.memory(memory_id))
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
        ("written", f"{format_minute(provenance['written_at'])} UTC"),
        ("admitted", None if admission is None else _format_decision(admission)),
        ("archived", format_minute(memory["archived_at"])),
        ("recalled", f"{memory['recall_count']} times" if memory["recall_count"] else None),
        ("merged", f"{memory['merge_count']} times" if memory["merge_count"] else None),
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
