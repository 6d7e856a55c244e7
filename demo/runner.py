import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from demo.client import Client
from demo.errors import DemoFailed
from demo.report import Asked, one_line, print_asked, print_fact, print_hook
from demo.sample import FAKE_SECRET, SMALL_TALK, Sample, exact_repeats, load_sample, secret_position
from demo.stack import HOST, Stack, choose_port, claimed_home, stack_environment

BATCH = 40
QUEUE_DEADLINE_S = 600.0
WARM_UP_DEADLINE_S = 120.0
POLL_S = 0.25

Receipts = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Options:
    """What to run: the checkout, its demo folder, the stack's command, and whether to stop after the show."""

    root: Path
    home: Path
    command: tuple[str, ...]
    once: bool
    port: int | None = None


def run(options: Options, environ: Mapping[str, str], console: Console) -> int:
    """Run the whole demonstration and return the exit code; raise DemoFailed where it cannot go on."""
    sample = load_sample()
    with claimed_home(options.home) as home:
        port = choose_port(options.port)
        base_url = f"http://{HOST}:{port}"
        with Stack(options.command, options.root, home, stack_environment(environ, home, port)) as stack:
            console.print(Text(f"Starting the stack on {base_url} with its data in {home} …"))
            stack.wait_until_healthy(base_url)
            client = Client(base_url, read_token(home))
            complaints = show(client, stack, sample, options.root, console)
            for complaint in complaints:
                console.print(Text(f"✗ {complaint}", style="bold red"))
            if not options.once:
                serve(stack, base_url, console)
            console.print("Stopping the stack …")
    if not complaints:
        console.print("Everything expected came first.", style="bold green")
    return 1 if complaints else 0


def show(client: Client, stack: Stack, sample: Sample, root: Path, console: Console) -> list[str]:
    """Write, digest, ask; return what did not come out as expected."""
    receipts = post_history(client, stack, sample, console)
    complaints = await_digestion(client, stack, console)
    await_encoder(client, stack, console)
    complaints += ask_recalls(client, sample, console)
    complaints += ask_facts(client, sample, console)
    complaints += ask_hook(client, sample, root, console)
    console.print()
    complaints += report_duplicate(sample, receipts, console)
    complaints += report_redaction(client, sample, receipts, console)
    return complaints


def read_token(home: Path) -> str:
    """Return the bearer token that the server made on its first start."""
    path = home / "token"
    if not path.exists():
        raise DemoFailed(f"the server is up but made no {path}")
    return path.read_text(encoding="utf-8").strip()


def post_history(client: Client, stack: Stack, sample: Sample, console: Console) -> Receipts:
    """Write the history in batches and return a receipt for each memory."""
    receipts: list[dict[str, Any]] = []
    started = time.perf_counter()
    with progress(console) as bar:
        task = bar.add_task("writing", total=len(sample.history), note="")
        for start in range(0, len(sample.history), BATCH):
            stack.check()
            receipts += client.write_batch(sample.history[start : start + BATCH])
            bar.update(task, completed=len(receipts))
    took = time.perf_counter() - started
    sessions = len({memory["session_id"] for memory in sample.history})
    console.print(f"{len(receipts)} memories of {sessions} sessions are on disk after {took * 1000:.0f} ms.")
    return receipts


def await_digestion(client: Client, stack: Stack, console: Console) -> list[str]:
    """Wait until the workers have digested every memory; return a complaint for dead letters."""
    console.print("The workers digest them now; a first run compiles the encoder, which takes a while.")
    end = time.monotonic() + QUEUE_DEADLINE_S
    most = 0
    with progress(console) as bar:
        task = bar.add_task("digesting", total=None, note="")
        while True:
            stack.check()
            queue = client.queue()
            pending = sum(queue["pending"].values())
            most = max(most, pending)
            waiting = ", ".join(f"{stage} {n}" for stage, n in queue["pending"].items() if n)
            bar.update(task, total=most, completed=most - pending, note=waiting)
            if pending == 0:
                break
            if time.monotonic() > end:
                raise DemoFailed(f"still waiting after {QUEUE_DEADLINE_S:.0f} s: {waiting}", stack.tail())
            time.sleep(POLL_S)
    dead = {stage: n for stage, n in queue["dead"].items() if n}
    return [f"dead letters: {', '.join(f'{stage} {n}' for stage, n in dead.items())}"] if dead else []


