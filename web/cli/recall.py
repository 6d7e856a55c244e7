"""Recall on the command line: results with what of them is about the question, and why they stand where they do."""

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from pipeline.enums import Kind
from web.cli import options
from web.cli.command import STILL_LOADING, Command, State, pass_state
from web.cli.render import one_line, plain, table, terminal_width
from web.cli.snippet import fit_snippet

if TYPE_CHECKING:
    from web.client import Client

CHANNELS = ("lexical", "dense")
INDENT = "     "
# What is said to be from here, where teams are asked too.
OWN = "local"
# How long a command waits for the encoder, or for a server that has just started and has not read its words yet.
PATIENCE_S = 1.0
START_PATIENCE_S = 10.0
LOADING = ("late", "cold")
POLL_S = 0.1


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
@click.option("--full", is_flag=True, help="Show whole texts instead of what of them is about QUERY.")
@click.option("--explain", is_flag=True, help="Show why each result stands where it stands.")
@click.option("--why-not", "wanted", metavar="ID", help="Show instead why this memory is or is not among the results.")
@pass_state
def recall(state: State, /, query: str, *, full: bool, explain: bool, wanted: str | None, **given: Any) -> int:
    """Find memories for QUERY, best first; an empty QUERY lists by importance and recency."""
    question = {"query": query} | options.select_given_options(given)
    if wanted is not None:
        _why_not(state, question | {"id": wanted})
        return 0
    if explain:
        question["explain"] = True
    with state.client() as client:
        answer = ask_whole(client, question)
        is_loading = answer["degraded"] and not answer["results"]
        is_elsewhere = (
            not (answer["results"] or is_loading or state.json) and state.workspace != state.settings.workspace
        )
        usual = _count_memories(client, state.settings.workspace) if is_elsewhere else 0
    if state.json:
        state.print_json(answer)
        return STILL_LOADING if is_loading else 0
    hits = _print_results(answer["results"], None if full else query)
    if explain and hits:
        click.echo()
        _print_signals(hits)
    _print_state(answer)
    if usual:
        # Nobody is to take another workspace's memories for lost.
        name = state.settings.workspace
        click.echo(f"this is {state.workspace}; {name} holds {usual}: `-w {name}` asks there", err=True)
    return STILL_LOADING if is_loading else 0


def ask_whole(client: "Client", question: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer; ask again for a while if it is empty because a channel was late or cold."""
    pause, began = threading.Event(), time.monotonic()
    answer = client.recall(question)
    while answer["degraded"] and not answer["results"]:
        is_starting = answer["channels"]["lexical"]["state"] in LOADING
        end = began + (START_PATIENCE_S if is_starting else PATIENCE_S)
        if time.monotonic() >= end:
            break
        pause.wait(POLL_S)
        left_ms = max(1, int(1000 * (end - time.monotonic())))
        answer = client.recall({**question, "budget_ms": max(left_ms, question.get("budget_ms", 0))})
    return answer


def _print_state(answer: Mapping[str, Any]) -> None:
    states = ", ".join(f"{name} {channel['state']}" for name, channel in answer["channels"].items())
    count = len(answer["results"])
    if answer["degraded"] and not count:
        click.echo(f"memory is still loading ({states}); ask again in a moment", err=True)
        return
    more = "; not everything was looked through, there may be more" if answer["degraded"] else ""
    click.echo(f"{count} result{'' if count == 1 else 's'} in {answer['took_ms']:.1f} ms ({states}){more}", err=True)


def _count_memories(client: "Client", workspace: str) -> int:
    return sum(one["memories"] or 0 for one in client.workspaces()["items"] if one["id"] == workspace)


@click.command(cls=Command)
@click.argument("query")
@click.argument("memory_id", metavar="[ID]", required=False)
@click.option("-k", "k", type=click.IntRange(1, 100), help="How many results.  [default: 10]")
@click.pass_context
def explain(context: click.Context, query: str, memory_id: str | None, k: int | None) -> None:
    """Show why each result of QUERY stands where it does; with ID, why that memory is or is not among them."""
    context.invoke(recall, query=query, explain=memory_id is None, wanted=memory_id, k=k)


def _print_results(results: list[dict[str, Any]], query: str | None) -> list[dict[str, Any]]:
    """Print results and return the memories among them in the order shown; of texts, what is about a query if any."""
    width = terminal_width() - len(INDENT)
    hits: list[dict[str, Any]] = []
    for result in results:
        if "best" in result:
            click.echo(f"session {plain(result['session_id'])}  {result['score']:.3f}")
        for hit in result.get("best", [result]):
            hits.append(hit)
            team = f"  team {plain(hit['from'])}" if hit.get("from", OWN) != OWN else ""
            session = f"  session {plain(hit['session_id'])}" if hit["session_id"] and "best" not in result else ""
            head = f"{len(hits):>3}  {hit['score']:.3f}  {hit['kind']}  {hit['occurred_at'][:16]}"
            click.echo(f"{head}{session}{team}  {hit['id']}")
            text = plain(hit["content"])
            # Of the outline of a file its path is told, whatever part of it is about the question.
            lead = text.partition(" · ")[0] if hit["kind"] == Kind.CODE else ""
            for line in text.splitlines() if query is None else fit_snippet(text, query, width, lead=lead):
                click.echo(f"{INDENT}{line}")
            if "superseded_by" in hit:
                click.echo(f"{INDENT}superseded by {hit['superseded_by']}")
    return hits


def _why_not(state: State, question: dict[str, Any]) -> None:
    answer = state.ask(lambda client: client.why(question))
    if state.json:
        state.print_json(answer)
        return
    for reason in answer["reasons"]:
        click.echo(plain(reason))
    for one in answer.get("chain", ()):
        click.echo(f"  → {one_line(one['content'])}")
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
            click.echo(f"{INDENT}{lift['part']} {lift['contribution']:+.3f} from {lift['id']}")


def _signal(signal: dict[str, Any] | None) -> str | None:
    if signal is None:
        return None
    rank = "-" if signal["rank"] is None else signal["rank"]
    return f"{rank} / {signal['score']:.3f} / {signal['contribution']:+.3f}"
