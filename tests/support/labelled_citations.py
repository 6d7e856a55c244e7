"""Labelled citations, and how what the code reports about them agrees with their labels (tests/data/README.md)."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.features.citations.history import Finding
from pipeline.features.citations.parser import find_citations
from pipeline.features.citations.resolve import resolve_citations

FOLDER = Path(__file__).parents[1] / "data" / "citations"
BROKEN = "broken"
ROOT = Path(__file__).parents[2]
# The commit of this repository whose state the labels describe.
LABELLED_AT = "84a56a7e09842dd3ace15f7838e26551370d87c5"


@dataclass(frozen=True, slots=True)
class Label:
    """A text, what it cites, and whether that is `broken`, `holds` or is nothing of this repository (`none`)."""

    part: str
    repository: str
    text: str
    citation: str
    label: str


@dataclass
class Agreement:
    """Labels of one part, the broken ones that were reported and missed, and the others that were reported."""

    labels: int = 0
    found: int = 0
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Return which part of the reports is right."""
        reports = self.found + len(self.false)
        return self.found / reports if reports else 1.0

    @property
    def recall(self) -> float:
        """Return which part of the broken citations is reported."""
        broken = self.found + len(self.missed)
        return self.found / broken if broken else 1.0

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(
            self.labels + other.labels,
            self.found + other.found,
            self.missed + other.missed,
            self.false + other.false,
        )


def read_labels(file: Path) -> list[Label]:
    """Read labels, a JSON object per line."""
    return [Label(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def judge_labels(root: Path, labels: Sequence[Label]) -> Agreement:
    """Compare labels with what a check of a checkout reports about their texts, as about memories."""
    findings = resolve_citations(root, [find_citations(label.text) for label in labels])
    agreement = Agreement()
    for label, found in zip(labels, findings, strict=True):
        is_reported = any(finding.is_broken and _is_about(finding, label.citation) for finding in found)
        agreement.labels += 1
        agreement.found += is_reported and label.label == BROKEN
        if is_reported and label.label != BROKEN:
            agreement.false.append(label.citation)
        if not is_reported and label.label == BROKEN:
            agreement.missed.append(label.citation)
    return agreement


def find_missing_history() -> str | None:
    """Return why this checkout cannot show its own history up to the labelled commit, None if it can."""
    if shutil.which("git") is None:
        return "git is not installed"
    if _git("rev-parse", "--is-shallow-repository") != "false":
        return "the clone has no complete history"
    return None if _git("cat-file", "-t", LABELLED_AT) == "commit" else f"the clone lacks commit {LABELLED_AT[:8]}"


def clone_labelled_commit(folder: Path) -> Path:
    """Check out the labelled commit of this repository into a new folder."""
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", "--detach", LABELLED_AT], check=True)
    return folder


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()


def _is_about(finding: Finding, citation: str) -> bool:
    text = finding.citation.text
    return text in citation or citation in text or finding.citation.name in citation
