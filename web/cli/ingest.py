"""Taking in what stands elsewhere: projects, histories, documents, and what other tools remember."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.errors import NotFound
from pipeline.ingest.fields import COMMITS
from pipeline.services.ingestion import (
    IMPORTS,
    SOURCES,
    open_reader,
    source_name,
)
from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.export import import_bundle, take_notes
from web.cli.render import format_minute, print_pairs, show_reading, table

if TYPE_CHECKING:
    from web.intake import Intake, IntakeCounts, ReasonCount

# The most frequent reasons are printed, all of them with --json.
SHOWN_REASONS = 10

any_path = click.argument("path", type=click.Path(exists=True, path_type=Path))
any_folder = click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
dry_run = click.option("--dry-run", is_flag=True, help="Read and count, and write nothing.")


@click.group(cls=Group)
def index() -> None:
    """Take in a project, a history or documents, and bring them in step when they changed."""


@index.command("project")
@any_folder
@dry_run
@pass_state
def project(state: State, path: Path, *, dry_run: bool) -> None:
    """Take in what the files of the project in PATH say; those that vanished are forgotten."""
    with _into_project(state, path, dry_run=dry_run) as workspace:
        source = source_name("project", path)
        SourceCommand(state, workspace, source, dry_run=dry_run, sweeps=True).take("project", path)


@index.command("git")
@any_folder
@click.option(
    "--limit", type=click.IntRange(1), default=COMMITS, show_default=True, help="How many commits, the newest first."
)
@click.option("--since", callback=options.parse_time, metavar="TIME", help="Only commits since then, as 2026-03-01.")
@dry_run
@pass_state
def git(state: State, path: Path, limit: int, since: str | None, *, dry_run: bool) -> None:
    """Take in what the commits of the repository around PATH say."""
    with _into_project(state, path, dry_run=dry_run) as workspace:
        command = SourceCommand(state, workspace, source_name("git", path), dry_run=dry_run)
        command.take("git", path, limit=limit, since=since)


@index.command("pdf")
@any_path
@dry_run
@pass_state
def pdf(state: State, path: Path, *, dry_run: bool) -> None:
    """Take in what stands in the PDF file PATH, or in all PDF files of a folder."""
    with _into_project(state, Path(), dry_run=dry_run) as workspace:
        SourceCommand(state, workspace, source_name("pdf", path), dry_run=dry_run).take("pdf", path)


@index.command("list")
@options.limit(50)
@pass_state
def list_sources(state: State, limit: int) -> None:
    """List the sources that memories were taken from."""
    found = state.ask(lambda client: client.list_items("/v1/sources", limit))
    rows = [[one["source"], one["items"], one["memories"], format_minute(one["at"])] for one in found["items"]]
    state.show(found, lambda: table(["source", "items", "memories", "taken"], rows, right=["items", "memories"]))


@index.command("forget")
@click.argument("source", callback=options.check_name)
@dry_run
@pass_state
def forget(state: State, source: str, *, dry_run: bool) -> None:
    """Archive all that was taken from SOURCE, and know nothing of it; taken in again, it comes back."""
    SourceCommand(state, state.workspace, source, dry_run=dry_run).forget()


@click.group("import", cls=Group)
def import_() -> None:
    """Import what other tools remember; importing again brings what is new."""


def _make_importer(name: str) -> click.Command:
    @any_path
    @dry_run
    @pass_state
    def take(state: State, path: Path, *, dry_run: bool) -> None:
        if name == "markdown" and path.is_dir() and _was_exported(path):
            if dry_run:
                raise click.BadParameter("notes that were exported are compared one by one: nothing is overwritten")
            take_notes(state, path)
            return
        with _into_project(state, Path(), dry_run=dry_run) as workspace:
            # A folder of notes holds all that there is of it: what is not there any more is forgotten.
            sweeps = name == "markdown" and path.is_dir()
            SourceCommand(state, workspace, source_name(name, path), dry_run=dry_run, sweeps=sweeps).take(name, path)

    return click.command(name, cls=Command, help=f"Import {SOURCES[name].summary}.")(take)


for _name in IMPORTS:
    import_.add_command(_make_importer(_name))


import_.add_command(import_bundle)


def _was_exported(folder: Path) -> bool:
    from pipeline.sync.notes import holds_notes

    return holds_notes(folder)


@contextmanager
def _into_project(state: State, folder: Path, *, dry_run: bool) -> Iterator[str]:
    """Yield the workspace that a folder's project has or gets; afterwards offer to bring what stood elsewhere."""
    workspace = state.choice(folder, to_write=not dry_run).workspace
    is_first = not dry_run and state.makes(workspace)
    yield workspace
    if is_first:
        state.offer_adoption(folder, workspace)


