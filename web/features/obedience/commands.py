"""The command that reports whether agents kept the rules."""

from typing import Any

import click

from pipeline.kernel.times import local_minute
from web.cli import options
from web.cli.command import Command, pass_state
from web.cli.render import Record, fill, one_line
from web.cli.state import State

ACTS_SHOWN = 5
PROPOSALS = {
    "guard": "agents broke it twice: the page Inbox of the dashboard can make it a guard",
    "archive": "it was shown often and never concerned an act: `reverie forget {id}` archives it",
}


def _list_acts(report: dict[str, Any]) -> list[str]:
    acts = [(act, use) for use in report["uses"] for act in use["acts"]]
    return [_describe_act(act, use) for act, use in acts[:ACTS_SHOWN]]


def _describe_act(act: dict[str, Any], use: dict[str, Any]) -> str:
    place = "" if act["line"] is None else f", {act['transcript']}:{act['line']}"
    verdict = "kept" if act["is_kept"] else "broken"
    target = one_line(f"{act['tool']} {act['target']}", 80)
    return f"{verdict} {local_minute(act['at'])} by {target} (shown {local_minute(use['at'])}{place})"


def _propose(report: dict[str, Any]) -> str | None:
    return fill(PROPOSALS[report["proposal"]], report) if report["proposal"] else None


REPORT = Record(
    lambda report: one_line(report["content"], 400),
    {
        "rule": lambda report: f"{report['id']}  {report['verdict']}",
        "acts": lambda report: fill("kept {kept}, broken {broken} (shown {shown})", report),
        "last": _list_acts,
        "proposal": _propose,
    },
)


@click.command(cls=Command)
@options.viewer
@options.limit(20)
@pass_state
def report(state: State, /, limit: int, **filters: Any) -> None:
    """Report for each rule which acts kept or broke it after it was shown.

    Rules that name no command, file, tool, option or word are not decidable.
    """
    answer: dict[str, Any] = state.ask_about_content(
        lambda client: client.call("GET", "/v1/lessons/report", query={**filters, "limit": limit}), {"items": []}
    )
    state.show_page(answer, REPORT, "No rule was shown to an agent yet.")
