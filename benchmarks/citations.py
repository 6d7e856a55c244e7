"""Measure how the check of citations agrees with labels, over this repository's history and those of libraries.

Run by `make bench-citations`, which needs the package index: pip downloads the pinned releases of each library, and
each release becomes a commit. The exit code is 1 if a precision misses its aim. Rules are chosen on the part `dev`;
the part `used` judged them once and then changed them; `judge` shows what unseen text gets.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Aim, Report
from tests.support.labelled_citations import (
    FOLDER,
    Agreement,
    Label,
    clone_labelled_commit,
    find_missing_history,
    judge_labels,
    read_labels,
)
from tests.support.release_histories import commit_releases

OWN = "reverie"
AIM = Aim("precision", 0.95, at_least=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge all labels; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args(arguments)
    report = Report()
    labels = read_labels(FOLDER / "citations.jsonl")
    parts: dict[str, Agreement] = {}
    with tempfile.TemporaryDirectory() as folder:
        for repository in dict.fromkeys(label.repository for label in labels):
            root = _prepare(repository, Path(folder) / repository)
            if root is not None:
                _judge(report, root, [label for label in labels if label.repository == repository], parts)
    report.section("All histories")
    met = [_show(report, part, agreement) for part, agreement in parts.items()]
    met.append(_show(report, "all", sum(parts.values(), Agreement())))
    report.write(options.json)
    return 0 if all(met) else 1


def _prepare(repository: str, folder: Path) -> Path | None:
    """Return a checkout of a labelled repository, None if its history is missing."""
    if repository != OWN:
        commit_releases(FOLDER / f"{repository}.txt", folder)
        return folder
    if (reason := find_missing_history()) is not None:
        print(f"skipped: {reason}")
        return None
    return clone_labelled_commit(folder)


def _judge(report: Report, root: Path, labels: Sequence[Label], parts: dict[str, Agreement]) -> None:
    report.section(f"{labels[0].repository}, {len(labels)} citations")
    for part in dict.fromkeys(label.part for label in labels):
        agreement = judge_labels(root, [label for label in labels if label.part == part])
        parts[part] = parts.get(part, Agreement()) + agreement
        _show(report, part, agreement)
        for kind, citations in (("wrongly reported", agreement.false), ("not reported", agreement.missed)):
            if citations:
                print(f"    {kind}: {', '.join(citations)}")


def _show(report: Report, name: str, agreement: Agreement) -> bool:
    """Show the figures of a part; return whether its precision meets the aim."""
    reports, broken = agreement.found + len(agreement.false), agreement.found + len(agreement.missed)
    figure = f"{agreement.found} of {reports} reports right, {agreement.found} of {broken} broken ones found"
    report.row(f"{name}, {agreement.labels}", figure, (AIM, agreement.precision))
    return AIM.met(agreement.precision)


if __name__ == "__main__":
    sys.exit(main())