@dataclass(frozen=True, slots=True)
class SourceCommand:
    """One command: where it takes what it reads, and how it tells of it."""

    state: State
    workspace: str
    source: str
    dry_run: bool
    sweeps: bool = False

    def take(self, name: str, path: Path, **choices: object) -> None:
        """Read and take everything of a type of source from a place, and tell what became of it."""
        self._tell(*self.read_in(name, path, **choices))

    def forget(self) -> None:
        """Forget everything, and tell what became of it; raise NotFound where nothing was taken from the source."""
        counts, took_s = self.forget_all()
        if not counts.items:
            raise NotFound(
                f"nothing in {self.workspace} was taken from {self.source}; `reverie index list` lists sources"
            )
        self._tell(counts, took_s)

    def read_in(self, name: str, path: Path, **choices: object) -> tuple["IntakeCounts", float]:
        """Read and take everything; return what became of it, and in how many seconds."""
        with show_reading(f"reading {self.source}", quiet=self.state.json) as progress:
            read = open_reader(name, path, progress, **choices)
            return self._act(lambda intake: intake.take(read))

    def forget_all(self) -> tuple["IntakeCounts", float]:
        """Forget everything; return what became of it, and in how many seconds."""
        return self._act(lambda intake: intake.forget())

    def _act(self, act: Callable[["Intake"], "IntakeCounts"]) -> tuple["IntakeCounts", float]:
        from web.intake import Intake

        began = time.monotonic()
        with self.state.client_of(self.workspace) as client:
            try:
                counts = act(Intake(client, self.source, sweeps=self.sweeps, dry=self.dry_run))
            except KeyboardInterrupt:
                click.echo("what was taken stays; the same command goes on where this one stopped", err=True)
                raise
        return counts, round(time.monotonic() - began, 1)

    def describe(self, counts: "IntakeCounts", took_s: float) -> dict[str, object]:
        """Return what became of a source, for a program."""
        reasons = {"rejected": counts.rejected, "skipped": counts.skipped}
        told = {
            name: {reason: {"count": one.count, "first": one.first} for reason, one in _most_first(found)}
            for name, found in reasons.items()
        }
        outcomes = {name: dict(getattr(counts, name)) for name in ("items", "memories")}
        head = {"workspace": self.workspace, "source": self.source, "dry_run": self.dry_run}
        return {**head, **outcomes, **told, "took_s": took_s}

    def print_rows(self, counts: "IntakeCounts", took_s: float) -> None:
        """Print what became of a source, for a person."""
        rows: list[tuple[str, object]] = [("workspace", self.workspace), ("source", self.source)]
        rows += [("items", _format_counts(counts.items)), ("memories", _format_counts(counts.memories))]
        rows += _name_first_row("rejected", _format_reasons(counts.rejected))
        rows += _name_first_row("left out", _format_reasons(counts.skipped))
        rows.append(("took", f"{took_s} s{', and nothing was written' if self.dry_run else ''}"))
        print_pairs(rows)

    def _tell(self, counts: "IntakeCounts", took_s: float) -> None:
        self.state.show(self.describe(counts, took_s), lambda: self.print_rows(counts, took_s))


def _most_first(found: Mapping[str, "ReasonCount"]) -> list[tuple[str, "ReasonCount"]]:
    return sorted(found.items(), key=lambda one: -one[1].count)


def _format_reasons(found: Mapping[str, "ReasonCount"]) -> list[str]:
    """Return the most frequent reasons, each with how many there are and the first of them."""
    ordered = _most_first(found)
    lines = [
        f"{one.count} {reason}: {', '.join(one.first)}{', …' if one.count > len(one.first) else ''}"
        for reason, one in ordered[:SHOWN_REASONS]
    ]
    others = [one.count for _, one in ordered[SHOWN_REASONS:]]
    return [*lines, *([f"{sum(others)} for {len(others)} other reasons"] if others else [])]


def _name_first_row(name: str, values: Sequence[str]) -> list[tuple[str, object]]:
    """Return rows of which the first alone is named."""
    return [(name if number == 0 else "", value) for number, value in enumerate(values)]


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
