"""Choose the storage of a data directory: its own files, or a server that several data directories share."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.settings import Settings
from config.workspace_configs import ConfigFiles, WorkspaceConfigs
from pipeline.store.database import Databases, WakeUps, WriterProfile, wake_no_worker
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
    """All stores of a data directory; `values` is only set if processes share no files.

    `accesses` are also tables of people, on another connection: checking a token does not wait for a log entry.
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
        """Close all stores."""
        self.databases.close()
        self.people.close()
        self.accesses.close()
        self.operations.close()


def open_home_values(settings: Settings) -> "HomeValues | None":
    """Return the values of a data directory on a server, with new connections; None without a server."""
    if not settings.store.reveal():
        return None
    from pipeline.store.home_values import HomeValues
    from pipeline.store.postgres.server import Server

    return HomeValues(Server(settings.store.reveal()))


@contextmanager
def opened_config_values(settings: Settings) -> Iterator[WorkspaceConfigs]:
    """Open only the settings of workspaces on a server."""
    from pipeline.store.config_values import ConfigValues
    from pipeline.store.home_values import HomeValues
    from pipeline.store.postgres.server import Server

    with closing(Server(settings.store.reveal())) as server:
        yield ConfigValues(HomeValues(server), settings.store_place)


@contextmanager
def opened_people(settings: Settings) -> Iterator[People]:
    """Open only the people of a data directory."""
    if not settings.store.reveal():
        people = People(PeopleFile(settings.paths.people))
        yield people
        people.close()
        return
    from pipeline.store.postgres.people import PeopleOnServer
    from pipeline.store.postgres.server import Server

    with closing(Server(settings.store.reveal())) as server:
        yield People(PeopleOnServer(server))


@contextmanager
def opened_transcripts(settings: Settings) -> Iterator[Transcripts]:
    """Open only the records of the transcripts that were read."""
    if not settings.store.reveal():
        yield Transcripts(HomeFile(settings.paths.transcripts, TRANSCRIPTS))
        return
    from pipeline.store.postgres.server import Server

    with closing(Server(settings.store.reveal())) as server:
        yield Transcripts(server)


def open_stores(
    settings: Settings,
    profile: WriterProfile,
    redact: Callable[[str], str],
    on_commit: Callable[[str, WakeUps], None] = wake_no_worker,
) -> Stores:
    """Return the stores that settings name; `on_commit` gets the work that commits in workspaces queue."""
    if not settings.store.reveal():
        operations = Operations(OperationsFile(settings.paths.operations), redact)
        peers = Peers(PeersFile(settings.paths.peers))
        people, accesses = (People(PeopleFile(settings.paths.people)) for _ in range(2))
        databases = SqliteDatabases(settings.paths, profile, on_commit, lambda: peers.exists)
        configs = ConfigFiles(settings.paths)
        transcripts = Transcripts(HomeFile(settings.paths.transcripts, TRANSCRIPTS))
        return Stores(databases, operations, peers, people, accesses, configs, transcripts)
    # Only imported if there is a server.
    from pipeline.store.config_values import ConfigValues
    from pipeline.store.home_values import HomeValues
    from pipeline.store.postgres.database import PostgresDatabases
    from pipeline.store.postgres.people import PeopleOnServer
    from pipeline.store.postgres.server import Server

    server = Server(settings.store.reveal())
    people, values, on_server = People(PeopleOnServer(server)), HomeValues(server), Peers(server)
    return Stores(
        PostgresDatabases(server, profile, on_commit, lambda: on_server.exists),
        Operations(server, redact),
        on_server,
        people,
        people,
        ConfigValues(values, settings.store_place),
        Transcripts(server),
        values,
    )
