"""A server of PostgreSQL that dies, comes back, is another one, or is none that a store can be kept on."""

import contextlib
import signal
from dataclasses import replace

import psycopg
import pytest

from config.declared import Secret
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.records import Draft
from pipeline.kernel.store import meta
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.postgres import server as server_module
from pipeline.kernel.store.postgres.server import Server
from pipeline.kernel.store.stores import open_stores
from pipeline.write.accept import accept
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import fast_settings, open_web
from tests.support.postgres import find_programs, serve_postgres
from tests.support.stack import free_port
from tests.support.writers import Writers, fetch_all
from web.http.app import create_app

pytestmark = pytest.mark.skipif(find_programs() is None, reason="there is no PostgreSQL on this machine")

PROFILE = WriterProfile("FULL", 0, 5000)
ROUNDS = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for tests that may kill it."""
    with serve_postgres(tmp_path_factory.mktemp("mortal")) as running:
        yield running


@pytest.fixture
def mortal(server):
    """The server, alive again afterwards."""
    yield server
    server.close()
    server.start()


@pytest.fixture
def url(server):
    return server.make_database()


@pytest.fixture
def databases(tmp_path, url):
    stores = open_stores(fast_settings(tmp_path / "home", store=Secret(url)), PROFILE, str)
    yield stores.databases
    stores.close()


def test_acknowledged_writes_survive_repeated_server_kills(databases, mortal):
    def store(text):
        with contextlib.suppress(StoreUnavailable):
            return accept(databases.get("team", create=True), Draft(text)).id
        return None

    with Writers.writing(store) as writers:
        writers.get_on()
        for _ in range(ROUNDS):
            mortal.stop(signal.SIGKILL)
            writers.are_refused()
            mortal.start()
            writers.get_on()
    # What was sent again because its answer was lost stands once.
    writers.check(fetch_all(databases.get("team")))


def test_lost_postgres_server_is_reported_at_once_and_reused_after_restart(tmp_path, url, mortal):
    container = open_web(fast_settings(tmp_path / "home", store=Secret(url)))
    try:
        client = CheckedClient(create_app(container), container.token)
        first = client.post("/v1/memories", {"content": "Staging listens on port 6543"})
        assert first.status_code == 201
        mortal.stop(signal.SIGKILL)
        plain, headers = client.browser(), client.auth
        for answer in (
            plain.post("/v1/memories", json={"content": "Nobody keeps this"}, headers=headers),
            plain.get(f"/v1/memories/{first.json['id']}", headers=headers),
            plain.post("/v1/recall", json={"query": "which port does staging use"}, headers=headers),
            plain.get("/v1/workspaces", headers=headers),
        ):
            assert answer.status_code == 503, answer.text
            assert int(answer.headers["Retry-After"]) >= 1
        mortal.start()
        assert client.get(f"/v1/memories/{first.json['id']}").json["content"] == "Staging listens on port 6543"
        assert client.post("/v1/memories", {"content": "This is kept"}).status_code == 201
    finally:
        container.close()


def test_a_write_whose_connection_is_lost_is_undone_and_the_next_goes_on(databases, server):
    database = databases.get("team", create=True)
    with pytest.raises(StoreUnavailable), database.write() as db:  # noqa: PT012 - all belongs to the transaction
        meta.put(db, "a", "1")
        with psycopg.connect(server.admin_url, autocommit=True) as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'reverie'")
        meta.put(db, "b", "2")
    with database.read() as db:
        assert (meta.get(db, "a"), meta.get(db, "b")) == (None, None)
    with database.write() as db:
        meta.put(db, "b", "3")


def test_the_reachable_of_several_postgres_hosts_is_used(tmp_path, url):
    host, _, name = url.partition("@")[2].rpartition("/")
    several = f"postgresql://reverie@127.0.0.1:{free_port()},{host}/{name}"
    stores = open_stores(fast_settings(tmp_path / "home", store=Secret(several)), PROFILE, str)
    assert accept(stores.databases.get("team", create=True), Draft("Staging listens on port 6543")).id
    stores.close()


def test_stores_with_a_later_migration_are_rejected(databases, tmp_path, url):
    database = databases.get("team", create=True)
    with psycopg.connect(url, autocommit=True) as later:
        later.execute("INSERT INTO migration VALUES ('p999_later')")
    with pytest.raises(StoreUnavailable, match="another version of Reverie"), database.write() as db:
        meta.put(db, "a", "1")
    fresh = open_stores(fast_settings(tmp_path / "other", store=Secret(url)), PROFILE, str)
    with pytest.raises(StoreUnavailable, match="another version of Reverie"):
        fresh.databases.ids()
    with pytest.raises(StoreUnavailable, match="another version of Reverie"):
        fresh.databases.get("team", create=True)


def test_a_role_that_passes_policies_by_is_refused(server, url):
    admin = server.admin_url.rpartition("/")[0] + "/" + url.rpartition("/")[2]
    refused = Server(admin)
    with pytest.raises(StoreUnavailable, match="row level security"), refused.write():
        pass
    with psycopg.connect(url) as db:
        assert db.execute("SELECT to_regclass('memory')").fetchone() == (None,)


def test_a_server_that_is_too_old_is_refused(url, monkeypatch):
    monkeypatch.setattr(server_module, "OLDEST_VERSION", 990000)
    with pytest.raises(StoreUnavailable, match="too old"), Server(url).write():
        pass


def test_no_error_shows_the_password(tmp_path):
    settings = fast_settings(tmp_path / "home", store=Secret(f"postgresql://me:hush@127.0.0.1:{free_port()}/nothing"))
    stores = open_stores(settings, PROFILE, str)
    with pytest.raises(StoreUnavailable) as caught:
        stores.databases.ids()
    assert "hush" not in str(caught.value) + repr(settings) + repr(replace(settings, port=1)) + settings.store_place
