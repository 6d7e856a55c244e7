"""Fixtures of all tests. Each imports what it needs itself: a test of one function loads no server and no model."""

import contextlib
import gc
import os
import socket
import time
from pathlib import Path

import hypothesis
import pytest

from config.file_modes import make_umask_private
from tests.support.encoders import models_folder
from tests.support.skips import note_skips

os.environ["HF_HUB_OFFLINE"] = "1"
# Threads of BLAS wait by spinning: with a few tests at the same time, they take the cores from the tests.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Not the cache of the user; the encoders in it are those of the present code.
os.environ["XDG_CACHE_HOME"] = str(models_folder() / "cache")
# As every program of ours does.
make_umask_private()

# Machines differ in speed and properties share two cores: no example is failed for taking long.
# Where a property needs more or fewer examples than these, it says so (`tests/fakes/properties.py`).
hypothesis.settings.register_profile("reverie", deadline=None, print_blob=True, max_examples=60)
# `make test-fast`: a sixth of the examples, also of a property that says how many it needs.
hypothesis.settings.register_profile("fast", hypothesis.settings.get_profile("reverie"), max_examples=10)
hypothesis.settings.load_profile("reverie")

# Which engine keeps the store of every test that asks for a home: files, or with `postgresql` a database a test.
TEST_STORE = os.environ.get("REVERIE_TEST_STORE", "")
# New objects until a search for garbage, and searches until one that also visits older objects: less often than Python.
GARBAGE_THRESHOLDS = (20_000, 20, 20)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", ""})
# Whose tests run a model, for which torch has to compile it.
_MODEL_FIXTURES = frozenset({"models", "compiled_model", "multilingual_model"})


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without searching for garbage, and never search what exists then: it lives as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        gc.enable()


# First: those that `-m` leaves out are taken away by the same hook.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if _MODEL_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("models")
    if TEST_STORE == "postgresql":
        for item in items:
            if item.get_closest_marker("files"):
                item.add_marker(pytest.mark.skip("it is about files of SQLite"))


def pytest_collection_finish(session):
    fixtures = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if fixtures & _MODEL_FIXTURES and not session.config.option.collectonly:
        from tests.support.encoders import prepare_for

        prepare_for(fixtures)


def pytest_sessionfinish(session):
    note_skips(session.config)


@pytest.fixture(scope="session", autouse=True)
def _no_network():
    """Refuse every connection that leaves this machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        if isinstance(address, tuple) and address[0] not in _LOOPBACK:
            raise PermissionError(f"tests stay on this machine: {address[0]}")
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside():
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("REVERIE_"):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def models():
    """A folder with both default encoders."""
    from tests.support.encoders import models_folder

    return models_folder()


@pytest.fixture(scope="session")
def compiled_model():
    """The folder of the default encoder itself."""
    from pipeline.index.encoder import ENGLISH, encoder_directory
    from tests.support.encoders import models_folder

    return encoder_directory(ENGLISH, models_folder())


@pytest.fixture(scope="session")
def multilingual_model():
    """The folder of the multilingual encoder; only its weights' package has it."""
    from pipeline.index.encoder import MULTILINGUAL, encoder_directory
    from tests.support.encoders import models_folder

    return encoder_directory(MULTILINGUAL, models_folder())


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """A server of PostgreSQL for every test that needs one."""
    from tests.support.postgres import find_programs, serve_postgres

    if find_programs() is None:
        pytest.skip("there is no PostgreSQL on this machine")
    # What is tested here outlives no crash.
    with serve_postgres(tmp_path_factory.mktemp("postgres"), fsync="off") as server:
        yield server


@pytest.fixture(scope="session")
def ready_url(postgres):
    """The address of a database with a store's tables and nothing in them, for nobody but who copies it."""
    from pipeline.kernel.store.postgres.server import Server

    server = Server(postgres.url)
    with server.write():
        pass
    server.close()
    return postgres.url


@pytest.fixture(scope="session", autouse=True)
def _scratch_databases(request):
    """Let every scratch database be a workspace of a server, where the store of tests is kept by one."""
    if TEST_STORE != "postgresql":
        yield
        return
    from pipeline.kernel.store.postgres.database import PostgresDatabases
    from pipeline.kernel.store.postgres.server import Server
    from tests.fakes import in_process

    postgres = request.getfixturevalue("postgres")
    url = postgres.make_database(request.getfixturevalue("ready_url"))
    in_process.SERVED = PostgresDatabases(Server(url), in_process.PROFILE)
    yield
    in_process.SERVED.close()


