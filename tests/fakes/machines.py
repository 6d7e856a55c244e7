"""Some machines with one workspace each, whose clocks differ, and the operations that travel between them."""

import json
import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.features.sync.merge import merge
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, Kind, Revision
from pipeline.kernel.store import audit, clock, duplicates, memories, meta, oplog, replicated_records
from pipeline.kernel.store.database import Database, WriterProfile
from pipeline.kernel.store.log_start import list_differences, start_log
from pipeline.kernel.store.oplog import Operation
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from pipeline.write.accept import accept

SCOPES = ("workspace", "user")
DAY_MS = 24 * 3600 * 1000


@dataclass
class Machine:
    """A store under a name of its own, with a clock that is wrong by `skew_ms`."""

    number: int
    file: Path
    skew_ms: int = 0
    database: Database = field(init=False)
    written: set[str] = field(default_factory=set)
    texts: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.open(create=True)
        with self.database.write() as db:
            meta.put(db, meta.NODE, f"{self.number:08x}")

    def open(self, *, create: bool = False) -> None:
        """Open the store, as after a crash."""
        self.database = SqliteDatabase(self.file, WriterProfile("NORMAL", 1000, 5000), create=create)

    def wall_ms(self) -> int:
        """Return the time by this machine's clock."""
        return clock.wall_ms() + self.skew_ms

    def send(self, after: int = 0) -> list[Operation]:
        """Return what this machine tells others, its own and what it heard, as it is sent."""
        start_log(self.database)
        with self.database.read() as db:
            return [
                Operation(one.hlc, one.key, one.fields, one.after, signature="by its author")
                for _, one in oplog.after(db, after, 100_000, SCOPES)
            ]

    def receive(self, operations: list[Operation]) -> None:
        """Take in what others told."""
        refused = merge(self.database, operations, self.wall_ms).put_aside
        assert not refused, refused

    def dump(self) -> str:
        """Return the truth as text that is the same wherever the same is known."""
        with self.database.read() as db:
            keys = replicated_records.list_keys(db)
            found = replicated_records.read(db, keys)
            wrong = list_differences(db)
        assert not wrong, wrong
        return "\n".join(json.dumps([key, found[key]], sort_keys=True) for key in keys)

    def ids(self) -> list[str]:
        """List the memories that are here."""
        with self.database.read() as db:
            return [key.memory_id for key in replicated_records.list_keys(db) if key.kind == replicated_records.MEMORY]

    def said(self) -> set[tuple[str, str]]:
        """Return every text that a memory has or had, by its id."""
        with self.database.read() as db:
            keys = replicated_records.list_keys(db)
            found = replicated_records.read(db, keys)
        return {
            (key.memory_id, text) for key, fields in found.items() if isinstance(text := fields.get("content"), str)
        }

    def purged(self) -> set[str]:
        """Return the memories of which a tombstone stands here."""
        with self.database.read() as db:
            return {row[0] for row in db.execute("SELECT memory_id FROM operation WHERE kind = 'purge'")}


def act(machine: Machine, choice: random.Random) -> None:
    """Have somebody do something on a machine; what cannot be done is not done."""
    acts: list[Callable[[Machine, random.Random], None]] = [_write, _write, _write, _edit, _edit, _fact, _fact]
    acts += [_archive, _restore, _purge, _tie, _unite, _take_apart]
    try:
        choice.choice(acts)(machine, choice)
    except ReverieError:
        # What is impossible here may be possible there.
        return


def _any(machine: Machine, choice: random.Random) -> str:
    known = machine.ids()
    return choice.choice(known) if known else "nothing"


def _write(machine: Machine, choice: random.Random) -> None:
    tags = tuple(choice.sample(["red", "green", "blue"], choice.randrange(3)))
    receipt = accept(machine.database, Draft(f"the lamp number {choice.randrange(5)} hangs in the hall", tags=tags))
    machine.written.add(receipt.id)


def _edit(machine: Machine, choice: random.Random) -> None:
    revision = choice.choice(
        [
            Revision(content=f"the lamp number {choice.randrange(5)} hangs in the hall"),
            Revision(content=f"the chair number {choice.randrange(1000)} stands in the hall"),
            Revision(tags=tuple(choice.sample(["red", "green", "blue", "white"], 2))),
            Revision(pinned=choice.random() < 0.5),
            Revision(importance=choice.randrange(10) / 10, metadata={"of": choice.randrange(3)}),
        ]
    )
    edited = revise.edit(machine.database, _any(machine, choice), revision)
    machine.texts.add((edited.id, edited.content))


