"""Read a source of memories, such as a project or an export, into a workspace, and print what changed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.errors import NotFound
from pipeline.services.ingestion import IMPORTS, open_reader
from web.cli.render import plain, print_pairs, show_progress
from web.cli.state import State

if TYPE_CHECKING:
    from web.source_import import Intake, IntakeCounts, ReasonCount

# The most frequent reasons are printed; --json lists all.
SHOWN_REASONS = 10


@dataclass(frozen=True, slots=True)
class SourceImport:
    """The import of one source into a workspace.

    `sweeps` archives memories of items that no longer exist.
    """

    state: State
    workspace: str
    source: str
    dry_run: bool
    sweeps: bool = False

    def run(self, name: str, path: Path, **choices: object) -> None:
        """Import everything from a path and print the counts; exit with 1 if an import stored nothing."""
        counts, took_s = self.import_path(name, path, **choices)
        self._print(counts, took_s)
        if name in IMPORTS and not counts.are_any_taken:
            reasons = [*_format_reasons(counts.rejected), *_format_reasons(counts.skipped)]
            why = "; ".join(reasons) or "it contains nothing to import"
            click.echo(f"Nothing was imported from {plain(str(path))}: {plain(why)}", err=True)
            raise SystemExit(1)

    def forget(self) -> None:
        """Archive all memories of the source and print the counts; raise NotFound if there are none."""
        counts, took_s = self.forget_all()
        if not counts.items:
            raise NotFound(
                f'Workspace {self.workspace} has no source "{self.source}". `reverie index list` lists the sources.'
            )
        self._print(counts, took_s)

    def import_path(self, name: str, path: Path, **choices: object) -> tuple["IntakeCounts", float]:
        """Import everything from a path; return the counts and the duration in seconds."""
        with show_progress(f"reading {self.source}", quiet=self.state.json) as progress:
            read = open_reader(name, path, progress, **choices)
            return self._act(lambda intake: intake.take(read))

    def forget_all(self) -> tuple["IntakeCounts", float]:
        """Archive all memories of the source; return the counts and the duration in seconds."""
        return self._act(lambda intake: intake.forget())

    def _act(self, act: Callable[["Intake"], "IntakeCounts"]) -> tuple["IntakeCounts", float]:
        from web.source_import import Intake

        started = time.monotonic()
        with self.state.client_of(self.workspace) as client:
            try:
                counts = act(Intake(client, self.source, sweeps=self.sweeps, dry=self.dry_run))
            except KeyboardInterrupt:
                click.echo("imported memories are kept; run the same command again to continue", err=True)
                raise
        return counts, round(time.monotonic() - started, 1)

    def describe(self, counts: "IntakeCounts", took_s: float) -> dict[str, object]:
        """Return the counts as a JSON object."""
        reasons = {"rejected": counts.rejected, "skipped": counts.skipped}
        details = {
            name: {reason: {"count": entry.count, "first": entry.first} for reason, entry in _most_first(entries)}
            for name, entries in reasons.items()
        }
        outcomes = {name: dict(getattr(counts, name)) for name in ("items", "memories")}
        head = {"workspace": self.workspace, "source": self.source, "dry_run": self.dry_run}
        return {**head, **outcomes, **details, "took_s": took_s}

    def print_rows(self, counts: "IntakeCounts", took_s: float) -> None:
        """Print the counts for a person."""
        rows: list[tuple[str, object]] = [("workspace", self.workspace), ("source", self.source)]
        rows += [("items", _format_counts(counts.items)), ("memories", _format_counts(counts.memories))]
        rows += _name_first_row("rejected", _format_reasons(counts.rejected))
        rows += _name_first_row("skipped", _format_reasons(counts.skipped))
        rows.append(("took", f"{took_s} s{', nothing was written' if self.dry_run else ''}"))
        print_pairs(rows)

    def _print(self, counts: "IntakeCounts", took_s: float) -> None:
        self.state.show(self.describe(counts, took_s), lambda: self.print_rows(counts, took_s))


def _most_first(reasons: Mapping[str, "ReasonCount"]) -> list[tuple[str, "ReasonCount"]]:
    return sorted(reasons.items(), key=lambda item: -item[1].count)


def _format_reasons(reasons: Mapping[str, "ReasonCount"]) -> list[str]:
    """Return the most frequent reasons with their counts and first examples."""
    ordered = _most_first(reasons)
    lines = [
        f"{entry.count} {reason}: {', '.join(entry.first)}{', …' if entry.count > len(entry.first) else ''}"
        for reason, entry in ordered[:SHOWN_REASONS]
    ]
    others = [entry.count for _, entry in ordered[SHOWN_REASONS:]]
    return [*lines, *([f"{sum(others)} for {len(others)} other reasons"] if others else [])]


def _name_first_row(name: str, values: Sequence[str]) -> list[tuple[str, object]]:
    """Return rows with the name in the first row only."""
    return [(name if number == 0 else "", value) for number, value in enumerate(values)]


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
