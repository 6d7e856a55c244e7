"""Memories on the command line: write one, ask for some."""

from typing import Any

import click

from pipeline.records import Kind, Source
from web.cli import options
from web.cli.command import Command, State, pass_state
from web.cli.render import plain, table

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
@click.option("--scope", callback=options.scope, metavar="KIND[:ID]", help="How far it reaches.  [default: workspace]")
@click.option(
    "--occurred-at", callback=options.moment, metavar="TIME", help="When it happened, as 2026-01-31T12:00:00Z."
)
@click.option("--metadata", callback=options.json_object, metavar="JSON", help="A JSON object to keep with it.")
@pass_state
def remember(state: State, /, text: str, **given: Any) -> None:
    """Store TEXT as a memory; `-` reads it from standard input."""
    body = {"content": options.from_input(text)} | options.told(given)
    with state.client(to_write=True) as client:
        receipt = client.remember(body)
    if state.json:
        state.print_json(receipt)
        return
    known = f" (known as {receipt['duplicate_of']})" if receipt.get("duplicate_of") else ""
    reason = f": {plain(receipt['reason'])}" if receipt.get("reason") else ""
    click.echo(f"{receipt['outcome']} {receipt['id']}{known}{reason}")


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
@click.option("--since", callback=options.moment, metavar="TIME", help="Only what happened then or later.")
@click.option("--until", callback=options.moment, metavar="TIME", help="Only what happened before this time.")
@click.option("--as-of", callback=options.moment, metavar="TIME", help="What was believed on this day, as 2026-03-01.")
@click.option("--group", type=click.Choice(["memory", "session"]), help="What a result is.  [default: memory]")
@click.option("--budget-ms", type=click.IntRange(1, 10_000), help="The deadline in milliseconds.")
@click.option("--explain", is_flag=True, help="Show why each result stands where it stands.")
@click.option("--why-not", "wanted", metavar="ID", help="Show instead why this memory is or is not among the results.")
@pass_state
def recall(state: State, /, query: str, *, explain: bool, wanted: str | None, **given: Any) -> None:
    """Find memories for QUERY, best first; an empty QUERY lists by importance and recency."""
    question = {"query": query} | options.told(given)
    if wanted is not None:
        _why_not(state, question | {"id": wanted})
        return
    if explain:
        question["explain"] = True
    with state.client() as client:
        answer = client.recall(question)
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
    return hits


def _why_not(state: State, question: dict[str, Any]) -> None:
    with state.client() as client:
        answer = client.why(question)
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
