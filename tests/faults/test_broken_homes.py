"""Whatever became of a home, each command of its operator ends with a documented code and says what and what helps."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.kernel.records import Draft
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write.accept import accept
from tests.support.disks import mounted
from tests.support.stack import ROOT, Client, free_port, wait_until

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.name != "posix", reason="mounts and owners are POSIX's"),
]

# The exit codes of docs/reference/cli.md, without those for wrong usage and an interruption.
DONE, FAILED, BROKEN = 0, 1, 4
DEADLINE_S = 120
SOMEBODY = 65534
DISK_BYTES = 10 * 2**20
NO_DATABASE = b"\xde\xad\xbe\xef" * 1024
# Of a user who may not pass over the rights of files, as root may.
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


@dataclass(frozen=True)
class Home:
    """A home and how a command is run on it."""

    root: Path
    environment: dict[str, str]
    before: tuple[str, ...] = ()

    def run(self, *arguments: str) -> "Said":
        """Run a command; none may end in a traceback, whatever stands in the home."""
        done = subprocess.run(
            [*self.before, sys.executable, "-m", "web.cli", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        text = done.stdout + done.stderr
        assert "Traceback" not in text, text
        return Said(done.returncode, text)


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said."""

    code: int
    text: str


def write_store(home: Path) -> Path:
    """Make a workspace that holds a memory; return its store."""
    file = home / "workspaces" / "default" / "events.sqlite"
    database = SqliteDatabase(file, WriterProfile("FULL", 1000, 5000), create=True)
    accept(database, Draft("The staging database listens on port 6543"))
    database.close()
    return file


def link_models(home, models):
    (home / "models").symlink_to(models, target_is_directory=True)


@contextlib.contextmanager
def full(home, models):
    """A disk of 10 MB without a free byte."""
    with mounted(home, f"size={DISK_BYTES},mode=0700"):
        link_models(home, models)
        write_store(home)
        ballast = os.open(home / "ballast", os.O_WRONLY | os.O_CREAT, 0o600)
        with contextlib.suppress(OSError):
            while True:
                os.write(ballast, b"\0" * 4096)
        os.close(ballast)
        yield


@contextlib.contextmanager
def read_only(home, models):
    """A disk that nobody may write to."""
    with mounted(home, f"size={DISK_BYTES},mode=0700"):
        link_models(home, models)
        write_store(home)
        (home / "token").write_text("a-token-of-this-home\n", encoding="ascii")
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
        yield


@contextlib.contextmanager
def damaged_store(home, models):
    """A store whose first pages are not SQLite's."""
    link_models(home, models)
    file = write_store(home)
    for log in file.parent.glob("events.sqlite-*"):
        log.unlink()
    with file.open("r+b") as store:
        store.write(NO_DATABASE)
    yield


@contextlib.contextmanager
def damaged_home_file(home, models):
    """A file of the data directory that is no database."""
    link_models(home, models)
    write_store(home)
    (home / "home.sqlite").write_bytes(NO_DATABASE)
    yield


@contextlib.contextmanager
def lost_token(home, models):
    """A home that has run and whose token is gone."""
    link_models(home, models)
    write_store(home)
    yield


@contextlib.contextmanager
def foreign(home, models):
    """A home that belongs to somebody else."""
    if shutil.which(WITHOUT_RIGHTS[0]) is None or os.geteuid():
        pytest.skip("only root can give a home away, and setpriv take root's rights")
    link_models(home, models)
    write_store(home)
    for place in (home, *home.rglob("*")):
        os.chown(place, SOMEBODY, SOMEBODY, follow_symlinks=False)
    home.chmod(0o700)
    yield


@contextlib.contextmanager
def half_upgraded(home, models):
    """A store that a later version has migrated already."""
    link_models(home, models)
    file = write_store(home)
    with contextlib.closing(sqlite3.connect(file)) as store:
        store.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('reverie', 'm999_later', '2030')"
        )
        store.commit()
    yield


@contextlib.contextmanager
def without_model(home, models):
    """A home in which no encoder was compiled, and none can be."""
    write_store(home)
    (home / "config.toml").write_text('embedding_model = "/nowhere/model"\n', encoding="utf-8")
    yield


State = Callable[[Path, Path], AbstractContextManager[None]]
STATES: dict[str, State] = {
    state.__name__: state
    for state in (
        full,
        read_only,
        damaged_store,
        damaged_home_file,
        lost_token,
        foreign,
        half_upgraded,
        without_model,
    )
}
COMMANDS = {
    "status": ("status",),
    "doctor": ("doctor",),
    "errors": ("logs", "errors"),
    "up": ("up", "--daemon"),
    "down": ("down",),
    "snapshot list": ("store", "snapshot", "list", "-w", "default"),
    "snapshot take": ("store", "snapshot", "take", "-w", "default"),
}


@pytest.fixture
def make_home(tmp_path):
    """Return a home in a state; whatever runs on it at the end is ended."""
    with contextlib.ExitStack() as ending:

        def make(state: str, models: Path) -> Home:
            root = tmp_path / "home"
            root.mkdir()
            values = {"HOME": str(root), "HOST": "127.0.0.1", "PORT": str(free_port())}
            kept = {name: value for name, value in os.environ.items() if not name.startswith("REVERIE_")}
            environment = kept | {f"REVERIE_{name}": value for name, value in values.items()} | {"HF_HUB_OFFLINE": "1"}
            ending.enter_context(STATES[state](root, models))
            home = Home(root, environment, WITHOUT_RIGHTS if state == "foreign" else ())
            ending.callback(Home(root, environment).run, "down")
            return home

        yield make


