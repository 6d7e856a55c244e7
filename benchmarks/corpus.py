"""A corpus of developer memories: sessions on one topic each, words and lengths as skewed as in real notes."""

import calendar
import hashlib
import itertools
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.company import TEAMS, Company, Zipf, company

BEGIN = datetime(2024, 6, 3, 7, tzinfo=UTC)
DAYS = 730
TURNS = (8, 40)
SHORTEST, MEDIAN, LONGEST, SPREAD = 8, 27, 120, 0.6
# A turn speaks mostly of its session's own things.
OWN_WORDS = 0.6
FINGERPRINTED = 300

OPENINGS: dict[str, tuple[str, ...]] = {
    "fact": (
        "{svc} listens on port {port} and reads {key} from {file}",
        "{fn} returns the {n} {n} that {svc2} {v}",
        "the {adj} {n} of {host} holds {num} {n} rows per {n}",
        "{who} owns the {n} {n} in {svc}",
        "{pkg} {ver} is the last release of which the {n} is {adj}",
        "{key} defaults to {num} and only {host} overrides it",
        "every {n} {n} passes through {fn} before {svc2} sees it",
    ),
    "decision": (
        "we decided to {vb} the {n} {n} instead of the {n} {n} because the {n} is too {adj}",
        "{svc} keeps its {n} {n} in {file}; the {n} stays {adj} until {ticket} is closed",
        "{key} is set to {num} on {host} from now on",
        "{who} and {who2} agreed to {vb} {adj} {n}s in {svc} first",
        "{pkg} goes, {pkg2} comes: its {n} is {adj} and its {n} can {vb} a {n}",
        "rejected the {adj} {n} for {svc}, since it would {vb} every {n}",
    ),
    "lesson": (
        "never {vb} the {n} {n} while {svc} is under load",
        "{err} in {fn} means that the {n} was not {v}: {vb} {key} first",
        "the {n} of {svc} looks {adj} but {adv} loses a {n} when {host} restarts",
        "always {vb} the {n} before you {vb} the {adj} {n}, or {svc2} will {vb} twice",
        "after an upgrade of {pkg} the {n} {n} has to be {v} by hand",
    ),
    "activity": (
        "{who} {v} the {adj} {n} in {file}",
        "ran the {n} suite against {svc} on {host}: {num} passed, {small} failed with {err}",
        "merged {ticket} after {who} {v} the {n} {n}",
        "bumped {pkg} from {ver} to {ver2} in {svc}",
        "{adv} {v} {fn} so that the {n} does not {vb} the {n}",
        "moved {fn} out of {file} into {file2}",
        "deployed {svc} {ver} to {host}, the {n} looked {adj}",
        "{v} the {n} {n} of {svc} and {v} its {n}",
        "traced {err} down to {fn}: the {adj} {n} was {v} twice",
    ),
    "code": (
        "`{fn}({n}, {n})` in {file} raises {err} when the {n} is {adj}",
        "{file} has the {n} {n}: it {v} the {n} and calls `{fn}`",
        "`{key} = {num}` in {file} makes {svc} {vb} its {n}",
    ),
    "qa": (
        "Q: why does {svc} {vb} the {n}? A: its {n} is {adj}, see {file}",
        "Q: who can {vb} the {n} {n}? A: {who}, with {key} on {host}",
        "Q: what does {err} mean? A: the {n} of {svc} was {v} while a {n} was {adj}",
    ),
    "milestone": (
        "{svc} {ver} is live on {host} with the {adj} {n} {n}",
        "{ticket} is closed: the {n} {n} is {v} everywhere",
    ),
    "goal": (
        "get the p95 of {svc} below {num} ms before {month}",
        "{vb} every {adj} {n} in {file} until {ticket} is due",
    ),
    "episode": (
        "{who} asked whether {svc} could {vb} the {n} {n} without {pkg}",
        "{who} saw {err} on {host} again and suspects the {adj} {n}",
        "talked with {who} about {ticket}: they want the {n} {adj} and the {n} {v}",
    ),
    "document": (
        "the runbook of {svc} says to {vb} the {n}, then {vb} {key}, then call {who}",
        "the design of the {n} {n} names three parts: a {adj} {n}, a {n} {n} and {fn}",
    ),
}
KINDS = Zipf(("activity", "fact", "decision", "lesson", "episode", "code", "qa", "document", "milestone", "goal"))
MORE = (
    "That {v} the {n} {n} for {svc2}",
    "The {adj} {n} still has to be {v} by {who}",
    "See {ticket}",
    "It took {small} hours because the {n} {n} was {adj}",
    "Before, {fn} {v} a {n} for each {n} and {host} ran out of {n}s",
    "{who2} wants to {vb} the {n} in {month}",
    "The old {n} stays {adj} until nobody needs the {n}",
    "Only {file} knows the {n}, and {adv} so",
    "With {pkg} {ver} the {n} {v} {num} {n}s a second, {pct} percent more",
    "The log of {host} said {err} {small} times",
    "We can {vb} it again by setting {key} to {num}",
    "Nothing else {v} the {n}, as far as {who} knows",
    "The {n} test is {adj} on every {small}th run",
    "So far the {adj} {n} has not come back",
    "Rolled the {n} back {adv}, then {v} the {n} {n} a second time",
)
SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Topic:
    """The few things that one session is about."""

    words: dict[str, Zipf]
    own: dict[str, list[str]]
    began: datetime