def _fact(machine: Machine, choice: random.Random) -> None:
    details = {"subject": "hall", "attribute": choice.choice(["colour", "door"]), "value": choice.randrange(4)}
    day = f"2026-01-{choice.randrange(1, 9):02d}T00:00:00.000Z"
    draft = Draft(f"hall {details['attribute']}", kind=Kind.KEYED_FACT, details=details, occurred_at=day)
    machine.written.add(accept(machine.database, draft).id)


def _archive(machine: Machine, choice: random.Random) -> None:
    revise.archive(machine.database, _any(machine, choice))


def _restore(machine: Machine, choice: random.Random) -> None:
    revise.restore(machine.database, _any(machine, choice))


def _purge(machine: Machine, choice: random.Random) -> None:
    if choice.random() < 0.4:
        revise.purge(machine.database, _any(machine, choice))


def _tie(machine: Machine, choice: random.Random) -> None:
    draft = EdgeDraft(choice.choice([EdgeKind.SUPPORTS, EdgeKind.CONTRADICTS]), _any(machine, choice))
    revise.add_edge(machine.database, _any(machine, choice), draft)


def _unite(machine: Machine, choice: random.Random) -> None:
    """Merge two memories, as the stage does that finds repetitions."""
    with machine.database.write() as db:
        known = memories.by_ids(db, [_any(machine, choice), _any(machine, choice)]).values()
        active = [memory for memory in known if memory.archived_at is None and memory.key is None]
        if len(active) == 2 and active[0].scope == active[1].scope:
            duplicates.merge(db, *active, duplicates.DEDUP, utc_now(), {})


def _take_apart(machine: Machine, choice: random.Random) -> None:
    """Undo a merge, as a person does who sees that they differ."""
    with machine.database.write() as db:
        memory = memories.get(db, _any(machine, choice))
        merge_entry = None if memory is None else audit.merge_of(db, memory.id)
        if memory is not None and merge_entry is not None and memory.archived_at is not None:
            revise.undo_merge(db, merge_entry, memory, utc_now())


def exchange_all(machines: list[Machine], rounds: int = 8) -> int:
    """Let every machine tell every other what it knows until nobody learns anything; return in which round that was."""
    for number in range(1, rounds + 1):
        learnt = 0
        for one in machines:
            for other in machines:
                if other is not one:
                    known = merge(other.database, one.send(), other.wall_ms)
                    assert not known.put_aside, known.put_aside
                    learnt += known.applied
        if not learnt:
            return number
    raise AssertionError("the machines never agree")


def play(folder: Path, seed: int, steps: int) -> list[Machine]:
    """Play one history: people write on some machines, whose words arrive late, twice, in any order, or never yet."""
    choice = random.Random(seed)
    machines = [
        Machine(number, folder / f"{number}" / "events.sqlite", choice.randrange(-DAY_MS, DAY_MS))
        for number in range(choice.randrange(2, 6))
    ]
    for machine in machines:
        _skew(machine)
    for _ in range(steps):
        machine = choice.choice(machines)
        if choice.random() < 0.7:
            act(machine, choice)
        elif choice.random() < 0.1:
            machine.database.close()
            machine.open()
        else:
            told = choice.choice(machines).send()
            choice.shuffle(told)
            machine.receive([one for one in told for _ in range(choice.choice([0, 1, 1, 1, 2]))])
    return machines


def _skew(machine: Machine) -> None:
    with machine.database.write() as db:
        meta.put(db, meta.CLOCK, f"{machine.wall_ms():014d}-000000")


def list_lost(machines: list[Machine]) -> set[object]:
    """Return what somebody wrote, nobody purged, and the first machine does not have: memories and texts."""
    first = machines[0]
    purged = first.purged()
    written = set().union(*(machine.written for machine in machines))
    texts = set().union(*(machine.texts for machine in machines))
    return (written - {*first.ids(), *purged}) | ({one for one in texts if one[0] not in purged} - first.said())


def close_all(machines: list[Machine]) -> None:
    """Let go of every store."""
    for machine in machines:
        with closing(machine.database):
            pass
