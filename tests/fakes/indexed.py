"""Installed packages indexed as a project with its history, and what a prompt is told of them."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from config.settings import Settings
from pipeline.features.ingest import sources
from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.usecases import open_reader, source_name
from pipeline.index.encoder import Encoder
from pipeline.kernel.records import HEADER, RULES_HEADER, Memory, Stage
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import Hit, Query
from pipeline.prompt.briefing import BriefingLimits, Readable, compose_briefing
from pipeline.recall.search import search
from tests.fakes.in_process import HeldEncoder, digest_stage, open_web, open_worker

DATA = Path(__file__).resolve().parents[1] / "data" / "prompts"
PACKAGES = tuple(sorted(file.stem for file in DATA.glob("*.json")))
PATIENT_MS = 10_000
NOW = datetime(2026, 6, 1, tzinfo=UTC)
# Fixed dates: a commit's hash, which depends on them, is part of its memory. A day apart: the order matters.
FIRST_COMMIT = NOW - timedelta(days=90)
PEOPLE = ("AUTHOR", "COMMITTER")
AUTHOR = {f"GIT_{one}_{what}": value for one in PEOPLE for what, value in (("NAME", "Ann"), ("EMAIL", "a@b.c"))}


def load_prompts(package: str) -> dict[str, Any]:
    """Return the commits, prompts and questions that are labelled for a package."""
    found: dict[str, Any] = json.loads((DATA / f"{package}.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class PromptLine:
    """A line that a prompt was told: the file that it is of, or the number of its commit, None for neither."""

    memory: Memory
    file: str | None
    commit: int | None
    text: str = ""


class IndexedPackage:
    """A package in a workspace, asked as hooks and recall do."""

    def __init__(self, context: Any, labels: Mapping[str, Any]) -> None:
        self._context = context
        self.labels = labels
        self._commits = {one["message"].partition("\n")[0]: number for number, one in enumerate(labels["commits"])}

    def tell(self, prompt: str) -> list[PromptLine]:
        """Return the lines that a prompt is told, in their order."""
        limits = BriefingLimits(PATIENT_MS, 4000)
        briefing = compose_briefing(Readable(self._context), AgentSession("s"), prompt, limits, NOW)
        lines = [line for line in briefing.text.splitlines() if line not in (HEADER, RULES_HEADER)]
        return [replace(self._line_of(memory), text=line) for memory, line in zip(briefing.shown, lines, strict=True)]

    def ask(self, question: str, k: int) -> list[tuple[PromptLine, Hit]]:
        """Return the results of a question with the file that each is of."""
        found = search(self._context, Query(question, k=k, budget_ms=PATIENT_MS))
        return [(self._line_of(hit.memory), hit) for hit in found.hits]

    def _line_of(self, memory: Memory) -> PromptLine:
        file = None if memory.anchor is None else memory.anchor.path.rpartition(f"{self.labels['package']}-repo/")[2]
        return PromptLine(memory, file, self._commits.get(memory.content.partition("\n")[0]))


@contextmanager
def open_indexed_package(settings: Settings, encoder: Encoder, package: str, folder: Path) -> Iterator[IndexedPackage]:
    """Index a package's files and its labelled commits in a workspace of their own."""
    labels, repository = load_prompts(package), folder / f"{package}-repo"
    build_repository(package, labels["commits"], repository)
    container, worker = open_web(settings, encoder), open_worker(settings)
    worker.encoders = HeldEncoder(encoder)
    try:
        workspace = container.workspace(package)
        for name in ("project", "git"):
            read = open_reader(name, repository, lambda *_: None)({})
            offered = [one for one in read if isinstance(one, Item)]
            sources.take_items(workspace, source_name(name, repository), offered)
        errors: list[str] = []
        digest_stage(worker, Stage.EMBED, worker.stages(package)[Stage.EMBED], errors.append, package)
        assert errors == []
        yield IndexedPackage(container.contexts.get(workspace), labels)
    finally:
        container.close()
        worker.close()


def build_repository(package: str, commits: list[dict[str, Any]], repository: Path) -> None:
    """Make a repository of an installed package's files, in which each commit touches the files that it names."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    leave_out = shutil.ignore_patterns("tests", "__pycache__", "*.so", "*.pyc", "*.pyx", "*.c")
    shutil.copytree(Path(spec.origin).parent, repository / package, ignore=leave_out)
    _git(repository, "init", "-q")
    for day, commit in enumerate(commits):
        for name in commit["files"]:
            with (repository / name).open("a", encoding="utf-8") as file:
                file.write("\n")
        _git(repository, "add", *commit["files"])
        _commit(repository, commit["message"], day)
    _git(repository, "add", ".")
    _commit(repository, "Initial import", len(commits))


def _commit(repository: Path, message: str, day: int) -> None:
    date = (FIRST_COMMIT + timedelta(days=day)).isoformat()
    _git(repository, "commit", "-q", "-m", message, dates={f"GIT_{one}_DATE": date for one in PEOPLE})


def _git(repository: Path, *arguments: str, dates: Mapping[str, str] = MappingProxyType({})) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(repository)} | AUTHOR | dates
    subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True, env=environment)
