import json
import re
import select
import sys
import time
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from demo.client import Client
from demo.errors import DemoFailed
from demo.project import make_project
from demo.report import INDENT, describe_step, print_heading, print_step
from demo.sample import FAKE_SECRET, Sample, exact_repeats, load_sample, secret_position
from demo.stack import HOST, Stack, choose_port, claimed_home, stack_environment
from demo.story import HOOK, LESSON_PROMPT, OUTCOMES, SESSION, Step, list_sections
from demo.terminal import Terminal
from demo.transcripts import write_transcript

QUEUE_DEADLINE_S = 600.0
WARM_UP_DEADLINE_S = 120.0
POLL_S = 0.25
PIPE_WIDTH = 110
# Ample for a slow machine, on which an answer would be incomplete.
AMPLE = {"REVERIE_RECALL_BUDGET_MS": "2000", "REVERIE_HOOK_BUDGET_MS": "2000"}
GOODBYE = "Now with your own history: `reverie setup`"

Receipts = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Options:
    """What to run: the checkout, its demo folder, the stack's command, when to stop, and whether to open a browser."""

    root: Path
    home: Path
    command: tuple[str, ...]
    once: bool
    opens: bool = False
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Show:
    """The running stack, its clients, and the sample that they show."""

    stack: Stack
    client: Client
    terminal: Terminal
    sample: Sample
    console: Console


def run(options: Options, environ: Mapping[str, str], console: Console) -> int:
    """Run the whole demonstration and return the exit code; raise DemoFailed where it cannot go on."""
    sample = load_sample(datetime.now(UTC))
    with claimed_home(options.home) as home:
        port = choose_port(options.port)
        base_url = f"http://{HOST}:{port}"
        environment = developer_environment(environ, home, port)
        with Stack(options.command, options.root, home, environment) as stack:
            console.print(Text(f"Starting Reverie on {base_url} with its data in {home} …"))
            stack.wait_until_healthy(base_url)
            terminal = Terminal(environment, make_project(home / "larder-api", sample.sessions))
            workspace = terminal.run("reverie workspace current").strip()
            client = Client(base_url, read_token(home), workspace)
            show = Show(stack, client, terminal, sample, console)
            complaints = prepare(show) + play(show)
            for complaint in complaints:
                console.print(Text(f"✗ {complaint}", style="bold red"))
            if not complaints:
                console.print("\nEverything expected came.", style="bold green")
            console.print(f"The map: {base_url}/w/{workspace}/map (`reverie dashboard` opens it, signed in)")
            console.print(GOODBYE, style="bold")
            if not options.once:
                serve(show, opens=options.opens)
            console.print("Stopping Reverie …")
    return 1 if complaints else 0


def developer_environment(environ: Mapping[str, str], home: Path, port: int) -> dict[str, str]:
    """Return the environment of a developer without other data: the stack and all commands use it."""
    kept = {name: value for name, value in environ.items() if name != "CLAUDE_CONFIG_DIR"}
    user = home / "user"
    user.mkdir()
    return stack_environment(kept, home, port) | AMPLE | {"HOME": str(user), "COLUMNS": str(PIPE_WIDTH - INDENT)}


def prepare(show: Show) -> list[str]:
    """Store the week as its agents would have, and wait until it is processed; return complaints."""
    for session in show.sample.sessions:
        write_transcript(show.stack.home / "user", show.terminal.folder, session)
    print_heading(show.console, "A week of a developer")
    receipts = show.client.write_batch(show.sample.memories)
    show.console.print(f"{len(receipts)} memories are stored, as agents store them with the tool `remember`.")
    complaints = report_duplicates(show, receipts) + report_redaction(show, receipts)
    complaints += play_step(show, import_step(show.sample))
    complaints += await_digestion(show)
    await_encoder(show)
    record_outcomes(show)
    return complaints


def import_step(sample: Sample) -> Step:
    """Return the import of the sample's sessions, which must count each session, message and action."""
    kinds = [kind for session in sample.sessions for kind, *_ in session.entries]
    messages = sum(kind in ("user", "agent") for kind in kinds)
    counts = (len(sample.sessions), messages, len(kinds) - messages)
    return Step("reverie import sessions --agent claude-code", tuple(f" {count} " for count in counts), most=2)


def play(show: Show) -> list[str]:
    """Show every section; return a complaint for each step with another answer than expected."""
    complaints = []
    for section in list_sections(show.sample.monday):
        print_heading(show.console, section.title)
        for step in section.steps:
            show.stack.check()
            complaints += play_step(show, step)
    return complaints


