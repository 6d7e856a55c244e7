"""A corpus of project talk: sentences from parts, with the skewed word frequencies of real notes."""

import random
from collections.abc import Iterator
from typing import Any

PEOPLE = ("Mira", "Jonas", "Ada", "Priya", "Tomasz", "Lena", "Omar", "Sofia")
FILES = ("api/session.py", "core/ledger.ts", "web/cart.tsx", "db/pool.go", "ops/deploy.sh", "lib/retry.rs")
PARTS = ("checkout", "ledger", "importer", "search page", "scheduler", "mail relay", "session cache", "invoice job")
VERBS = ("replaced", "profiled", "reverted", "documented", "split", "cached", "rewrote", "instrumented")
REASONS = (
    "because the old one held a lock for the whole request",
    "after the load test showed timeouts at two hundred users",
    "so that a retry cannot charge a customer twice",
    "since nobody could explain the nightly difference",
    "until the vendor fixes their rate limiter",
    "as the integration tests failed on every third run",
)
WORDS = 6000


def memories(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield request bodies for `count` different memories; the same seed gives the same ones."""
    chance = random.Random(seed)
    for number in range(count):
        filler = " ".join(f"w{int(chance.paretovariate(0.7)) % WORDS}" for _ in range(chance.randint(4, 24)))
        yield {
            "content": (
                f"{chance.choice(PEOPLE)} {chance.choice(VERBS)} the {chance.choice(PARTS)} in "
                f"src/{chance.choice(FILES)} {chance.choice(REASONS)} (ticket OPS-{number}, {filler})."
            ),
            "kind": chance.choice(("fact", "decision", "lesson", "activity")),
            "session_id": f"session-{seed}-{number // 20}",
            "source": "agent",
        }
