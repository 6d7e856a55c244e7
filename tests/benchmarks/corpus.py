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
NOUNS = """
    account alert archive backup badge balance banner batch branch browser budget buffer button cache calendar
    channel chart client cluster column commit config contract cookie counter coupon currency customer dashboard
    dataset deadline default delivery design device discount document domain driver email endpoint engine error
    event export factory feature feedback field filter folder form format gateway grant graph group handler
    header history host hotfix icon image import index input invoice issue journal key label latency layout
    ledger license limit listener locale log mailbox manager margin market measure memory menu merge message
    metric migration mirror module monitor network notice number object office option order output owner package
    page panel parser partner password patch path payment pipeline plan plugin policy pool port price printer
    process product profile project protocol proxy query queue quota rate reader receipt record region release
    report request resource response result retry review role route rule runner sample schedule schema scope
    script search secret section server service session setting shard shipment signal site snapshot socket
    source stage statement status storage stream string style subject support switch table tag target task
    tenant test theme thread threshold ticket timeout token tool topic trace tracker traffic trigger tunnel
    update upload user vendor version view volume wallet warehouse webhook widget window worker workflow zone
""".split()  # noqa: SIM905 - readable as words
VERB_PAIRS = ("depends on", "waits for", "blocks", "replaces", "writes to", "reads from", "overrides", "outlives")


def memories(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield request bodies for `count` different memories; the same seed gives the same ones."""
    chance = random.Random(seed)
    for number in range(count):
        clauses = ", ".join(
            f"the {_noun(chance)} {_noun(chance)} {chance.choice(VERB_PAIRS)} the {_noun(chance)} {_noun(chance)}"
            for _ in range(chance.randint(0, 3))
        )
        yield {
            "content": (
                f"{chance.choice(PEOPLE)} {chance.choice(VERBS)} the {chance.choice(PARTS)} in "
                f"src/{chance.choice(FILES)} {chance.choice(REASONS)}; see OPS-{number}. {clauses}".strip()
            ),
            "kind": chance.choice(("fact", "decision", "lesson", "activity")),
            "session_id": f"session-{seed}-{number // 20}",
            "source": "agent",
        }


def _noun(chance: random.Random) -> str:
    # Word frequencies fall off as in real text: few words are everywhere, most are rare.
    return NOUNS[int(chance.paretovariate(0.6)) % len(NOUNS)]
