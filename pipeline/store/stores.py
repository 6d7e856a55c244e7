"""Where a data directory's stores are: in files of its own, or on a server that several homes share."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.settings import Settings
from config.workspace_configs import ConfigFiles, WorkspaceConfigs
from pipeline.store.database import Databases, WakeUps, WriterProfile, wake_nobody
from pipeline.store.home_file import HomeFile
from pipeline.store.operations import Operations
from pipeline.store.operations_file import OperationsFile
from pipeline.store.peers import Peers
from pipeline.store.peers_file import PeersFile
from pipeline.store.people import People
from pipeline.store.people_file import PeopleFile
from pipeline.store.sqlite import SqliteDatabases
from pipeline.store.transcripts import MIGRATIONS as TRANSCRIPTS, Transcripts

if TYPE_CHECKING:
    from pipeline.store.home_values import HomeValues


@dataclass(frozen=True, slots=True)
class Stores:
    """Every store of a data directory; `values` only where processes share no files.

    `accesses` are the people's too, over a connection of their own: whose token is looked at waits for no line of the
    log.
    """

    databases: Databases
    operations: Operations
    peers: Peers
    people: People
    accesses: People
    configs: WorkspaceConfigs
    transcripts: Transcripts
    values: "HomeValues | None" = None

    def close(self) -> None:
        """Close all of them."""
        self.databases.close()
        self.people.close()
        self.accesses.close()
        self.operations.close()


def open_home_values(settings: Settings) -> "HomeValues | None":
    """Return the values of a data directory on a server, by connections of their own; None for a home of files."""
    if not settings.store.reveal():
        return None
    from pipeline.store.home_values import HomeValues
    from pipeline.store.postgres.server import Server

    return HomeValues(Server(settings.store.reveal()))


@contextmanager
def opened_config_values(settings: Settings) -> Iterator[WorkspaceConfigs]:
    """Open the own settings of a server's workspaces alone."""
    from pipeline.store.config_values import ConfigValues
    from pipeline.store.home_values import HomeValues
    from pipeline.store.postgres.server import Server

    with closing(Server(settings.store.reveal())) as server:
        yield ConfigValues(HomeValues(server), settings.store_place)


@contextmanager
def opened_people(settings: Settings) -> Iterator[People]:
    """Open the people of a data directory alone."""
    if not settings.store.reveal():
        people = People(PeopleFile(settings.paths.people))
        yield people
        people.close()
        return
    from pipeline.store.postgres.people import PeopleOnServer
    from pipeline.store.postgres.server import Server

    with closing(Server(settings.store.reveal())) as server:
        yield People(PeopleOnServer(server))


def open_stores(
    settings: Settings,
    profile: WriterProfile,
    redact: Callable[[str], str],
    on_commit: Callable[[str, WakeUps], None] = wake_nobody,
) -> Stores:
    """Return the stores that settings name; `on_commit` gets what the commits of workspaces queued."""
    if not settings.store.reveal():
        operations = Operations(OperationsFile(settings.paths.operations), redact)
        peers = Peers(PeersFile(settings.paths.peers))
        people, accesses = (People(PeopleFile(settings.paths.people)) for _ in range(2))
        databases, configs = SqliteDatabases(settings.paths, profile, on_commit), ConfigFiles(settings.paths)
        transcripts = Transcripts(HomeFile(settings.paths.transcripts, TRANSCRIPTS))
        return Stores(databases, operations, peers, people, accesses, configs, transcripts)
    # Loaded where there is a server alone.
    from pipeline.store.config_values import ConfigValues
    from pipeline.store.home_values import HomeValues
    from pipeline.store.postgres.database import PostgresDatabases
    from pipeline.store.postgres.people import PeopleOnServer
    from pipeline.store.postgres.server import Server

    server = Server(settings.store.reveal())
    people, values = People(PeopleOnServer(server)), HomeValues(server)
    return Stores(
        PostgresDatabases(server, profile, on_commit),
        Operations(server, redact),
        Peers(server),
        people,
        people,
        ConfigValues(values, settings.store_place),
        Transcripts(server),
        values,
    )
