import re
from collections.abc import Sequence
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from demo.story import Step

INDENT = 4


def one_line(text: str, width: int) -> str:
    """Shorten a text to one line of at most `width` characters."""
    flat = text.rstrip()
    return flat if len(flat) <= width else f"{flat[: width - 1].rstrip()}…"


def pick_lines(step: Step, output: str) -> list[str]:
    """Return the lines of a step's output that are printed."""
    lines = [line for line in output.splitlines() if line.strip() and re.search(step.pick, line)]
    return lines[: step.most]


def describe_step(step: Step) -> str:
    """Return what a person types: a command, or what they or their agent send to the hook."""
    if step.event is None:
        return f"$ {step.command}"
    call = step.event.get("tool_input")
    return f"agent runs: {call['command']}" if isinstance(call, dict) else f"> {step.event['prompt']}"


def print_step(console: Console, step: Step, output: str, missing: Sequence[str]) -> None:
    """Print a step with a mark, the chosen lines of its output, and what is missing in it."""
    mark, style = ("✗", "bold red") if missing else ("✓", "bold green")
    typed = describe_step(step) if output else f"{describe_step(step)}  (no answer)"
    console.print(Text(f"{mark} ", style=style).append(one_line(typed, console.width - 2), style="bold cyan"))
    width = console.width - INDENT
    for shown in pick_lines(step, output):
        for part in [one_line(shown, width)] if step.event is None else wrap(shown, width, subsequent_indent="  "):
            console.print(Text(" " * INDENT).append(part), soft_wrap=True)
    for text in missing:
        console.print(Text(f"{' ' * INDENT}expected: {text}", style="red"))


def print_heading(console: Console, title: str) -> None:
    """Print the title of a section."""
    console.print()
    console.print(Text(title, style="bold underline"))


def print_log_tail(console: Console, tail: str) -> None:
    """Print the end of a log as it is."""
    console.print(Text("The end of the log:", style="bold"))
    for line in tail.splitlines():
        console.print(Text("  │ ", style="dim").append(line), soft_wrap=True)
