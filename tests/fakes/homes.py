"""Whole homes of one person's machines, in this process, and what they share."""

from pathlib import Path
from typing import Any

from pipeline.bootstrap.command import CommandContainer
from pipeline.features.sync.exchange import Exchanged
from pipeline.kernel.records import Draft, Memory, Revision
from pipeline.kernel.store import memories
from pipeline.kernel.store.database import Database
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import fast_settings

SHARED = "shared"


class Home:
    """A machine's home."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings = fast_settings(root)
        self.container = CommandContainer(self.settings)
        self.sync = self.container.sync

    def database(self, workspace: str = "default") -> Database:
        """Return a workspace's store, made if need be."""
        return self.container.databases.get(workspace, create=True)

    def say(self, text: str, workspace: str = "default", **fields: Any) -> str:
        """Keep a memory and return its id."""
        return accept(self.database(workspace), Draft(text, **fields)).id

    def edit(self, memory_id: str, workspace: str = "default", **fields: Any) -> Memory:
        """Change a memory."""
        return revise.edit(self.database(workspace), memory_id, Revision(**fields))

    def get(self, memory_id: str, workspace: str = "default") -> Memory | None:
        """Return a memory."""
        with self.database(workspace).read() as db:
            return memories.get(db, memory_id)

    def find(self, text: str, workspace: str = "default") -> str:
        """Return the id of the active memory that says something."""
        with self.database(workspace).read() as db:
            rows = memories.by_seqs(db, memories.all_seqs(db)).values()
        [found] = [one.id for one in rows if one.archived_at is None and one.content == text]
        return found

    def texts(self, workspace: str = "default") -> list[str]:
        """List what is active, by text."""
        with self.database(workspace).read() as db:
            rows = memories.by_seqs(db, memories.all_seqs(db)).values()
        return sorted(one.content for one in rows if one.archived_at is None)

    def exchange(self) -> Exchanged:
        """Exchange by the shared remote; what cannot be is an error."""
        done = self.sync.now([SHARED])[SHARED]
        if isinstance(done, Exception):
            raise done
        return done

    def close(self) -> None:
        """Let go of every file."""
        self.container.close()


def pair(first: Home, *others: Home, url: str) -> None:
    """Let homes share a remote in the circle of the first."""
    code = first.sync.invite()
    first.sync.add(SHARED, url)
    for home in others:
        home.sync.join(code)
        home.sync.add(SHARED, url)


def exchange_until_still(*homes: Home, rounds: int = 8) -> None:
    """Exchange until nobody learns anything."""
    for _ in range(rounds):
        done = [home.exchange() for home in homes]
        if not any(one.applied or one.sent for one in done):
            return
    raise AssertionError("the homes never agree")