def play_step(show: Show, step: Step) -> list[str]:
    """Run a step and print it; return a complaint if a text is missing, or if a silent answer is not empty."""
    if step.event is None:
        output = show.terminal.run(step.command)
    else:
        output = show.terminal.send_event(step.command, step.event, SESSION)
    judged = first_memory(show.terminal.run(f"{step.command} --json")) if step.is_question else output
    missing = [text for text in step.expect if text.casefold() not in judged.casefold()]
    if not step.expect and output:
        missing = ["(no answer)"]
    print_step(show.console, step, output, missing)
    return [f"{describe_step(step)}: expected “{text}”" for text in missing]


def first_memory(answer: str) -> str:
    """Return the text of the first memory of a recall's JSON."""
    results = json.loads(answer)["results"]
    return str(results[0]["content"]) if results else ""


def record_outcomes(show: Show) -> None:
    """Let agents see the lessons about a prompt, and report whether they followed them."""
    event = {"hook_event_name": "UserPromptSubmit", "prompt": LESSON_PROMPT}
    for session_id, outcome in OUTCOMES.items():
        context = show.terminal.send_event(HOOK, event, session_id)
        for surface in re.findall(r"\(surface (\w+)\)", context):
            show.terminal.run(f"reverie lessons outcome {surface} {outcome}")


def read_token(home: Path) -> str:
    """Return the bearer token that the server made on its first start."""
    path = home / "token"
    if not path.exists():
        raise DemoFailed(f"the server is up but made no {path}")
    return path.read_text(encoding="utf-8").strip()


def await_digestion(show: Show) -> list[str]:
    """Wait until the workers have processed everything; return a complaint for dead letters."""
    show.console.print("Workers embed and connect them; the first time, they compile the encoder.")
    end = time.monotonic() + QUEUE_DEADLINE_S
    most = 0
    with progress(show.console) as bar:
        task = bar.add_task("processing", total=None)
        while True:
            show.stack.check()
            queue = show.client.queue()
            pending = sum(queue["pending"].values())
            most = max(most, pending)
            bar.update(task, total=most, completed=most - pending)
            if pending == 0:
                break
            if time.monotonic() > end:
                raise DemoFailed(f"{pending} items are pending after {QUEUE_DEADLINE_S:.0f} s", show.stack.tail())
            time.sleep(POLL_S)
    dead = {stage: n for stage, n in queue["dead"].items() if n}
    return [f"dead letters: {', '.join(f'{stage} {n}' for stage, n in dead.items())}"] if dead else []


def await_encoder(show: Show) -> None:
    """Wait until the server has loaded the query encoder: a hook does not wait for it."""
    end = time.monotonic() + WARM_UP_DEADLINE_S
    while show.client.is_encoder_cold():
        show.stack.check()
        if time.monotonic() > end:
            show.console.print("The query encoder is still cold; recall goes on without it.", style="yellow")
            return
        time.sleep(POLL_S)


def report_duplicates(show: Show, receipts: Receipts) -> list[str]:
    """Return a complaint for each memory that was stored twice and not merged."""
    memories = show.sample.memories
    repeats = [receipts[position]["outcome"] for position in exact_repeats(memories)]
    show.console.print(f"A memory that was stored twice: {', '.join(repeats)}.")
    return [f"a repeated memory was {outcome}, not merged" for outcome in repeats if outcome != "merged"]


def report_redaction(show: Show, receipts: Receipts) -> list[str]:
    """Print how the memory with a secret is stored; complain if the secret can still be read."""
    receipt = receipts[secret_position(show.sample.memories)]
    stored = str(show.client.memory(receipt["id"])["content"])
    show.console.print(Text(f"A memory with a password: “{stored}”"))
    return ["a memory is stored with its password"] if FAKE_SECRET in stored else []


def serve(show: Show, *, opens: bool) -> None:
    """Keep the stack up until a signal ends it or it stops; open the dashboard on request."""
    reads = sys.stdin.isatty()
    if opens:
        open_dashboard(show)
    elif reads:
        show.console.print("Press Enter to open the dashboard.", style="bold")
    show.console.print(Text(show.client.base_url, style="bold").append(" is up. Ctrl-C stops it.", style="none"))
    while True:
        show.stack.check()
        if not reads:
            time.sleep(POLL_S)
        elif select.select([sys.stdin], [], [], POLL_S)[0]:
            # The end of the input is no request.
            reads = bool(sys.stdin.readline())
            if reads:
                open_dashboard(show)


def open_dashboard(show: Show) -> None:
    """Open the dashboard in the person's own browser with a link that works once; print it if there is none."""
    link = show.terminal.run("reverie dashboard --print-url").strip()
    if not webbrowser.open(link):
        show.console.print(Text(link), soft_wrap=True)


def progress(console: Console) -> Progress:
    """Return a progress bar that also reads well once, at its end, in a pipe."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
