"""Play the ordinary day and print what went wrong, and a table by topic: `make day`."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.integration.ordinary_day.judge import Failure
from tests.integration.ordinary_day.report import describe, play_days, print_report
from tests.integration.ordinary_day.steps import Step
from tests.support.encoders import models_folder, prepare_for

WIDTH = 150


def main() -> int:
    """Return 0 if every expectation was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", type=int, help="last step to play")
    parser.add_argument("--report", type=Path, help="write the report here too")
    parser.add_argument("--keep", action="store_true", help="keep the data directory, and print where it is")
    given = parser.parse_args()
    # The stack is stopped then, too.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    prepare_for({"models"})
    folder = Path(tempfile.mkdtemp(prefix="ordinary-day-"))
    try:
        days = play_days(folder, models_folder(), given.until, _print_step)
    finally:
        if given.keep:
            print(f"kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    text = print_report(days)
    if given.report:
        given.report.write_text(text, encoding="utf-8")
    return 1 if days.failures else 0


def _print_step(step: Step, failures: Sequence[Failure]) -> None:
    begun = f"{time.strftime('%H:%M:%S')} step {step.step} {step.describe()}"[:WIDTH]
    lines = [line for failure in failures for line in describe(failure)[1:]]
    print("\n".join([begun, *lines]), file=sys.stderr, flush=True)


sys.exit(main())
