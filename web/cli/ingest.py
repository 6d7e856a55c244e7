"""Taking in what stands elsewhere: projects, histories, documents, and what other tools remember."""

import hashlib
import importlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from web.cli import options
from web.cli.command import Command, Group, State, pass_state
from web.cli.render import format_minute, print_pairs, show_reading, table

if TYPE_CHECKING:
    from web.intake import Intake, Read, Tally

SLUG_CHARS = 48
# As pipeline/ingest/git.py has it, whose import is not for a command line.
COMMITS = 2000
# The most frequent reasons are told, all of them with --json.
SHOWN_REASONS = 10


@dataclass(frozen=True, slots=True)
class Format:
    """What another tool exports: the module of its reader, what it is, and whether each file is a source of its own."""

    module: str
    summary: str
    by_path: bool = False


FORMATS: Mapping[str, Format] = {
    "chatgpt": Format("chatgpt", "Import the conversations of a ChatGPT export: its ZIP, its folder or a file of it."),
    "claude": Format("claude", "Import the conversations of a Claude export: its ZIP, its folder or a file of it."),
    "markdown": Format("markdown", "Import notes in Markdown: a file, or a folder with all below it.", by_path=True),
    "jsonl": Format("jsonl", "Import memories from a file of JSON lines, one a line.", by_path=True),
    "mem0": Format("mem0", "Import the memories of a mem0 export."),
    "pmb": Format("pmb", "Import the memories of a PMB database or export."),
}

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
    from pipeline.ingest.project import read_project

    source = source_name("project", path)
    job = Job(state, state.choice(path, to_write=True).workspace, source, dry_run=dry_run, sweeps=True)
    job.run(lambda progress: lambda known: read_project(path, known, progress))


@index.command("git")
@any_folder
@click.option(
    "--limit", type=click.IntRange(1), default=COMMITS, show_default=True, help="How many commits, the newest first."
)
@click.option("--since", callback=options.moment, metavar="TIME", help="Only commits since then, as 2026-03-01.")
@dry_run
@pass_state
def git(state: State, path: Path, limit: int, since: str | None, *, dry_run: bool) -> None:
    """Take in what the commits of the repository around PATH say."""
    from pipeline.ingest.git import read_git

    workspace = state.choice(path, to_write=True).workspace
    job = Job(state, workspace, source_name("git", _history(path)), dry_run=dry_run)
    job.run(lambda progress: lambda known: read_git(path, known, progress, limit=limit, since=since))


@index.command("pdf")
@any_path
@dry_run
@pass_state
def pdf(state: State, path: Path, *, dry_run: bool) -> None:
    """Take in what stands in the PDF file PATH, or in all PDF files of a folder."""
    from pipeline.ingest.pdf import read_pdf

    job = Job(state, state.workspace, source_name("pdf", path), dry_run=dry_run)
    job.run(lambda progress: lambda known: read_pdf(path, known, progress))


@index.command("list")
@options.limit(50)
@pass_state
def list_sources(state: State, limit: int) -> None:
    """List the sources that memories were taken from."""
    with state.client() as client:
        found = client.listing("/v1/sources", limit)
    if state.json:
        state.print_json(found)
        return
    rows = [[one["source"], one["items"], one["memories"], format_minute(one["at"])] for one in found["items"]]
    table(["source", "items", "memories", "taken"], rows, right=["items", "memories"])


@index.command("forget")
@click.argument("source", callback=options.named)
@dry_run
@pass_state
def forget(state: State, source: str, *, dry_run: bool) -> None:
    """Archive all that was taken from SOURCE, and know nothing of it; taken in again, it comes back."""
    Job(state, state.workspace, source, dry_run=dry_run).forget()


@click.group("import", cls=Group)
def import_() -> None:
    """Import what other tools remember; importing again brings what is new."""


