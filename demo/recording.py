"""Draw docs/terminal.svg, the picture of the README, from the real output of a scratch stack: `make recording`."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from demo.stack import choose_port, stack_environment

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "terminal.svg"
WIDTH = 112
COMPILE_S = 600
REMEMBER = (
    'reverie remember "We moved staging to port 6543 because PgBouncer sits in front of it now" --kind decision',
    'reverie remember "Run the migrations before the deploy, never after it" --kind lesson',
)
RECALL = 'reverie recall "why did the port of staging change"'
PROMPT = "Deploy the branch to staging. Which port does the database use there now?"


def main() -> int:
    """Run the commands and draw what they print."""
    with tempfile.TemporaryDirectory() as folder:
        environment = stack_environment(os.environ, Path(folder) / "home", choose_port(None))
        environment |= {"HOME": folder, "COLUMNS": str(WIDTH)}
        try:
            drawn = record(environment, Path(folder))
        finally:
            run("reverie down", environment, Path(folder))
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


def record(environment: Mapping[str, str], folder: Path) -> str:
    """Return the recording as SVG without references to other servers."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    run("reverie up --daemon", environment, folder)
    for command in REMEMBER:
        show(console, command, run(command, environment, folder))
    await_encoder(environment, folder)
    show(console, RECALL, run(RECALL, environment, folder))
    console.print(Text(f"> {PROMPT}", style="bold cyan"))
    console.print(Text("Reverie adds this to the prompt, before the agent reads it:", style="dim"))
    console.print(Text(ask_hook(environment, folder), style="green"))
    drawn = console.export_svg(title="Reverie", unique_id="reverie")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    return drawn.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")


def show(console: Console, command: str, output: str) -> None:
    """Print a command as it is typed, and its output."""
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
    console.print(Text(f"{output.rstrip()}\n"))


def run(command: str, environment: Mapping[str, str], folder: Path, *, stdin: str = "", check: bool = True) -> str:
    """Return what a command prints on standard output."""
    done = subprocess.run(  # noqa: S603 - commands of this file
        shlex.split(command), input=stdin, env=environment, cwd=folder, capture_output=True, text=True, check=check
    )
    return done.stdout


def await_encoder(environment: Mapping[str, str], folder: Path) -> None:
    """Wait until the encoder is compiled and loaded, so that recall compares meanings too."""
    deadline = time.monotonic() + COMPILE_S
    # Until then it may find nothing, which is exit code 3.
    while '"degraded": false' not in run(f"{RECALL} --json", environment, folder, check=False):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the encoder was not ready after {COMPILE_S} s")
        time.sleep(1)


def ask_hook(environment: Mapping[str, str], folder: Path) -> str:
    """Return what Reverie adds to the prompt."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(folder), "prompt": PROMPT}
    answer = json.loads(run("reverie-hook claude-code", environment, folder, stdin=json.dumps(event)))
    return str(answer["hookSpecificOutput"]["additionalContext"])


if __name__ == "__main__":
    sys.exit(main())
