"""Search memories: print each result with the excerpt that matches the query, and explain the ranking."""

import re
import textwrap
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from pipeline.kernel.enums import Kind
from pipeline.kernel.times import local_minute
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.output import STILL_LOADING
from web.cli.render import INDENT, Fields, count_of, one_line, plain, print_table, terminal_width
from web.cli.state import State
from web.features.sessions.commands import print_found_session
from web.http.client import Client

CHANNELS = ("lexical", "dense")
# The origin of a result from this machine, where results of teams are included.
OWN = "local"
# How long the command waits for the encoder, and for a server that has just started and has no lexical index yet.
PATIENCE_S = 1.0
START_PATIENCE_S = 10.0
LOADING = ("late", "cold")
POLL_S = 0.1
# The answer of a workspace to which nothing was ever written.
NO_RESULTS: dict[str, Any] = {"results": [], "took_ms": 0.0, "channels": {}, "degraded": False}
RESULTS_HELP = "Maximum number of results.  [default: 10]"


@click.command(cls=Command)
@options.words("query", "[QUERY]...", required=False)
@click.option("-k", "k", type=click.IntRange(1, 100), help=RESULTS_HELP)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in Kind]),
    multiple=True,
    help="Only search memories of this kind. Can be repeated.",
)
@click.option("--tag", "tags", multiple=True, help="Only search memories with this tag. Can be repeated.")
@click.option("--session", "session_id", metavar="ID", help="Only search memories of this session.")
@click.option(
    "--since",
    type=options.PAST,
    metavar="TIME",
    help="Only search memories from this time on, such as yesterday, 7d or 2026-03-01.",
)
@click.option("--until", type=options.PAST, metavar="TIME", help="Only search memories from before this time.")
@click.option(
    "--as-of", type=options.PAST, metavar="TIME", help="Search the memories that were valid at this time (2026-03-01)."
)
@click.option(
    "--group",
    type=click.Choice(["memory", "session"]),
    help="Group the results by memory or session.  [default: memory]",
)
@click.option("--budget-ms", type=click.IntRange(1, 10_000), help="Time limit of the search in milliseconds.")
@click.option(
    "--min-relevance",
    type=click.FloatRange(0, 1),
    help="Minimum probability that a result answers the query; 0 shows all.  [default: leave out unrelated ones]",
)
@click.option("--full", is_flag=True, help="Show complete texts instead of matching excerpts.")
@click.option("--explain", is_flag=True, help="Show how the score of each result is computed.")
@click.option("--why", "memory_id", metavar="ID", help="Explain why this memory is or is not among the results.")
@pass_state
def recall(
    state: State,
    /,
    query: str,
    *,
    full: bool,
    explain: bool,
    memory_id: str | None,
    **filters: Any,
) -> int:
    """Search memories for QUERY, best match first. Without a query, list them by importance and recency."""
    state.require_named_workspace()
    question = {"query": query} | options.select_given_options(filters)
    if memory_id is not None:
        why = question | {"id": memory_id}
        state.show(state.ask(lambda client: client.request("POST", "/v1/recall/why", why)), _print_explanation)
        return 0
    if explain:
        question["explain"] = True
    has_encoder = any(state.settings.paths.models.glob("*/manifest.json"))
    answer = state.ask_about_content(lambda client: ask_until_loaded(client, question, has_encoder=has_encoder), None)
    if answer is None:
        state.show(NO_RESULTS, lambda _: click.echo(state.empty_text, err=True))
        return 0
    state.show(answer, lambda _: _print_answer(state, answer, None if full else query, with_signals=explain))
    return STILL_LOADING if answer["degraded"] and not answer["results"] else 0


def _print_answer(state: State, answer: dict[str, Any], query: str | None, *, with_signals: bool) -> None:
    hits = _print_results(answer["results"], query)
    sessions = answer.get("sessions", ())
    if sessions:
        click.echo("Said in past sessions:")
    for session in sessions:
        print_found_session(session, with_relevance=with_signals)
    if with_signals and hits:
        click.echo()
        _print_signals(hits)
    states = ", ".join(f"{name} {channel['state']}" for name, channel in answer["channels"].items())
    if answer["degraded"] and not hits:
        click.echo(f"memory is still loading ({states}); try again in a moment", err=True)
        return
    more = "; the search was incomplete, there may be more results" if answer["degraded"] else ""
    count = count_of(len(answer["results"]), "result")
    click.echo(f"{count} in {answer['took_ms']:.1f} ms ({states}){more}", err=True)
    if not hits and state.workspace != state.settings.workspace:
        _print_other_workspace(state)


def ask_until_loaded(client: Client, question: Mapping[str, Any], *, has_encoder: bool) -> dict[str, Any]:
    """Return the answer to a search. Repeat the search for a limited time while a channel is not ready."""
    pause, began = threading.Event(), time.monotonic()
    answer = client.recall(question)
    while answer["degraded"]:
        end = began + _find_patience_s(answer, question, has_encoder=has_encoder)
        if time.monotonic() >= end:
            break
        pause.wait(POLL_S)
        left_ms = max(1, int(1000 * (end - time.monotonic())))
        answer = client.recall({**question, "budget_ms": max(left_ms, question.get("budget_ms", 0))})
    return answer


def _find_patience_s(answer: Mapping[str, Any], question: Mapping[str, Any], *, has_encoder: bool) -> float:
    """Return for how many seconds a missing channel is worth the wait."""
    lexical, dense = (answer["channels"].get(name, {}).get("state") for name in CHANNELS)
    # Without a compiled encoder, the dense channel stays cold for minutes.
    is_dense_soon = dense == "late" or (dense == "cold" and has_encoder)
    if lexical in LOADING or (is_dense_soon and "budget_ms" not in question):
        return START_PATIENCE_S
    return 0.0 if answer["results"] else PATIENCE_S