@dataclass(frozen=True)
class Expected:
    """What tells the operator what is wrong and what helps, and which commands end with which code over it."""

    says: str
    helps: str
    codes: dict[str, int]


TROUBLED = dict.fromkeys(("status", "errors", "up"), BROKEN) | {"doctor": FAILED}
UNUSABLE = {
    "read_only": Expected("read-only", "mount it", TROUBLED),
    "full": Expected("disk of", "free some space", TROUBLED),
    "foreign": Expected("another user", "chown", dict.fromkeys(COMMANDS, BROKEN) | {"doctor": FAILED}),
}


@pytest.mark.parametrize("state", UNUSABLE)
def test_unusable_data_directory_is_reported_with_a_remedy(make_home, models, state):
    home, expected = make_home(state, models), UNUSABLE[state]
    said = {name: home.run(*arguments) for name, arguments in COMMANDS.items()}
    for name, code in expected.codes.items():
        assert said[name].code == code, (name, said[name])
        for part in (str(home.root), expected.says, expected.helps):
            assert part in said[name].text, (name, said[name])
    # What only reads, or has nothing to end, does so where the home lets it.
    if state != "foreign":
        assert said["down"].code == said["snapshot list"].code == DONE
        assert said["snapshot take"].code == BROKEN
        assert str(home.root) in said["snapshot take"].text


@pytest.mark.parametrize("state", ["damaged_store", "half_upgraded"])
def test_a_store_that_cannot_be_read_is_named_and_the_rest_serves(make_home, models, state):
    home = make_home(state, models)
    file = str(home.root / "workspaces" / "default" / "events.sqlite")
    assert home.run("up", "--daemon").code == DONE
    status = home.run("status")
    assert status.code == BROKEN
    assert f"problem  {file}" in status.text
    assert "reverie store snapshot list" in status.text
    assert "answers (version" in status.text
    doctor = home.run("doctor")
    assert doctor.code == FAILED
    assert f"fail  default: store: {file}" in doctor.text
    assert "ok    token" in doctor.text
    assert "snapshot" in doctor.text
    assert home.run("logs", "errors").code == DONE
    assert home.run("recall", "-w", "default", "staging").code == BROKEN
    # Another workspace of the same home is whole.
    assert home.run("remember", "-w", "other", "The port of staging is 6543").code == DONE
    assert "6543" in home.run("recall", "-w", "other", "port of staging").text
    assert home.run("down").code == DONE
    taken = home.run(*COMMANDS["snapshot take"])
    assert (taken.code, file in taken.text) == ((BROKEN, True) if state == "damaged_store" else (DONE, False))


def test_memories_are_served_without_the_file_of_the_data_directory(make_home, models):
    home = make_home("damaged_home_file", models)
    file = home.root / "home.sqlite"
    assert home.run("up", "--daemon").code == DONE
    assert home.run("remember", "-w", "default", "The port of staging is 6543").code == DONE
    assert "6543" in home.run("recall", "-w", "default", "port of staging").text
    for name in ("snapshot list", "snapshot take"):
        assert home.run(*COMMANDS[name]).code == DONE, name
    for name in ("doctor", "errors"):
        said = home.run(*COMMANDS[name])
        assert said.code == (FAILED if name == "doctor" else BROKEN)
        assert f"{file} is damaged" in said.text
        assert "move it away" in said.text
    assert file.read_bytes() == NO_DATABASE
    # Under the stack that runs.
    file.unlink()
    for name in ("doctor", "errors", "down"):
        assert home.run(*COMMANDS[name]).code == DONE, name


def test_lost_token_is_recreated_on_first_use(make_home, models):
    home = make_home("lost_token", models)
    token = home.root / "token"
    assert home.run("up", "--daemon").code == DONE
    for name in ("status", "errors"):
        token.unlink()
        assert home.run(*COMMANDS[name]).code == DONE, name
    assert home.run(*COMMANDS["snapshot take"]).code == DONE
    assert token.stat().st_mode & 0o777 == 0o600
    assert "ok    token" in home.run("doctor").text
    # Another home's server takes no token of this one.
    stranger = Home(home.root / "other", home.environment | {"REVERIE_HOME": str(home.root / "other")})
    refused = stranger.run("logs", "errors")
    assert refused.code == FAILED
    assert "No Reverie server answers" in refused.text
    assert f"{home.root}" in stranger.run("doctor").text
    assert home.run("down").code == DONE


def test_missing_model_is_reported_and_lexical_recall_works(make_home, models):
    home = make_home("without_model", models)
    assert home.run("up", "--daemon").code == DONE
    assert "6543" in home.run("recall", "-w", "default", "staging database").text
    doctor = home.run("doctor")
    assert "/nowhere/model is not compiled" in doctor.text
    assert "reverie model compile" in doctor.text
    client = Client(int(home.environment["REVERIE_PORT"]), (home.root / "token").read_text(encoding="ascii").strip())
    with contextlib.closing(client):
        wait_until("the worker reports that it has no model", lambda: "/nowhere/model" in str(client.errors()))
    assert "sentence-transformers cannot load /nowhere/model" in home.run("logs", "errors", "-w", "default").text
    assert home.run("status").code == DONE
    assert home.run(*COMMANDS["snapshot take"]).code == DONE
    assert home.run("down").code == DONE
