"""Choose the storage of a data directory: its own files, or a server that several data directories share."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Literal

from config.settings import Settings
from config.workspace_configs import ConfigFiles, WorkspaceConfigs
from pipeline.kernel.store.database import Databases, HomeTables, WakeUps, WriterProfile, wake_no_worker
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.home_values import HomeValues
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.peers import Peers
from pipeline.kernel.store.people import People
from pipeline.kernel.store.sqlite import SqliteDatabases
from pipeline.kernel.store.transcripts import Transcripts


@dataclass(frozen=True, slots=True)
class Stores:
    """All stores of a data directory; `values` is only set if processes share no files."""

    databases: Databases
    operations: Operations
    peers: Peers
    people: People
    configs: WorkspaceConfigs
    transcripts: Transcripts
    homes: tuple[HomeTables, ...]
    values: HomeValues | None = None

    def is_in_use(self, workspace_id: str) -> bool:
        """Return whether a workspace has a store or its own settings."""
        return self.databases.exists(workspace_id) or self.configs.state(workspace_id) is not None

    def close(self) -> None:
        """Close all stores."""
        self.databases.close()
        for home in self.homes:
            home.close()


def open_home(settings: Settings, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> HomeTables:
    """Return the tables of a data directory outside of workspaces; nothing is opened before they are used."""
    if not settings.store.reveal():
        return HomeFile(settings.paths.home, synchronous)
    # Only imported if there is a server.
    from pipeline.kernel.store.postgres.server import Server

    return Server(settings.store.reveal())


@contextmanager
def opened_config_values(settings: Settings) -> Iterator[WorkspaceConfigs]:
    """Open only the settings of workspaces on a server."""
    from pipeline.kernel.store.home_values import ConfigValues

    with closing(open_home(settings)) as server:
        yield ConfigValues(HomeValues(server), settings.store_place)


@contextmanager
def opened_people(settings: Settings) -> Iterator[People]:
    """Open only the people of a data directory."""
    with closing(open_home(settings)) as home:
        yield People(home)


def open_stores(
    settings: Settings,
    profile: WriterProfile,
    redact: Callable[[str], str],
    on_commit: Callable[[str, WakeUps], None] = wake_no_worker,
) -> Stores:
    """Return the stores that settings name; `on_commit` gets the work that commits in workspaces queue."""
    if not settings.store.reveal():
        home, journal = open_home(settings), open_home(settings, "NORMAL")
        peers = Peers(home)
        return Stores(
            SqliteDatabases(settings.paths, profile, on_commit, lambda: peers.exists),
            Operations(journal, redact),
            peers,
            People(home),
            ConfigFiles(settings.paths),
            Transcripts(home),
            (home, journal),
        )
    # Only imported if there is a server.
    from pipeline.kernel.store.home_values import ConfigValues
    from pipeline.kernel.store.postgres.database import PostgresDatabases
    from pipeline.kernel.store.postgres.server import Server

    server = Server(settings.store.reveal())
    values, peers_there = HomeValues(server), Peers(server)
    return Stores(
        PostgresDatabases(server, profile, on_commit, lambda: peers_there.exists),
        Operations(server, redact),
        peers_there,
        People(server),
        ConfigValues(values, settings.store_place),
        Transcripts(server),
        (server,),
        values,
    )
