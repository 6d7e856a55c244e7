"""A server of PostgreSQL on a free port of this machine, with a folder of its own."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.support.stack import HOST, free_port, wait_until

# Debian keeps a version's programs out of the way of another's.
DEBIAN = Path("/usr/lib/postgresql")
ADMIN = "postgres"
# Reverie's own role may make no other, and passes no policy by.
ROLE = "reverie"
FOLLOWER = "follower"
_numbers = itertools.count(1)


def find_programs() -> Path | None:
    """Return the folder of the server's programs, None on a machine without them."""
    found = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parent.parent.name))
    program = str(found[-1]) if found else shutil.which("initdb")
    return None if program is None else Path(program).resolve().parent


class PostgresServer:
    """A server, and the `url` of an empty database in it that belongs to a role like Reverie's own."""

    def __init__(self, programs: Path, data: Path, log: Path, settings: Mapping[str, str]) -> None:
        self._programs, self._data, self._log = programs, data, log
        self._settings = [f"--{name}={value}" for name, value in settings.items()]
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self.url = ""

    @property
    def pid(self) -> int:
        """Return the id of the postmaster."""
        assert self._process is not None
        return self._process.pid

    @property
    def admin_url(self) -> str:
        """Return where the superuser comes in."""
        return f"postgresql://{ADMIN}@{HOST}:{self._port}/postgres"

    def create(self) -> None:
        """Make an empty cluster that trusts everybody on this machine, and the role."""
        kind = ("--encoding=UTF8", "--locale=C.UTF-8", "--data-checksums")
        self._run("initdb", "--auth=trust", f"--username={ADMIN}", *kind, "--no-sync")
        self.start()
        self.do(f"CREATE ROLE {ROLE} LOGIN")
        self.url = self.make_database()

    def follow(self, leader: "PostgresServer") -> None:
        """Make it a copy of another that follows it, and have that one wait with each commit until it is here too."""
        # What a server must still have to come back behind another.
        leader.do("ALTER SYSTEM SET wal_keep_size = '256MB'")
        source = f"{leader.admin_url}?application_name={FOLLOWER}"
        self._run("pg_basebackup", f"--dbname={source}", "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        self.start()
        self.url = leader.url.replace(f":{leader._port}/", f":{self._port}/")
        leader.wait_for_follower()

    def wait_for_follower(self) -> None:
        """Acknowledge no commit from now on that its follower has not written too."""
        self.do(f"ALTER SYSTEM SET synchronous_standby_names = '{FOLLOWER}'")
        self.do("SELECT pg_reload_conf()")
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until("its follower is in step", lambda: self.ask(query) == 1)

    def promote(self) -> None:
        """Let it lead instead of following; it waits for no follower of its own."""
        assert self.ask("SELECT pg_promote()") is True

    def return_behind(self, leader: "PostgresServer") -> None:
        """Follow the one that took over, after it was killed: what only it has is undone."""
        # What took over says so in the file that is compared.
        leader.do("CHECKPOINT")
        source = f"{leader.admin_url}?application_name={FOLLOWER}"
        self._run("pg_rewind", f"--source-server={source}", "--write-recovery-conf", "--no-sync")
        self.start()

    def start(self) -> None:
        """Start it where it was, and wait until it answers."""
        self._port = self._port or free_port()
        program = str(self._programs / "postgres")
        options = ("-h", HOST, "-p", str(self._port), "-k", str(self._data.parent))
        with self._log.open("ab") as log:
            command = [program, "-D", str(self._data), *options, *self._settings]
            self._process = subprocess.Popen(command, **_owner(), stdout=log, stderr=log)
        wait_until("the server of PostgreSQL answers", self._answers)

    def stop(self, by: signal.Signals = signal.SIGINT) -> None:
        """End it: in order by SIGINT, whatever clients do, or in the middle of everything by SIGKILL."""
        assert self._process is not None
        self._process.send_signal(by)
        self._process.wait()

    def kill(self) -> None:
        """End it in the middle of everything; until its processes have noticed, none can take its place."""
        if self._process is None or self._process.poll() is not None:
            return
        family = psutil.Process(self._process.pid).children(recursive=True)
        self.stop(signal.SIGKILL)
        psutil.wait_procs(family)

    def close(self) -> None:
        """End it if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.stop()

    def make_database(self, template: str = "template0", encoding: str = "UTF8") -> str:
        """Make another database of the role's, empty or like one that nobody is in, and return its address."""
        name = f"reverie_{next(_numbers)}"
        like = f"TEMPLATE {template.rpartition('/')[2]} ENCODING '{encoding}' LOCALE 'C'"
        self.do(f"CREATE DATABASE {name} OWNER {ROLE} {like}")
        return f"postgresql://{ROLE}@{HOST}:{self._port}/{name}"

    def drop_database(self, url: str) -> None:
        """Drop a database, whoever is in it."""
        self.do(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def do(self, statement: str) -> None:
        """Run a statement as the superuser."""
        with psycopg.connect(self.admin_url, autocommit=True) as db:
            db.execute(statement.encode())

    def ask(self, query: str) -> Any:
        """Return the one value that a query of the superuser's finds."""
        with psycopg.connect(self.admin_url, autocommit=True) as db:
            row = db.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]

    def _run(self, program: str, *options: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *options]
        with self._log.open("ab") as log:
            ended = subprocess.run(command, **_owner(), stdout=log, stderr=log, check=False)
        assert ended.returncode == 0, self._log.read_text(encoding="utf-8")

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(self._log.read_text(encoding="utf-8"))
        try:
            psycopg.connect(self.admin_url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@contextlib.contextmanager
def serve_postgres(folder: Path, **settings: str) -> Iterator[PostgresServer]:
    """Serve PostgreSQL during a block, with some settings other than its own; its log is in the folder."""
    with _prepare(folder, settings) as server:
        server.create()
        yield server


@contextlib.contextmanager
def serve_follower(folder: Path, leader: PostgresServer) -> Iterator[PostgresServer]:
    """Serve during a block a copy of another server, which from now on waits for it with each commit."""
    with _prepare(folder, {}) as server:
        server.follow(leader)
        yield server


@contextlib.contextmanager
def _prepare(folder: Path, settings: Mapping[str, str]) -> Iterator[PostgresServer]:
    programs = find_programs()
    assert programs is not None, "there is no PostgreSQL on this machine"
    folder.mkdir(parents=True, exist_ok=True)
    # Not in the folder, which another user cannot enter.
    with tempfile.TemporaryDirectory(prefix="reverie-pg-", ignore_cleanup_errors=True) as place:
        if owner := _owner():
            shutil.chown(place, owner["user"])
        server = PostgresServer(programs, Path(place, "data"), folder / "postgres.log", settings)
        try:
            yield server
        finally:
            server.close()


def _owner() -> dict[str, Any]:
    """Return whom its processes run as where that must be another user: it does not run as root."""
    return {"user": "postgres", "extra_groups": ()} if os.geteuid() == 0 else {}
