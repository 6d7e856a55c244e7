"""The first prompt after `reverie down`: how long its host waits, and whether the prompt is answered."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figures import Latency, latency
from benchmarks.homes import share_models
from config.settings import load_settings
from tests.support.stack import DEADLINE_S, Client, free_port, wait_until
from web.hooks.client import START_LOCK
from web.stack.processes import stop_all

PROGRAMS = Path(sys.executable).parent
RUNS = 10
COMPILED_WITHIN_S = 900.0
# A question, the memory that answers it, and a word of the answer.
QUESTIONS = (
    ("which port does staging use?", "The staging server listens on port 6543", "6543"),
    ("qui nous livre les photos ?", "Le studio Brume livre les photos le premier lundi du mois", "Brume"),
    ("wer pflegt die Anmeldung?", "Die Anmeldung wird von Jonte Brammer gepflegt", "Brammer"),
    ("¿dónde está el broker MQTT?", "El broker MQTT está en la máquina olivar", "olivar"),
    ("who reviews the database migrations?", "Imogen reviews all migrations of the database", "Imogen"),
)
OTHERS = (
    "We use pnpm here, npm install breaks the lock file",
    "The weekly report is due on Thursday at noon",
    "Le site est hébergé chez Gandi depuis 2023",
    "Die Sicherungen laufen jede Nacht um zwei Uhr",
    "Los sensores de humedad se calibran en marzo",
    "Decided: no feature flags in the billing service",
    "The invoice numbers come from a table, never from a sequence",
    "Tea is served at four in the small kitchen",
)


@dataclass(frozen=True, slots=True)
class FirstPrompts:
    """The times of first prompts, and how many of them were answered with the right memory."""

    wait: Latency
    answered: int

    def __str__(self) -> str:
        return f"{self.wait}  answered {self.answered} of {self.wait.count}"


def measure_first_prompts(bench: Path, runs: int = RUNS) -> FirstPrompts:
    """Fill a data directory, then send prompts while nothing runs, and stop the stack after each."""
    with TemporaryDirectory(dir=bench) as folder:
        home = Path(folder, "home")
        home.mkdir()
        (home / "models").symlink_to(share_models(bench).resolve(), target_is_directory=True)
        variables = {"REVERIE_HOME": str(home), "REVERIE_PORT": str(free_port()), "REVERIE_WORKSPACE": "default"}
        settings = load_settings(variables)
        environment = os.environ | variables
        try:
            _fill(home, environment)
            stop_all(settings)
            took, answered = [], 0
            for number in range(runs):
                question, _, word = QUESTIONS[number % len(QUESTIONS)]
                # A start soon after the last one is not repeated.
                (home / START_LOCK).unlink(missing_ok=True)
                began = time.perf_counter()
                answer = _ask(question, f"first-{number}", folder, environment)
                took.append((time.perf_counter() - began) * 1000)
                answered += word in answer
                stop_all(settings)
        finally:
            stop_all(settings)
    return FirstPrompts(latency(took), answered)


def _fill(home: Path, environment: Mapping[str, str]) -> None:
    subprocess.run([str(PROGRAMS / "reverie"), "up", "--daemon"], env=environment, check=True, capture_output=True)
    port = int(environment["REVERIE_PORT"])
    wait_until("the token exists", (home / "token").exists, DEADLINE_S)
    client = Client(port, (home / "token").read_text().strip())
    for text in [*(memory for _, memory, _ in QUESTIONS), *OTHERS]:
        client.remember(text)

    def is_digested() -> bool:
        queue: dict[str, Any] = client.call("GET", "/v1/queue").body
        return not any(queue["pending"].values())

    wait_until("the memories are digested", is_digested, COMPILED_WITHIN_S)
    client.close()


def _ask(question: str, session: str, folder: str, environment: Mapping[str, str]) -> str:
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": folder, "prompt": question}
    command = [str(PROGRAMS / "reverie-hook"), "claude-code"]
    process = subprocess.run(
        command, input=json.dumps(event).encode(), env=environment, capture_output=True, check=True
    )
    return process.stdout.decode()