def await_encoder(client: Client, stack: Stack, console: Console) -> None:
    """Wait until the server has loaded the query encoder, so that the first recall is not a cold one."""
    end = time.monotonic() + WARM_UP_DEADLINE_S
    while client.recall("canal", k=1).get("channels", {}).get("dense", {}).get("state") == "cold":
        stack.check()
        if time.monotonic() > end:
            console.print("The query encoder is still cold; recall goes on without it.", style="yellow")
            return
        time.sleep(POLL_S)


def ask_recalls(client: Client, sample: Sample, console: Console) -> list[str]:
    """Ask every recall; return a complaint for each whose expected memory did not come first."""
    complaints = []
    for number, question in enumerate(sample.recalls, start=1):
        started = time.perf_counter()
        answer = client.recall(question.ask)
        asked = Asked(question, answer, (time.perf_counter() - started) * 1000)
        print_asked(console, number, asked)
        if not asked.came_first:
            complaints.append(f"question {number}: the memory with “{question.expect}” did not come first")
    return complaints


def ask_facts(client: Client, sample: Sample, console: Console) -> list[str]:
    """Read facts now and as of an earlier time; return a complaint for each with another value then."""
    complaints = []
    for asked in sample.facts:
        now, then = (
            client.fact(asked.subject, asked.attribute),
            client.fact(asked.subject, asked.attribute, asked.as_of),
        )
        if not print_fact(console, asked, now, then):
            complaints.append(f"{asked.subject} {asked.attribute} as of {asked.as_of[:10]} is not “{asked.expect}”")
    return complaints


def ask_hook(client: Client, sample: Sample, root: Path, console: Console) -> list[str]:
    """Send the prompt and then small talk through the hook; only the prompt's answer is judged."""
    started = time.perf_counter()
    context = client.prompt_context(sample.hook.ask, root)
    found = print_hook(console, sample.hook, context, (time.perf_counter() - started) * 1000)
    chatter = client.prompt_context(SMALL_TALK, root)
    heard = f"{len(chatter)} characters: {one_line(chatter, 60)}" if chatter else "nothing, as it should"
    console.print(Text(f"   To “{SMALL_TALK}” the hook adds {heard}."))
    return [] if found else [f"hook: no memory with “{sample.hook.expect}” was added to the prompt"]


def report_duplicate(sample: Sample, receipts: Receipts, console: Console) -> list[str]:
    """Print what became of the memory that was written twice; complain unless it was merged."""
    complaints = []
    for position in exact_repeats(sample.history):
        receipt = receipts[position]
        content = one_line(sample.history[position]["content"], 60)
        console.print(Text(f"Written twice: “{content}” → {receipt['outcome']}."))
        if receipt["outcome"] != "merged":
            complaints.append(f"memory {position + 1} repeats an earlier one and was {receipt['outcome']}")
    return complaints


def report_redaction(client: Client, sample: Sample, receipts: Receipts, console: Console) -> list[str]:
    """Print how the memory with a secret is stored; complain if the secret can still be read."""
    position = secret_position(sample.history)
    receipt = receipts[position]
    if receipt["outcome"] == "rejected":
        console.print(Text(f"A memory with a password was refused: {receipt.get('reason', 'no reason')}."))
        return []
    stored = str(client.memory(receipt["id"])["content"])
    if FAKE_SECRET in stored:
        return [f"memory {position + 1} is stored with its password"]
    console.print(Text(f"Redacted on the way in: “{stored}”"))
    return []


def serve(stack: Stack, base_url: str, console: Console) -> None:
    """Keep the stack up until a signal ends it or it stops by itself."""
    console.print()
    console.print(Text(base_url, style="bold").append(" is up. Ctrl-C stops it.", style="none"))
    while True:
        stack.check()
        time.sleep(POLL_S)


def progress(console: Console) -> Progress:
    """Return a progress bar that also reads well once, at its end, in a pipe."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
        console=console,
    )
