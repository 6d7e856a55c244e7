import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from demo.errors import DemoFailed
from demo.report import print_log_tail
from demo.runner import PIPE_WIDTH, Options, run
from demo.stack import honcho_command

ROOT = Path(__file__).resolve().parent.parent
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration from the command line and return its exit code."""
    args = _parser().parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    home = ROOT / ".demo"
    options = Options(ROOT, home, tuple(honcho_command(home)), args.once, args.open, args.port)
    try:
        return run(options, os.environ, console)
    except KeyboardInterrupt:
        console.print("Stopped.")
        return INTERRUPTED if args.once else 0
    except DemoFailed as failure:
        console.print(Text(f"✗ The demo failed: {failure}", style="bold red"), soft_wrap=True)
        if failure.log_tail:
            print_log_tail(console, failure.log_tail)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description="Show Reverie on a developer's week.")
    parser.add_argument("--once", action="store_true", help="stop after the last section; exit 1 if an answer is wrong")
    parser.add_argument("--open", action="store_true", help="open the dashboard after the last section")
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        default=os.environ.get("REVERIE_PORT"),
        help="port of the server (default: REVERIE_PORT, 7077 or the next)",
    )
    return parser


def _interrupt(*_: object) -> None:
    # The stack needs a moment to stop in order; a second signal must not cut that short.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
