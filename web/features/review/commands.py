"""Commands to review memories: duplicates, candidates, repeated offers, and decisions of admission."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import click

from pipeline.kernel.enums import Kind, Outcome
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.times import local_date
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import Fields, count_of, headline, one_line, plain, print_memory, print_table
from web.cli.state import State, empty_page
from web.http.client import Client

# The time to compare two texts grows with the square of their words.
COMPARED_WORDS = 1000
NOT_STORED = (Outcome.REJECTED, Outcome.MERGED, Outcome.CANDIDATE)
REFUSAL: Fields = {
    "id": "id",
    "how": "how",
    "offered": "offers",
    "memory": lambda refusal: one_line(refusal["memory"]["content"]) if refusal["memory"] else "(purged)",
}
STATEMENT: Fields = {"at": "at", "type": "label", "score": "lasts", "sentence": "sentence", "reason": "reason"}
DECISION: Fields = {
    "at": "at",
    "outcome": "outcome",
    "kind": "kind",
    "source": "source",
    "score": "score",
    "reasons": lambda decision: "; ".join(decision["reasons"]),
}


@click.group(cls=Group)
def review() -> None:
    """Review candidates, duplicates, conflicts, refused offers, and why something was not stored."""


@review.command()
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.check_name)
@options.limit(50)
@pass_state
def refused(state: State, memory_id: str | None, limit: int) -> None:
    """List memories that were offered again after you refused them; with ID, accept one after all."""
    if memory_id is not None:
        answer = state.ask(lambda client: client.request("POST", ("refused", memory_id, "accept")), to_write=True)
        state.show(answer, "the memory is active again" if answer["memory"] else "the memory may be offered again")
        return
    # This list has no further pages.
    page: dict[str, Any] = state.ask_about_content(
        lambda client: client.request("GET", "/v1/refused", query={"limit": limit}), {"items": []}
    )
    state.show_page(page, REFUSAL, "No memory was offered again after you refused it.")


@review.command()
@click.option("--list", "only_list", is_flag=True, help="List the pairs without asking what to do.")
@options.viewer
@options.limit(50)
@pass_state
def duplicates(state: State, /, limit: int, *, only_list: bool, **filters: Any) -> None:
    """Review pairs of similar memories: merge them, keep both, or skip. With --json, list them."""
    question = "[m]erge, [k]eep both, [s]kip, [q]uit"
    empty = "No pair of similar memories waits for review."
    page = state.list_items("/v1/duplicates", limit, **filters)
    settled = _settle(state, page, _print_pair, empty, None if only_list else question, _settle_duplicate)
    if settled is not None:
        summary = ", ".join(f"{count} {name}" for name, count in settled.items())
        click.echo(summary or "no pair was changed", err=True)


def _settle_duplicate(client: Client, pair: dict[str, Any], key: str) -> str:
    client.request("POST", ("duplicates", pair["id"]), {"action": "merge" if key == "m" else "keep"})
    return "merged" if key == "m" else "kept"


def _settle(
    state: State,
    page: dict[str, Any],
    print_item: Callable[[Any], object],
    empty: str,
    question: str | None,
    act: Callable[[Client, dict[str, Any], str], str],
) -> Counter[str] | None:
    """Ask about each item of a page and act on the answer; return the counts of outcomes.

    With --json, without a question or without items, print the list instead and return None.
    """
    if state.json or question is None or not page["items"]:
        state.show_page(page, print_item, empty)
        return None
    settled: Counter[str] = Counter()
    with state.client() as client:
        for item in page["items"]:
            print_item(item)
            key = click.prompt(question, type=click.Choice(re.findall(r"\[(\w)\]", question)), show_choices=False)
            click.echo()
            if key == "q":
                break
            if key == "s":
                continue
            try:
                settled[act(client, item, key)] += 1
            except (Conflict, NotFound) as error:
                # Another client was faster, or one of the two was deleted: go on with the other items.
                click.echo(f"not changed: {plain(error)}", err=True)
    return settled


def _print_pair(pair: dict[str, Any]) -> None:
    reasons = "; ".join(plain(reason) for reason in pair["reasons"])
    click.echo(f"{pair['id']}  similarity {pair['cosine']:.3f}{f': {reasons}' if reasons else ''}")
    older, newer = differences(plain(pair["older"]["content"]), plain(pair["newer"]["content"]))
    for name, text in (("older", older), ("newer", newer)):
        click.echo(f"  {name}  {headline(pair[name])}")
        click.echo("\n".join(f"         {line}" for line in text.splitlines()))


def differences(older: str, newer: str) -> tuple[str, str]:
    """Mark the words that only one of two texts contains: [-old-] in the older, {+new+} in the newer."""
    first, second = _words(older), _words(newer)
    marked: tuple[list[str], list[str]] = ([], [])
    compared = difflib.SequenceMatcher(None, first[:COMPARED_WORDS], second[:COMPARED_WORDS], autojunk=False)
    for tag, low, high, from_, to in compared.get_opcodes():
        same = tag == "equal"
        marked[0].append(_mark_words(first[low:high], "[-", "-]", "red", same=same))
        marked[1].append(_mark_words(second[from_:to], "{+", "+}", "green", same=same))
    older_end, newer_end = ("".join(words[COMPARED_WORDS:]) for words in (first, second))
    return "".join((*marked[0], older_end)), "".join((*marked[1], newer_end))


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def _mark_words(words: Sequence[str], begin: str, end: str, colour: str, *, same: bool) -> str:
    text = "".join(words)
    if same or not text.strip():
        return text
    # White space stays outside of the marks, so that no mark spans two lines.
    core = text.strip()
    head, tail = text[: text.index(core)], text[text.index(core) + len(core) :]
    return head + click.style(f"{begin}{core}{end}", fg=colour) + tail


@review.group(bare_command="list")
def candidates() -> None:
    """List, accept and reject memories that wait for your review. Without a command, list them."""


@candidates.command("list")
@options.viewer
@options.limit(50)
@pass_state
def list_candidates(state: State, /, limit: int, **filters: Any) -> None:
    """List the memories that wait for your review, newest first."""
    state.show_list("/v1/candidates", limit, print_memory, "No memory waits for review.", **filters)


@candidates.command("accept")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def accept(state: State, memory_id: str) -> None:
    """Accept the candidate ID as a memory."""
    state.act("POST", ("candidates", memory_id), {"action": "accept"}, says="accepted {id}: {content}")


@candidates.command("reject")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def reject(state: State, memory_id: str) -> None:
    """Reject the candidate ID and archive it."""
    state.act("POST", ("candidates", memory_id), {"action": "reject"}, says="rejected {id}: {content}")


@review.command()
@click.option(
    "--outcome",
    type=click.Choice([outcome.value for outcome in Outcome]),
    help="Only list decisions with this outcome.  [default: all but created]",
)
@click.option(
    "--kind", type=click.Choice([kind.value for kind in Kind]), help="Only list decisions about this kind of memory."
)
@options.limit(20)
@pass_state
def decisions(state: State, limit: int, outcome: str | None, kind: str | None) -> None:
    """List what was not saved, and why: sentences of your prompts, and writes that were not stored.

    The newest entries are first. The texts of writes are not recorded.
    """
    outcomes = NOT_STORED if outcome is None else (outcome,)

    def collect(client: Client) -> dict[str, Any]:
        items = [item for name in outcomes for item in client.items("/v1/admissions", limit, outcome=name)]
        chosen = [item for item in items if kind in (None, item["kind"])]
        newest = sorted(chosen, key=lambda item: item["at"], reverse=True)[:limit]
        answer = {"items": newest, "next_cursor": None, "statements": []}
        if outcome is None and kind is None:
            unsaved = client.request("GET", "/v1/unsaved-statements", query={"limit": limit})
            answer["statements"] = unsaved["items"]
        return answer

    nothing: dict[str, Any] = empty_page() | {"statements": []}
    state.show(state.ask_about_content(collect, nothing), _print_not_saved)


def _print_not_saved(answer: dict[str, Any]) -> None:
    if answer["statements"]:
        click.echo('Considered in your prompts and not saved (to save one, run `reverie remember "…"`):')
        print_table(answer["statements"], STATEMENT)
    if answer["items"] or not answer["statements"]:
        print_table(answer["items"], DECISION, empty="Everything that was offered was stored.")


@review.command("conflicts")
@click.option("--list", "only_list", is_flag=True, help="List the conflicts without asking what to do.")
@options.limit(50)
@pass_state
def review_conflicts(state: State, limit: int, *, only_list: bool) -> None:
    """Review memories that contradict each other: keep one and archive the other, or keep both.

    The preferred memory comes first: a rule file, then your own statement, then a memory that matches its code, then
    the newer memory. With --json, list the conflicts.
    """
    question = "keep [p]referred, keep [o]ther, [k]eep both, [s]kip, [q]uit"
    empty = "No memories contradict each other."
    page = state.list_items("/v1/conflicts", limit)
    settled = _settle(state, page, _print_conflict, empty, None if only_list else question, _settle_conflict)
    if settled is not None:
        archived = count_of(settled["archived"], "memory", "memories")
        click.echo(f"{archived} archived, {count_of(settled['kept'], 'conflict')} removed", err=True)


def _settle_conflict(client: Client, conflict: dict[str, Any], key: str) -> str:
    sides = ("other", "leading") if key == "o" else ("leading", "other")
    ids = [conflict[side]["memory"]["id"] for side in sides]
    answer = client.request("POST", ("conflicts", *ids), {"action": "both" if key == "k" else "keep"})
    return "kept" if answer["archived"] is None else "archived"


def _print_conflict(conflict: dict[str, Any]) -> None:
    for name, label in (("leading", "preferred"), ("other", "other    ")):
        side = conflict[name]
        memory = side["memory"]
        click.echo(f"{label}  {one_line(memory['content'])}")
        origin = f"{local_date(memory['occurred_at'])}  {side['standing']}  {plain(side['origin'])}  {memory['id']}"
        click.echo(f"           {origin}")
    click.echo()
