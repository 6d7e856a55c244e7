"""The inbox on the command line, and what is known: duplicates, candidates, what was not kept, the audit."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from pipeline.enums import Kind, Outcome
from pipeline.errors import Conflict, NotFound
from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import (
    format_minute,
    format_size,
    format_value,
    headline,
    one_line,
    plain,
    print_if_none,
    print_memory,
    print_pairs,
    scope_name,
    table,
)

if TYPE_CHECKING:
    from web.client import Client

# Comparing takes time that grows with the square of the words.
COMPARED_WORDS = 1000
KEYS = {"m": "merge", "k": "keep", "s": "skip", "q": "quit"}
NOT_KEPT = (Outcome.REJECTED, Outcome.MERGED, Outcome.CANDIDATE)


@click.command(cls=Command)
@click.argument("memory_id", metavar="[ID]", required=False, callback=options.check_name)
@options.limit(50)
@pass_state
def refused(state: State, memory_id: str | None, limit: int) -> None:
    """List what was offered again although you refused it; with ID, change your mind about one."""
    if memory_id is not None:
        path = f"/v1/refused/{quote(memory_id, safe='')}/accept"
        done = state.ask(lambda client: client.call("POST", path), to_write=True)
        state.show(done, "it is active again" if done["memory"] else "it may be offered again")
        return
    found = state.ask(lambda client: client.call("GET", "/v1/refused", query={"limit": limit}))
    state.show(found, lambda: _print_refused(found["items"]))


def _print_refused(found: list[dict[str, Any]]) -> None:
    print_if_none(found)
    for one in found:
        text = one_line(one["memory"]["content"]) if one["memory"] else "(purged)"
        click.echo(f"{one['id']}  {one['how']}, offered {one['offers']} times since  {text}")


@click.command(cls=Command)
@click.option("--list", "only_list", is_flag=True, help="List the pairs instead of asking.")
@options.viewer
@options.limit(50)
@pass_state
def duplicates(state: State, /, limit: int, *, only_list: bool, **wanted: Any) -> None:
    """Review pairs that may say the same: merge into the older, keep both, skip or quit. --json lists them."""
    with state.client() as client:
        if state.json:
            state.print_json(client.list_items("/v1/duplicates", limit, **wanted))
            return
        pairs = client.items("/v1/duplicates", limit, **wanted)
        if only_list:
            for pair in pairs:
                _print_pair(pair)
            return
        settled = _review(client, pairs)
    summary = ", ".join(f"{count} {name}" for name, count in settled.items() if count)
    click.echo(summary or "no pair was settled", err=True)


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
    marked: tuple[list[str], list[str]] = ([], [])
    compared = difflib.SequenceMatcher(None, first[:COMPARED_WORDS], second[:COMPARED_WORDS], autojunk=False)
    for tag, low, high, from_, to in compared.get_opcodes():
        same = tag == "equal"
        marked[0].append(_mark_words(first[low:high], "[-", "-]", "red", same=same))
        marked[1].append(_mark_words(second[from_:to], "{+", "+}", "green", same=same))
    rest = ("".join(words[COMPARED_WORDS:]) for words in (first, second))
    return "".join((*marked[0], next(rest))), "".join((*marked[1], next(rest)))


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def _mark_words(words: Sequence[str], begin: str, end: str, colour: str, *, same: bool) -> str:
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
    """Review the candidates. Without a command, list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_candidates)


@candidates.command("list")
@options.viewer
@options.limit(50)
@pass_state
def list_candidates(state: State, /, limit: int, **wanted: Any) -> None:
    """List the memories that wait for review, newest first."""
    found = state.ask(lambda client: client.list_items("/v1/candidates", limit, **wanted))
    if state.json:
        state.print_json(found)
        return
    print_if_none(found["items"])
    for memory in found["items"]:
        print_memory(memory)


