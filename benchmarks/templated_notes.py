"""A corpus of templated notes: few sentence forms with random slots, so that most memories have many similar ones.

Agents that log the same event again and again write such notes. They are the hardest case for the comparison of pairs.
"""

import itertools
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.company import Company, company

BEGIN = datetime(2025, 2, 3, 8, tzinfo=UTC)
NOTES_PER_SESSION = 20
SLOT = re.compile(r"\{(\w+)\}")

TEMPLATES: tuple[tuple[str, str], ...] = (
    ("fact", "The {service} service listens on port {number} on {host}."),
    ("fact", "{service} stores its {noun} in {file} and reads {key} at startup."),
    ("fact", "The timeout of {service} for {noun} requests is {number} seconds."),
    ("fact", "The default value of {key} is {number} in the {environment} environment."),
    ("fact", "{person} owns the {noun} module of {service}."),
    ("fact", "{service} depends on {package} {version} for its {noun} handling."),
    ("fact", "The {noun} table of {service} has about {number} rows on {host}."),
    ("fact", "The CI job for {service} takes {small} minutes on {host}."),
    ("fact", "{function} in {file} is the only caller of the {noun} API."),
    ("fact", "The primary region of {service} is {host}, the fallback is {host}."),
    ("decision", "We decided to use {package} for {noun} in {service}."),
    ("decision", "We chose {package} over {package} for the {noun} layer because it is {adjective}."),
    ("decision", "From now on, {key} must be set to {number} on {host}."),
    ("decision", "The team agreed that {person} reviews every change to {file}."),
    ("decision", "Feature flags for {noun} are stored in {file} instead of {file}."),
    ("decision", "We will not upgrade {package} to {version} before {month}."),
    ("decision", "All {noun} names in {service} start with {prefix}_."),
    ("lesson", "Never restart {service} while a {noun} migration is running."),
    ("lesson", "Always run {function} before deploying {service} to {environment}."),
    ("lesson", "{error} in {function} means that {key} is missing in {file}."),
    ("lesson", "Do not raise {key} above {number}, or {service} loses its {noun}."),
    ("lesson", "When {host} is slow, check the {noun} queue of {service} first."),
    ("lesson", "Tests of {service} fail with {error} if {key} is not exported."),
    ("activity", "{person} fixed {error} in {file} by changing {function}."),
    ("activity", "Deployed {service} {version} to {environment} at {hour}:{minute}."),
    ("activity", "Upgraded {package} from {version} to {version} in {service}."),
    ("activity", "Ran {number} tests of {service}: {small} failed with {error}."),
    ("activity", "Renamed {function} to {function} in {file}."),
    ("activity", "Opened ticket {ticket} about the {adjective} {noun} of {service}."),
    ("activity", "Closed ticket {ticket}: {person} removed the {noun} from {file}."),
    ("activity", "Moved the {noun} of {service} from {host} to {host}."),
    ("activity", "The nightly backup of {service} finished in {small} minutes with {number} files."),
    ("episode", "{person} asked why {service} returns {error} for {noun} requests."),
    ("episode", "{person} reported that {host} was down for {small} minutes in {month}."),
    ("episode", "{person} prefers {package} over {package} for {noun} scripts."),
    ("code", "`{function}({noun}, {number})` in {file} raises {error}."),
    ("code", "`{key} = {number}` in {file} enables the {noun} cache of {service}."),
    ("milestone", "{service} {version} is live in {environment} with {number} users."),
    ("goal", "Reduce the p95 latency of {service} below {number} ms before {month}."),
    ("qa", "Q: which port does {service} use on {host}? A: {number}, set by {key} in {file}."),
)
CHOICES = {
    "environment": ("production", "staging", "development", "testing"),
    "month": ("March", "April", "June", "September", "November"),
    "prefix": ("x", "app", "svc", "core", "int", "tmp"),
}
# The slots that are filled with the company's words, and the names of their lists.
WORLD_SLOTS = {
    "service": "services",
    "host": "hosts",
    "file": "files",
    "key": "keys",
    "person": "people",
    "package": "packages",
    "error": "errors",
    "function": "functions",
    "noun": "nouns",
    "adjective": "adjectives",
}
# The first and last number of a slot, and the number of its digits at least.
NUMBERS = {"number": (10, 9999, 1), "small": (2, 59, 1), "hour": (0, 23, 2), "minute": (0, 59, 2)}


def templated_notes(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield request bodies for `count` different notes; a seed gives the same notes, for any count."""
    chance, world = random.Random(seed), company()
    seen: set[str] = set()
    for number in itertools.count():
        if len(seen) == count:
            return
        kind, template = chance.choice(TEMPLATES)
        content = SLOT.sub(lambda slot: _fill_slot(chance, world, slot[1]), template)
        if content in seen:
            continue
        seen.add(content)
        session = number // NOTES_PER_SESSION
        moment = BEGIN + timedelta(minutes=5 * number)
        yield {
            "content": content,
            "kind": kind,
            "session_id": f"templates-{seed}-{session}",
            "source": "user" if kind == "episode" else "agent",
            "occurred_at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


def _fill_slot(chance: random.Random, world: Company, slot: str) -> str:
    if slot in WORLD_SLOTS:
        return str(getattr(world, WORLD_SLOTS[slot]).draw(chance))
    if slot in CHOICES:
        return chance.choice(CHOICES[slot])
    if slot == "version":
        return f"{chance.randint(0, 9)}.{chance.randint(0, 20)}.{chance.randint(0, 9)}"
    if slot == "ticket":
        return f"OPS-{chance.randint(100, 9999)}"
    first, last, width = NUMBERS[slot]
    return f"{chance.randint(first, last):0{width}}"
