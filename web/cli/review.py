"""Commands to review memories: duplicates, candidates, repeated offers, and decisions of admission."""

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from pipeline.enums import Kind, Outcome
from pipeline.errors import Conflict, NotFound
from pipeline.times import local_date
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import (
    SCORE,
    Column,
    count_of,
    headline,
    minute_of,
    one_line,
    plain,
    print_memory,
    print_table,
    text_of,
)
from web.cli.state import State

if TYPE_CHECKING:
    from web.client import Client

# The time to compare two texts grows with the square of their words.
COMPARED_WORDS = 1000
KEYS = {"m": "merge", "k": "keep", "s": "skip", "q": "quit"}
NOT_STORED = (Outcome.REJECTED, Outcome.MERGED, Outcome.CANDIDATE)


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
        path = f"/v1/refused/{quote(memory_id, safe='')}/accept"
        answer = state.ask(lambda client: client.call("POST", path), to_write=True)
        state.show(answer, "the memory is active again" if answer["memory"] else "the memory may be offered again")
        return
    # This list has no further pages.
    page: dict[str, Any] = state.ask_about_content(
        lambda client: client.call("GET", "/v1/refused", query={"limit": limit}), {"items": []}
    )
    state.show_items(
        page,
        lambda refusal: click.echo(
            f"{refusal['id']}  {refusal['how']}, offered {refusal['offers']} times since  "
            f"{one_line(refusal['memory']['content']) if refusal['memory'] else '(purged)'}"
        ),
        "No memory was offered again after you refused it.",
    )


@review.command()
@click.option("--list", "only_list", is_flag=True, help="List the pairs without asking what to do.")
@options.viewer
@options.limit(50)
@pass_state
def duplicates(state: State, /, limit: int, *, only_list: bool, **filters: Any) -> None:
    """Review pairs of similar memories: merge them, keep both, or skip. With --json, list them."""
    page = state.list_items("/v1/duplicates", limit, **filters)
    if state.json or only_list or not page["items"]:
        state.show_items(page, _print_pair, "No pair of similar memories waits for review.")
        return
    with state.client() as client:
        settled = _review(client, page["items"])
    summary = ", ".join(f"{count} {name}" for name, count in settled.items() if count)
    click.echo(summary or "no pair was changed", err=True)


def _review(client: "Client", pairs: Any) -> dict[str, int]:
    settled = {"merged": 0, "kept": 0}
    for pair in pairs:
        _print_pair(pair)
        key = click.prompt("[m]erge, [k]eep both, [s]kip, [q]uit", type=click.Choice(list(KEYS)), show_choices=False)
        click.echo()
        if key == "q":
            break
        if key == "s":
            continue
        try:
            client.request("POST", ("duplicates", pair["id"]), {"action": KEYS[key]})
        except (Conflict, NotFound) as error:
            # Another client was faster, or one of the two was deleted: go on with the other pairs.
            click.echo(f"not changed: {plain(error)}", err=True)
        else:
            settled["merged" if key == "m" else "kept"] += 1
    return settled


def _print_pair(pair: dict[str, Any]) -> None:
    reasons = "; ".join(plain(reason) for reason in pair["reasons"])
    click.echo(f"{pair['id']}  similarity {pair['cosine']:.3f}{f': {reasons}' if reasons else ''}")
    older, newer = differences(plain(pair["older"]["content"]), plain(pair["newer"]["content"]))
    for name, text in (("older", older), ("newer", newer)):
        click.echo(f"  {name}  {headline(pair[name])}")
        for line in text.splitlines():
            click.echo(f"         {line}")


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
    page = state.list_items("/v1/candidates", limit, **filters)
    state.show_items(page, print_memory, "No memory waits for review.")


@candidates.command("accept")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def accept(state: State, memory_id: str) -> None:
    """Accept the candidate ID as a memory."""
    _settle(state, memory_id, "accept")


@candidates.command("reject")
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def reject(state: State, memory_id: str) -> None:
    """Reject the candidate ID and archive it."""
    _settle(state, memory_id, "reject")