@pytest.fixture
def store_url(postgres):
    """The address of an empty database."""
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def served_at(request):
    """Where the store of a home is served, in a database of its own; empty where files keep it."""
    if TEST_STORE != "postgresql":
        yield ""
        return
    server = request.getfixturevalue("postgres")
    url = server.make_database(request.getfixturevalue("ready_url"))
    yield url
    server.drop_database(url)


@pytest.fixture
def home(tmp_path: Path, monkeypatch, served_at):
    """Settings of a fresh home with short waits, in force for this process."""
    import tomlkit

    from config.settings import load_settings

    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    values = {"embedding_model": "hash", "backoff_s": 0.01, "recall_budget_ms": 5000, "hook_budget_ms": 2000}
    (folder / "config.toml").write_text(tomlkit.dumps(values))
    monkeypatch.setenv("REVERIE_HOME", str(folder))
    if served_at:
        monkeypatch.setenv("REVERIE_STORE", served_at)
    return load_settings()


@pytest.fixture
def container(home):
    """The services behind a web server: real stores and indexes, hashed words for vectors, a notifier that notes."""
    from tests.fakes.in_process import list_unannounced, open_web

    container = open_web(home)
    yield container
    unheard = list_unannounced(container)
    container.close()
    assert unheard == set()


@pytest.fixture
def app(container):
    from web.http.app import create_app

    return create_app(container)


@pytest.fixture
def client(app, container):
    """A client with the token that checks every answer's shape."""
    from tests.fakes.client import CheckedClient

    return CheckedClient(app, container.token)


@pytest.fixture
def worker(home):
    """The services of a worker, with fake models."""
    from tests.fakes.in_process import open_worker

    worker = open_worker(home)
    yield worker
    worker.close()


@pytest.fixture
def digested(worker):
    """Digest everything that a workspace has waiting."""
    from tests.fakes.in_process import digest_all

    def run(workspace_id: str = "default") -> None:
        digest_all(worker, workspace_id)

    return run


@pytest.fixture
def key_file(tmp_path):
    """Where an owner keeps the key of an encrypted home; the folder is there, the key not yet."""
    (tmp_path / "stick").mkdir()
    return tmp_path / "stick" / "reverie.key"


@pytest.fixture
def encrypt_stores(monkeypatch):
    """Encrypt every store from now on, as if its home were."""
    from pipeline.kernel.store import backup, driver
    from pipeline.kernel.store.key import StoreKey

    def encrypt():
        key = StoreKey(Path("/nowhere/reverie.key"), "5a" * 32)
        for module in (driver, backup):
            monkeypatch.setattr(module, "find_key", lambda _file: key)

    return encrypt


@pytest.fixture(params=["plain", "encrypted"])
def either_home(request, encrypt_stores):
    """Every store of the test is plain, or each is encrypted, as if its home were."""
    if request.param == "encrypted":
        encrypt_stores()


@pytest.fixture
def central_europe(monkeypatch):
    """Local time is that of Berlin."""
    with _local_time(monkeypatch, "Europe/Berlin"):
        yield


@pytest.fixture
def zone_told_as_a_rule(monkeypatch):
    """Local time is that of Berlin, told without the name of a zone."""
    with _local_time(monkeypatch, "CET-1CEST,M3.5.0,M10.5.0/3"):
        yield


@contextlib.contextmanager
def _local_time(monkeypatch, zone):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        _look_at_the_clock_anew()
        yield
    _look_at_the_clock_anew()


def _look_at_the_clock_anew():
    import tzlocal.unix

    time.tzset()
    # APScheduler asks this library, which remembers.
    tzlocal.unix._cache_tz = tzlocal.unix._cache_tz_name = None


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """A server for S3 without a bucket."""
    # Only the tests that ask for it start a server.
    from tests.support.s3 import PROGRAM, serve_s3

    if not PROGRAM.exists():
        pytest.skip("there is no SeaweedFS for this system")
    with serve_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(params=["Pacific/Auckland", "America/Los_Angeles"])
def far_zone(request, monkeypatch):
    """Local time is far from UTC."""
    with _local_time(monkeypatch, request.param):
        yield
