"""The inbox on the command line: pairs that may be one, candidates, and what was not kept."""

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from pipeline.errors import Conflict, NotFound
from pipeline.records import Kind, Outcome
from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.lines import day, headline, one_line, print_memory, remark_on_none
from web.cli.render import plain, table

if TYPE_CHECKING:
    from web.client import Client

# Comparing takes time that grows with the square of the words.
COMPARED_WORDS = 1000
KEYS = {"m": "merge", "k": "keep", "s": "skip", "q": "quit"}
NOT_KEPT = (Outcome.REJECTED, Outcome.MERGED, Outcome.CANDIDATE)


@click.command(cls=Command)
@click.option("--list", "only_list", is_flag=True, help="List the pairs instead of asking.")
@options.viewer
@options.limit(50)
@pass_state
def duplicates(state: State, /, limit: int, *, only_list: bool, **wanted: Any) -> None:
    """Review pairs that may say the same: merge into the older, keep both, skip or quit. --json lists them."""
    with state.client() as client:
        if state.json:
            state.print_json(client.listing("/v1/duplicates", limit, **wanted))
            return
        pairs = client.items("/v1/duplicates", limit, **wanted)
        if only_list:
            for pair in pairs:
                _print_pair(pair)
            return
        settled = _review(client, pairs)
    told = ", ".join(f"{count} {name}" for name, count in settled.items() if count)
    click.echo(told or "no pair was settled", err=True)


def _review(client: "Client", pairs: Any) -> dict[str, int]:
    settled = {"merged": 0, "kept apart": 0}
    for pair in pairs:
        _print_pair(pair)
        key = click.prompt("[m]erge, [k]eep both, [s]kip, [q]uit", type=click.Choice(list(KEYS)), show_choices=False)
        click.echo()
        if key == "q":
            break
        if key == "s":
            continue
        try:
            client.settle_pair(pair["id"], KEYS[key])
        except (Conflict, NotFound) as error:
            # Somebody else was faster, or one of the two is gone: the others still wait.
            click.echo(f"not settled: {plain(error)}", err=True)
        else:
            settled["merged" if key == "m" else "kept apart"] += 1
    return settled


def _print_pair(pair: dict[str, Any]) -> None:
    reasons = "; ".join(plain(reason) for reason in pair["reasons"])
    click.echo(f"{pair['id']}  {pair['cosine']:.3f} alike{f': {reasons}' if reasons else ''}")
    older, newer = differences(plain(pair["older"]["content"]), plain(pair["newer"]["content"]))
    for name, text in (("older", older), ("newer", newer)):
        click.echo(f"  {name}  {headline(pair[name])}")
        for line in text.splitlines():
            click.echo(f"         {line}")


def differences(older: str, newer: str) -> tuple[str, str]:
    """Mark in each of two texts the words that the other has not: [-so-] in the older and {+so+} in the newer."""
    first, second = _words(older), _words(newer)
    shown: tuple[list[str], list[str]] = ([], [])
    compared = difflib.SequenceMatcher(None, first[:COMPARED_WORDS], second[:COMPARED_WORDS], autojunk=False)
    for tag, low, high, from_, to in compared.get_opcodes():
        same = tag == "equal"
        shown[0].append(_marked(first[low:high], "[-", "-]", "red", same=same))
        shown[1].append(_marked(second[from_:to], "{+", "+}", "green", same=same))
    rest = ("".join(words[COMPARED_WORDS:]) for words in (first, second))
    return "".join((*shown[0], next(rest))), "".join((*shown[1], next(rest)))


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def _marked(words: Sequence[str], begin: str, end: str, colour: str, *, same: bool) -> str:
    text = "".join(words)
    if same or not text.strip():
        return text
    # White space stays outside, where it cannot break a mark over two lines.
    core = text.strip()
    head, tail = text[: text.index(core)], text[text.index(core) + len(core) :]
    return head + click.style(f"{begin}{core}{end}", fg=colour) + tail


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def candidates(context: click.Context) -> None:
    """Review what waits to be let in. Without a command, list it."""
    if context.invoked_subcommand is None:
        context.invoke(list_candidates)


@candidates.command("list")
@options.viewer
@options.limit(50)
@pass_state
def list_candidates(state: State, /, limit: int, **wanted: Any) -> None:
    """List the memories that wait for review, newest first."""
    with state.client() as client:
        found = client.listing("/v1/candidates", limit, **wanted)
    if state.json:
        state.print_json(found)
        return
    remark_on_none(found["items"])
    for memory in found["items"]:
        print_memory(memory)


@candidates.command("accept", cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.named)
@pass_state
def accept(state: State, memory_id: str) -> None:
    """Let the candidate ID in."""
    _settle(state, memory_id, "accept")


@candidates.command("reject", cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.named)
@pass_state
def reject(state: State, memory_id: str) -> None:
    """Archive the candidate ID."""
    _settle(state, memory_id, "reject")


def _settle(state: State, memory_id: str, action: str) -> None:
    with state.client() as client:
        found = client.settle_candidate(memory_id, action)
    if state.json:
        state.print_json(found)
    else:
        click.echo(f"{action}ed {found['id']}: {one_line(found['content'])}")


@click.command("why-not-saved", cls=Command)
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in Outcome]),
    help="Only decisions with this outcome.  [default: all that are not `created`]",
)
@click.option("--kind", type=click.Choice([kind.value for kind in Kind]), help="Only what was offered as this kind.")
@options.limit(20)
@pass_state
def why_not_saved(state: State, limit: int, outcome: str | None, kind: str | None) -> None:
    """Tell what was turned away, merged or held for review, and why, newest first; texts are not kept."""
    decisions: list[dict[str, Any]] = []
    with state.client() as client:
        for wanted in NOT_KEPT if outcome is None else (outcome,):
            page = client.listing("/v1/admissions", limit, outcome=wanted)["items"]
            decisions.extend(one for one in page if kind is None or one["kind"] == kind)
    decisions = sorted(decisions, key=lambda one: one["at"], reverse=True)[:limit]
    if state.json:
        state.print_json({"items": decisions, "next_cursor": None})
        return
    rows = [
        [day(one["at"]), one["outcome"], one["kind"], one["source"], f"{one['score']:.2f}", "; ".join(one["reasons"])]
        for one in decisions
    ]
    table(["at", "outcome", "kind", "source", "score", "reasons"], rows, right=["score"])