def _settle(state: State, memory_id: str, action: str) -> None:
    memory = state.ask(lambda client: client.request("POST", ("candidates", memory_id), {"action": action}))
    state.show(memory, f"{action}ed {memory['id']}: {one_line(memory['content'])}")


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

    def collect(client: "Client") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        outcomes = NOT_STORED if outcome is None else (outcome,)
        pages = [client.list_items("/v1/admissions", limit, outcome=listed) for listed in outcomes]
        entries = [entry for page in pages for entry in page["items"] if kind is None or entry["kind"] == kind]
        if outcome is not None or kind is not None:
            return entries, []
        return entries, client.call("GET", "/v1/unsaved-statements", query={"limit": limit})["items"]

    nothing: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    entries, statements = state.ask_about_content(collect, nothing)
    entries = sorted(entries, key=lambda entry: entry["at"], reverse=True)[:limit]
    answer = {"items": entries, "next_cursor": None, "statements": statements}
    state.show(answer, lambda: _print_not_saved(statements, entries))


def _print_not_saved(statements: list[dict[str, Any]], entries: list[dict[str, Any]]) -> None:
    if statements:
        click.echo('Considered in your prompts and not saved (to save one, run `reverie remember "…"`):')
        columns: dict[str, Column] = {
            "at": minute_of("at"),
            "type": "label",
            "score": lambda statement: f"{statement['lasts']:.2f}",
            "sentence": text_of("sentence"),
            "reason": "reason",
        }
        print_table(statements, columns, right=["score"])
    if entries or not statements:
        reasons: dict[str, Column] = {"reasons": lambda entry: "; ".join(entry["reasons"])}
        columns = {"at": minute_of("at"), "outcome": "outcome", "kind": "kind", "source": "source", **SCORE, **reasons}
        print_table(entries, columns, right=["score"], empty="Everything that was offered was stored.")


CONFLICT_KEYS = ("p", "o", "k", "s", "q")
CONFLICT_QUESTION = "keep [p]referred, keep [o]ther, [k]eep both, [s]kip, [q]uit"


@review.command("conflicts")
@click.option("--list", "only_list", is_flag=True, help="List the conflicts without asking what to do.")
@options.limit(50)
@pass_state
def review_conflicts(state: State, limit: int, *, only_list: bool) -> None:
    """Review memories that contradict each other: keep one and archive the other, or keep both.

    The preferred memory comes first: a rule file, then your own statement, then a memory that matches its code, then
    the newer memory. With --json, list the conflicts.
    """
    page = state.list_items("/v1/conflicts", limit)
    if state.json or only_list or not page["items"]:
        state.show_items(page, _print_conflict, "No memories contradict each other.")
        return
    with state.client() as client:
        archived, kept = _settle_conflicts(client, page["items"])
    click.echo(f"{count_of(archived, 'memory', 'memories')} archived, {count_of(kept, 'conflict')} removed", err=True)


def _settle_conflicts(client: "Client", conflicts: list[dict[str, Any]]) -> tuple[int, int]:
    """Ask about each conflict; return the numbers of archived memories and of conflicts whose memories are kept."""
    archived = kept = 0
    for conflict in conflicts:
        _print_conflict(conflict)
        key = click.prompt(CONFLICT_QUESTION, type=click.Choice(CONFLICT_KEYS), show_choices=False)
        click.echo()
        if key == "q":
            break
        if key == "s":
            continue
        kept_id, other_id = (conflict[side]["memory"]["id"] for side in ("leading", "other"))
        if key == "o":
            kept_id, other_id = other_id, kept_id
        try:
            answer = client.request(
                "POST", ("conflicts", kept_id, other_id), {"action": "both" if key == "k" else "keep"}
            )
        except (Conflict, NotFound) as error:
            # Another client was faster, or one of the two was deleted: go on with the other conflicts.
            click.echo(f"not changed: {plain(error)}", err=True)
            continue
        archived += answer["archived"] is not None
        kept += answer["archived"] is None
    return archived, kept


def _print_conflict(conflict: dict[str, Any]) -> None:
    for name, label in (("leading", "preferred"), ("other", "other    ")):
        side = conflict[name]
        memory = side["memory"]
        click.echo(f"{label}  {one_line(memory['content'])}")
        origin = f"{local_date(memory['occurred_at'])}  {side['standing']}  {plain(side['origin'])}  {memory['id']}"
        click.echo(f"           {origin}")
    click.echo()