def _importer(name: str, form: Format) -> click.Command:
    @any_path
    @dry_run
    @pass_state
    def take(state: State, path: Path, *, dry_run: bool) -> None:
        read = getattr(importlib.import_module(f"pipeline.ingest.{form.module}"), f"read_{name}")
        source = source_name(name, path) if form.by_path else name
        job = Job(state, state.workspace, source, dry_run=dry_run)
        job.run(lambda progress: lambda known: read(path, known, progress))

    return click.command(name, cls=Command, help=form.summary)(take)


for _name, _form in FORMATS.items():
    import_.add_command(_importer(_name, _form))


def source_name(what: str, path: Path) -> str:
    """Return the name of a source: what it is, and of which folder or file."""
    place = path.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", place.name.lower()).strip("-")[:SLUG_CHARS] or "root"
    return f"{what}:{slug}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:8]}"


def _history(path: Path) -> Path:
    """Return the place that stands for a repository: all its worktrees have one history."""
    from pipeline.identity.files import Unreadable
    from pipeline.identity.git import open_repository, root_of_folder

    root = root_of_folder(path.resolve())
    if root is None:
        return path
    try:
        common = open_repository(root).common_dir
    except Unreadable:
        return root
    return common.parent if common.name == ".git" else common


@dataclass(frozen=True, slots=True)
class Job:
    """One command: where it takes what it reads, and how it tells of it."""

    state: State
    workspace: str
    source: str
    dry_run: bool
    sweeps: bool = False

    def run(self, reader: Callable[[Callable[[int, int], Any]], "Read"]) -> None:
        """Read and take everything, and tell what became of it; `reader` makes one that tells of its progress."""
        with show_reading(f"reading {self.source}", quiet=self.state.json) as progress:
            tally, took_s = self._act(lambda intake: intake.take(reader(progress)))
        self._tell(tally, took_s)

    def forget(self) -> None:
        """Forget everything, and tell what became of it."""
        self._tell(*self._act(lambda intake: intake.forget()))

    def _act(self, act: Callable[["Intake"], "Tally"]) -> tuple["Tally", float]:
        from web.client import Client
        from web.intake import Intake

        began = time.monotonic()
        with Client.from_settings(self.state.settings, self.workspace) as client:
            try:
                tally = act(Intake(client, self.source, sweeps=self.sweeps, dry=self.dry_run))
            except KeyboardInterrupt:
                click.echo("what was taken stays; the same command goes on where this one stopped", err=True)
                raise
        return tally, round(time.monotonic() - began, 1)

    def _tell(self, tally: "Tally", took_s: float) -> None:
        left_out = sorted(tally.skipped.items(), key=lambda one: -one[1].count)
        if self.state.json:
            skipped = {reason: {"count": one.count, "first": one.first} for reason, one in left_out}
            counts = {name: dict(getattr(tally, name)) for name in ("items", "memories", "rejected")}
            head = {"workspace": self.workspace, "source": self.source, "dry_run": self.dry_run}
            self.state.print_json(head | counts | {"skipped": skipped, "took_s": took_s})
            return
        rows: list[tuple[str, object]] = [("workspace", self.workspace), ("source", self.source)]
        rows += [("items", _counted(tally.items)), ("memories", _counted(tally.memories))]
        rows += _under("rejected", [f"{count} {reason}" for reason, count in tally.rejected.most_common(SHOWN_REASONS)])
        told = [
            f"{one.count} {reason}: {', '.join(one.first)}{', …' if one.count > len(one.first) else ''}"
            for reason, one in left_out[:SHOWN_REASONS]
        ]
        others = [one.count for _, one in left_out[SHOWN_REASONS:]]
        rows += _under("left out", [*told, *([f"{sum(others)} for {len(others)} other reasons"] if others else [])])
        rows.append(("took", f"{took_s} s{', and nothing was written' if self.dry_run else ''}"))
        print_pairs(rows)


def _under(name: str, values: Sequence[str]) -> list[tuple[str, object]]:
    """Return rows of which the first alone is named."""
    return [(name if number == 0 else "", value) for number, value in enumerate(values)]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
