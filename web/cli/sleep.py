"""The night on the command line: for a person, for cron, for a systemd timer."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from web.cli.command import Command, State, pass_state
from web.cli.render import plain, table

if TYPE_CHECKING:
    from pipeline.bootstrap.back import Back

# A person waits for whole jobs: one that reports more work is continued until this long.
LONGEST_JOB_S = 3600.0
# Access counts are in the memory of a running front, which writes them itself.
IN_THE_FRONT = "touches"


@click.command(cls=Command)
@click.argument("jobs", nargs=-1, metavar="[JOB]…")
@click.option("--all", "whole_night", is_flag=True, help="Run every job, in the order of a night.")
@pass_state
def sleep(state: State, jobs: tuple[str, ...], *, whole_night: bool) -> None:
    """Run jobs of the night now, in this process; without a name, list them."""
    from pipeline.jobs.appointments import BY_NAME

    unknown = [name for name in jobs if name not in BY_NAME]
    if unknown:
        raise click.UsageError(f"no such job: {plain(unknown[0])}; there are {', '.join(BY_NAME)}")
    if whole_night:
        jobs = tuple(name for name in BY_NAME if name != IN_THE_FRONT)
    if jobs:
        _run(state, jobs)
    else:
        _list(state)


@click.command(cls=Command)
@pass_state
def consolidate(state: State) -> None:
    """Make one memory of many related episodes: the job `consolidate`, run now."""
    _run(state, ("consolidate",))


def _list(state: State) -> None:
    from pipeline.jobs.appointments import APPOINTMENTS

    if state.json:
        state.print_json([{"name": a.name, "schedule": a.schedule, "summary": a.summary} for a in APPOINTMENTS])
        return
    table(["job", "schedule", "what it does"], [[a.name, a.schedule, a.summary] for a in APPOINTMENTS])


def _run(state: State, jobs: tuple[str, ...]) -> None:
    from pipeline.bootstrap.back import Back

    back = Back(state.settings)
    try:
        back.databases.get(state.workspace)
        results = [_finish(back, state, name) for name in jobs]
    finally:
        back.close()
    if state.json:
        state.print_json(results)
    if any(result["error"] for result in results):
        sys.exit(1)


def _finish(back: "Back", state: State, name: str) -> dict[str, Any]:
    """Run one job to its end, showing how far it has come."""
    began = time.monotonic()
    counts: dict[str, int] = {}
    error = None
    with click.progressbar(
        length=1, label=f"{name:12}", file=sys.stderr, hidden=state.json or not sys.stderr.isatty()
    ) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        while True:
            outcome = back.run_job(state.workspace, name, lambda: time.monotonic() - began >= LONGEST_JOB_S, progress)
            if outcome is None:
                error = "somebody else runs it now"
                break
            for key, number in outcome.report.counts.items():
                counts[key] = counts.get(key, 0) + number
            error = outcome.error
            if not outcome.report.more or error is not None or time.monotonic() - began >= LONGEST_JOB_S:
                break
        bar.update(bar.length or 1)
    took_s = round(time.monotonic() - began, 1)
    if not state.json:
        told = (
            plain(error) if error else ", ".join(f"{key} {number}" for key, number in counts.items()) or "nothing to do"
        )
        click.echo(f"{name:12} {'failed' if error else 'ok':6} {took_s:>6.1f} s  {told}")
    return {"job": name, "ok": error is None, "counts": counts, "error": error, "took_s": took_s}