def memories(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield request bodies for `count` different memories; the same seed gives the same ones, whatever the count."""
    chance = random.Random(seed)
    seen: set[str] = set()
    for number in itertools.count():
        topic = _topic(chance, number)
        moment = topic.began
        for _ in range(chance.randint(*TURNS)):
            kind = KINDS.draw(chance)
            moment += timedelta(seconds=int(chance.lognormvariate(4.6, 0.9)) + 1)
            content = _content(chance, topic, kind)
            if content in seen:
                continue
            seen.add(content)
            yield {
                "content": content,
                "kind": kind,
                "session_id": f"session-{seed}-{number}",
                "source": "user" if kind == "episode" else "agent",
                "occurred_at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            if len(seen) == count:
                return


def fingerprint(seed: int) -> str:
    """Return a name for what this seed gives; another one whenever the corpus changes."""
    sample = json.dumps(list(memories(FINGERPRINTED, seed)))
    return hashlib.sha256(sample.encode()).hexdigest()[:8]


def _topic(chance: random.Random, number: int) -> Topic:
    world = company()
    own = {
        "svc": world.services.some(chance, 2),
        "file": world.files.some(chance, chance.randint(2, 5)),
        "who": world.people.some(chance, chance.randint(1, 3)),
        "ticket": [f"{chance.choice(TEAMS)}-{100 + number}"],
        "err": world.errors.some(chance, chance.randint(1, 2)),
        "pkg": world.packages.some(chance, 2),
        "key": world.keys.some(chance, chance.randint(1, 3)),
        "fn": world.functions.some(chance, chance.randint(2, 4)),
        "host": world.hosts.some(chance, 2),
        "ver": [_version(chance) for _ in range(3)],
    }
    words = {
        "n": Zipf(world.nouns.some(chance, 22)),
        "verb": Zipf(world.verbs.some(chance, 14)),
        "adj": Zipf(world.adjectives.some(chance, 10)),
    }
    # Sessions stand in no order of time: a history is imported in whatever order its files have.
    return Topic(words, own, BEGIN + timedelta(days=chance.randrange(DAYS), minutes=chance.randrange(600)))


def _version(chance: random.Random) -> str:
    return f"{chance.randint(0, 9)}.{chance.randint(0, 30)}.{chance.randint(0, 12)}"


def _content(chance: random.Random, topic: Topic, kind: str) -> str:
    wanted = min(LONGEST, max(SHORTEST, chance.lognormvariate(math.log(MEDIAN), SPREAD)))
    sentences = [_sentence(chance, topic, chance.choice(OPENINGS[kind]))]
    length = len(sentences[0].split())
    # Another sentence of about ten words where that comes nearer to the wanted length.
    while wanted - length > 4 and length < LONGEST - 20:
        sentences.append(_sentence(chance, topic, chance.choice(MORE)))
        length += len(sentences[-1].split())
    return " ".join(sentences)


def _sentence(chance: random.Random, topic: Topic, template: str) -> str:
    text = SLOT.sub(lambda slot: _fill(chance, topic, slot[1]), template)
    # A name keeps its small letter at the beginning of a sentence.
    first = SLOT.match(template)
    named = first is not None and first[1].rstrip("2") not in WORD_SLOTS
    return (text if named else text[0].upper() + text[1:]) + "."


def _fill(chance: random.Random, topic: Topic, slot: str) -> str:
    name = slot.rstrip("2")
    if name in topic.own:
        options = topic.own[name]
        return options[1] if slot.endswith("2") and len(options) > 1 else chance.choice(options)
    if name in WORD_SLOTS:
        return WORD_SLOTS[name](chance, topic, company())
    return NUMBERS[name](chance)


def _word(section: str, everywhere: str) -> Callable[[random.Random, Topic, Company], str]:
    def draw(chance: random.Random, topic: Topic, world: Company) -> str:
        source = topic.words[section] if chance.random() < OWN_WORDS else getattr(world, everywhere)
        return source.draw(chance)

    return draw


def _verb(part: int) -> Callable[[random.Random, Topic, Company], str]:
    draw = _word("verb", "verbs")
    return lambda chance, topic, world: draw(chance, topic, world).split()[part]


WORD_SLOTS: dict[str, Callable[[random.Random, Topic, Company], str]] = {
    "n": _word("n", "nouns"),
    "adj": _word("adj", "adjectives"),
    "vb": _verb(0),
    "v": _verb(1),
    "adv": lambda chance, _topic, world: world.adverbs.draw(chance),
}
NUMBERS: dict[str, Callable[[random.Random], str]] = {
    "num": lambda chance: str(int(chance.lognormvariate(5, 1.6)) + 1),
    "small": lambda chance: str(chance.randint(2, 9)),
    "pct": lambda chance: str(chance.randint(3, 90)),
    "port": lambda chance: str(chance.randint(1025, 9999)),
    "month": lambda chance: chance.choice(calendar.month_name[1:]),
}