def _print_other_workspace(state: State) -> None:
    """Point to the default workspace if it has memories: the user may expect them here."""
    name = state.settings.workspace
    listed = state.ask(lambda client: client.workspaces())["items"]
    count = sum(item["memories"] or 0 for item in listed if item["id"] == name)
    if count:
        memories = count_of(count, "memory", "memories")
        click.echo(
            f"Searched workspace {state.workspace}. Workspace {name} has {memories}; add `-w {name}` to search there.",
            err=True,
        )


def _print_results(results: list[dict[str, Any]], query: str | None) -> list[dict[str, Any]]:
    """Print results, with a query only the excerpts that match it; return the memories in the printed order."""
    width = terminal_width() - len(INDENT)
    hits: list[dict[str, Any]] = []
    for result in results:
        if "best" in result:
            click.echo(f"session {plain(result['session_id'])}  {result['score']:.3f}")
        for hit in result.get("best", [result]):
            hits.append(hit)
            _print_hit(hit, len(hits), query, width, in_session="best" in result)
    return hits


def _print_hit(hit: Mapping[str, Any], number: int, query: str | None, width: int, *, in_session: bool) -> None:
    team = f"  team {plain(hit['from'])}" if hit.get("from", OWN) != OWN else ""
    session = f"  session {plain(hit['session_id'])}" if hit["session_id"] and not in_session else ""
    head = f"{number:>3}  {hit['score']:.3f}  {hit['kind']}  {local_minute(hit['occurred_at'])}"
    click.echo(f"{head}{session}{team}  {hit['id']}")
    text = plain(hit["content"])
    # The outline of a file always starts with its path.
    lead = text.partition(" · ")[0] if hit["kind"] == Kind.CODE else ""
    for line in text.splitlines() if query is None else fit_excerpt(text, query, width, lead=lead):
        click.echo(f"{INDENT}{line}")
    if "superseded_by" in hit:
        click.echo(f"{INDENT}superseded by {hit['superseded_by']}")


def _print_explanation(answer: dict[str, Any]) -> None:
    for reason in answer["reasons"]:
        click.echo(plain(reason))
    for memory in answer.get("chain", ()):
        click.echo(f"  → {one_line(memory['content'])}")
    if answer["signals"] is not None:
        _print_signals([answer])


def _print_signals(hits: list[dict[str, Any]]) -> None:
    numbers = {hit["id"]: number for number, hit in enumerate(hits, 1)}
    columns: Fields = {
        "#": lambda hit: numbers[hit["id"]],
        **{name: partial(_format_signal, name) for name in CHANNELS},
        "relevance": "signals.relevance",
        "score": lambda hit: f"{hit['score']:.3f}",
    }
    print_table(hits, columns)
    click.echo("Format of a channel: rank / raw score / contribution.")
    for number, hit in enumerate(hits, 1):
        parts = ", ".join(f"{name} {value:+.3f}" for name, value in hit["signals"]["parts"].items())
        click.echo(f"{number:>3}  {parts}")
        for lift in hit["signals"]["lifted_by"]:
            click.echo(f"{INDENT}{lift['part']} {lift['contribution']:+.3f} from {lift['id']}")
        for bridge in hit["signals"].get("bridges", ()):
            names = f"{plain(bridge['term'])} = {plain(bridge['other'])}"
            click.echo(f"{INDENT}other name: {names}, from {bridge['memory_id'] or 'the list of short forms'}")


def _format_signal(channel: str, hit: dict[str, Any]) -> str | None:
    signal = hit["signals"]["channels"].get(channel)
    rank = "-" if signal is None or signal["rank"] is None else signal["rank"]
    return signal and f"{rank} / {signal['score']:.3f} / {signal['contribution']:+.3f}"


LINES = 2
CUT = "…"
_WORD = re.compile(r"\w+")
# A query word also matches other forms with the same stem.
SHORTEST_STEM = 3
LONGEST_ENDING = 2


def fit_excerpt(text: str, query: str, width: int, lead: str = "") -> list[str]:
    """Return the part of a text with the most words of a query, wrapped to a few lines of `width`.

    If the excerpt does not start at the beginning of the text, the `lead` is put in front.
    """
    original = text.splitlines()
    if len(original) <= LINES and all(len(line) <= width for line in original):
        return original
    flat = " ".join(text.split())
    wrapped = textwrap.wrap(flat, width)
    if len(wrapped) <= LINES:
        return wrapped
    start = _find_start(flat, _find_stems(query), room=width * LINES - width // 4)
    excerpt = f"{f'{lead} ' if start and lead else ''}{CUT if start else ''}{flat[start:]}"
    return textwrap.wrap(excerpt, width, max_lines=LINES, placeholder=CUT)


def _find_stems(query: str) -> tuple[str, ...]:
    words = (word.casefold() for word in _WORD.findall(query) if len(word) >= SHORTEST_STEM)
    return tuple(dict.fromkeys(word[: max(SHORTEST_STEM, len(word) - LONGEST_ENDING)] for word in words))


def _find_start(flat: str, stems: tuple[str, ...], room: int) -> int:
    """Return where the part of `room` characters with the most stems starts; 0 if no stem occurs."""
    words = [(match.start(), match[0].casefold()) for match in _WORD.finditer(flat)]
    hits = [(at, stem) for at, word in words for stem in stems if word.startswith(stem)]
    best, most = 0, len({stem for at, stem in hits if at < room})
    for hit, _ in hits:
        # Some text before the match gives it context.
        start = next(at for at, _ in words if at >= hit - room // 4)
        count = len({stem for at, stem in hits if start <= at < start + room})
        if count > most:
            best, most = start, count
    return best
