"""Texts of clients that write until a server is killed: each can be told from all others, and works every stage."""

import random

PEOPLE = ("Ada Byron", "Grace Hopper", "Alan Turing", "Barbara Liskov", "Edsger Dijkstra")
FILES = ("src/auth/session.py", "web/cache.ts", "verdict-policy.ts", "db/pool.go")
THINGS = ("the retry budget", "a stale lease", "our login page", "the nightly export", "a slow query")
DEEDS = ("fixed", "measured", "rewrote", "reviewed", "broke")


def make_sentence(rng: random.Random, token: str, long_share: float) -> str:
    """Write a text that names entities and holds one word that no other text holds."""
    text = (
        f"{token}: {rng.choice(PEOPLE)} {rng.choice(DEEDS)} {rng.choice(THINGS)} in {rng.choice(FILES)} "
        f"for ABC-{rng.randrange(40)}, port {8000 + rng.randrange(20)}"
    )
    # Now and then a text longer than the encoder's window, so that a memory has several passages.
    return text + " and then it was quiet again for a while" * 40 if rng.random() < long_share else text
