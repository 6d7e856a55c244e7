"""What a run of tests left out, kept beside pytest's cache, and one line about all of them."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

KEY = "reverie/skipped"
CACHES = Path(".pytest_cache")


def note_skips(config: pytest.Config) -> None:
    """Keep how many tests were skipped for which reason in the cache of this run, if it has one."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    # A process that runs a part of the tests has none; all reports come to the process that started it.
    if reporter is None or not config.pluginmanager.has_plugin("cacheprovider"):
        return
    reports = reporter.stats.get("skipped", [])
    config.cache.set(KEY, Counter(_reason(report.longrepr) for report in reports))


def _reason(skipped: Any) -> str:
    # The file, the line and what was said.
    text = skipped[2] if isinstance(skipped, tuple) else str(skipped)
    return text.removeprefix("Skipped: ")


def summarize(caches: Path) -> str:
    """Render what the last run of each kind left out in one line."""
    kinds = []
    for file in sorted(caches.glob(f"*/v/{KEY}")):
        reasons = json.loads(file.read_text())
        if reasons:
            kind = file.relative_to(caches).parts[0]
            kinds.append(f"{kind}: " + ", ".join(f"{count} × {reason}" for reason, count in reasons.items()))
    return "skipped: " + ("; ".join(kinds) or "nothing")


if __name__ == "__main__":
    sys.stdout.write(summarize(CACHES) + "\n")