@candidates.command("accept", cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def accept(state: State, memory_id: str) -> None:
    """Let the candidate ID in."""
    _settle(state, memory_id, "accept")


@candidates.command("reject", cls=Command)
@click.argument("memory_id", metavar="ID", callback=options.check_name)
@pass_state
def reject(state: State, memory_id: str) -> None:
    """Archive the candidate ID."""
    _settle(state, memory_id, "reject")


def _settle(state: State, memory_id: str, action: str) -> None:
    found = state.ask(lambda client: client.settle_candidate(memory_id, action))
    state.show(found, f"{action}ed {found['id']}: {one_line(found['content'])}")


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
            page = client.list_items("/v1/admissions", limit, outcome=wanted)["items"]
            decisions.extend(one for one in page if kind is None or one["kind"] == kind)
    decisions = sorted(decisions, key=lambda one: one["at"], reverse=True)[:limit]
    rows = [
        [
            format_minute(one["at"]),
            one["outcome"],
            one["kind"],
            one["source"],
            f"{one['score']:.2f}",
            "; ".join(one["reasons"]),
        ]
        for one in decisions
    ]
    state.show(
        {"items": decisions, "next_cursor": None},
        lambda: table(["at", "outcome", "kind", "source", "score", "reasons"], rows, right=["score"]),
    )


# Who reaches what is counted over so many memories, the newest.
COUNTED = 10_000
FACTS = 200
ACTS = 50
# The subject under which facts about the person stand, and the scopes in which they may.
PERSON = "user"
PERSONAL_SCOPES = ("workspace", "user")


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def audit(context: click.Context) -> None:
    """Tell what Reverie knows about you: counts, facts, files, and what was merged or archived without asking."""
    if context.invoked_subcommand is None:
        _overview(context.ensure_object(State))


@audit.command("list")
@options.limit(ACTS)
@pass_state
def list_acts(state: State, limit: int) -> None:
    """List what was merged or archived without asking, newest first."""
    found = state.ask(lambda client: client.list_items("/v1/audit", limit))
    state.show(found, lambda: _print_acts(found["items"]))


@audit.command("undo")
@click.argument("entry_id", metavar="ID", callback=options.check_name)
@pass_state
def undo(state: State, entry_id: str) -> None:
    """Take the act ID back: what was merged or archived is there again."""
    found = state.ask(lambda client: client.undo(entry_id))
    state.show(found, f"{found['id']} is back: {one_line(found['content'])}")


@audit.command("access")
@click.option("--person", metavar="ID", help="Only what this person asked.")
@click.option("--since", callback=options.parse_time, metavar="TIME", help="Only what was asked from then on.")
@options.limit(ACTS)
@pass_state
def list_accesses(state: State, person: str | None, since: str | None, limit: int) -> None:
    """List what people read and wrote, newest first; of one workspace where --workspace names it."""
    asked = options.select_given_options({"person": person, "since": since, "workspace": state.named_workspace})
    found = state.ask(lambda client: client.list_items("/v1/access-log", limit, **asked))
    rows = [
        [
            format_minute(one["at"]),
            one["person"],
            one["workspace"] or "",
            one["action"],
            str(one["status"]),
            str(one["memories"] or ""),
            one["request_id"],
        ]
        for one in found["items"]
    ]
    state.show(found, lambda: table(["at", "person", "workspace", "what", "status", "memories", "request"], rows))


def _overview(state: State) -> None:
    found = state.ask(lambda client: _collect(client) | {"places": _list_places(state)})
    if state.json:
        state.print_json(found)
        return
    _print_counts(found)
    if found["personal"]:
        click.echo("\nabout you")
        rows = [
            [
                one_line(one["attribute"]),
                one_line(format_value(one["value"])),
                format_minute(one["valid_from"]),
                one["source"],
            ]
            for one in found["personal"]
        ]
        table(["  attribute", "value", "since", "source"], [[f"  {row[0]}", *row[1:]] for row in rows])
    click.echo("\nwhere it is")
    print_pairs([(f"  {name}", place) for name, place in found["places"].items()])
    click.echo("\nmerged or archived without asking")
    if found["acts"]:
        _print_acts(found["acts"])
        click.echo("`reverie audit undo ID` takes one back, `reverie audit list -n 1000` lists more")
    else:
        click.echo("  nothing")


def _collect(client: "Client") -> dict[str, Any]:
    stats = client.stats()
    counted = 0
    scopes: Counter[str] = Counter()
    trust: Counter[str] = Counter()
    for memory in client.items("/v1/memories", COUNTED):
        counted += 1
        scopes[scope_name(memory["scope"])] += 1
        trust[memory["trust"]] += 1
    personal = [
        fact
        for scope in PERSONAL_SCOPES
        for fact in client.items("/v1/facts", FACTS, subject=PERSON, scope=scope)
        if fact["valid_to"] is None
    ]
    return {
        "workspace": stats["workspace"],
        "memories": stats["memories"],
        "counted": counted,
        "scopes": dict(scopes),
        "trust": dict(trust),
        "entities": stats["graph"]["entities"],
        "bytes": stats["bytes"],
        "personal": personal,
        "incognito": len(client.incognito()["items"]),
        "waiting": {
            "candidates": len(client.list_items("/v1/candidates", ACTS)["items"]),
            "duplicates": len(client.list_items("/v1/duplicates", ACTS)["items"]),
        },
        "acts": [act for act in client.items("/v1/audit", ACTS) if act["undone_at"] is None],
    }


def _list_places(state: State) -> dict[str, str]:
    home, workspace = state.settings.paths, state.settings.paths.workspace(state.workspace)
    return {
        "memories": state.settings.store_place or str(workspace.events),
        "vectors": str(workspace.vectors),
        "lexical": str(workspace.lexical),
        "snapshots": str(workspace.snapshots),
        "logs": str(home.logs),
        "errors": str(home.operations),
    }


def _print_counts(found: dict[str, Any]) -> None:
    memories, waiting = found["memories"], found["waiting"]
    newest = f" (of the newest {COUNTED})" if found["counted"] == COUNTED else ""
    review = ", ".join(f"{_at_least(count)} {name}" for name, count in waiting.items() if count)
    print_pairs(
        [
            ("workspace", found["workspace"]),
            ("memories", f"{memories['active']} active, {memories['archived']} archived"),
            ("sessions", f"{memories['sessions']}, {found['incognito']} incognito"),
            ("kinds", _format_counts(memories["by_kind"].items())),
            ("sources", _format_counts(memories["by_source"].items())),
            (
                "reach",
                f"{_format_counts(found['scopes'].items()) or 'none'}{newest}; what one session owns is not shown",
            ),
            ("trust", _format_counts(found["trust"].items())),
            ("entities", found["entities"]),
            ("to review", review or "nothing"),
            ("sizes", ", ".join(f"{name} {format_size(count)}" for name, count in found["bytes"].items())),
        ]
    )


def _at_least(count: int) -> str:
    return f"{count} or more" if count == ACTS else str(count)


def _format_counts(counts: Iterable[tuple[str, int]]) -> str | None:
    return ", ".join(f"{one_line(name)} {count}" for name, count in counts) or None


def _print_acts(acts: list[dict[str, Any]]) -> None:
    rows = [
        [
            act["id"],
            format_minute(act["at"]),
            plain(act["actor"]),
            _format_act(act),
            format_minute(act["undone_at"]) or ("no"),
        ]
        for act in acts
    ]
    table(["act", "at", "by", "what", "undone"], rows)


def _format_act(act: dict[str, Any]) -> str:
    into = f" into {act['other_id']}" if act["other_id"] else ""
    return f"{act['action']} {act['memory_id']}{into}"
