"""The first server of the store is lost, or leads no more, and one that followed it in step takes over."""

import contextlib
import http.client
import socket
import threading
from contextlib import closing, contextmanager

import psutil
import pytest

from config.declared import Secret
from pipeline.kernel.errors import StoreBusy, StoreUnavailable
from pipeline.kernel.records import Draft
from pipeline.kernel.store import meta
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.postgres import connection as connection_module
from pipeline.kernel.store.postgres.server import Server
from pipeline.kernel.store.stores import open_stores
from pipeline.write.accept import accept
from tests.fakes.in_process import fast_settings
from tests.support.postgres import find_programs, serve_follower, serve_postgres
from tests.support.stack import wait_until
from tests.support.witness import Witness
from tests.support.writers import Writers, fetch_all

pytestmark = [
    # Two servers are made for each.
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_programs() is None, reason="there is no PostgreSQL on this machine"),
]

PROFILE = WriterProfile("FULL", 0, 5000)
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reverie'"


def forbid_writing(server):
    """Make a server read-only, and wait until it is: it reads its configuration after the answer."""
    server.do("ALTER SYSTEM SET default_transaction_read_only = on")
    server.do("SELECT pg_reload_conf()")
    wait_until("the server is read-only", lambda: server.ask("SHOW default_transaction_read_only") == "on")


@pytest.fixture
def leader(tmp_path):
    """The first server of the two."""
    with serve_postgres(tmp_path / "first") as running:
        yield running


@pytest.fixture
def follower(tmp_path, leader):
    """The second, on which everything is that the first has acknowledged."""
    with serve_follower(tmp_path / "second", leader) as running:
        yield running


@pytest.fixture
def both(leader, follower):
    """The address of a store on both."""
    first, second = (server.url.partition("@")[2].partition("/")[0] for server in (leader, follower))
    return f"postgresql://reverie@{first},{second}/{leader.url.rpartition('/')[2]}?connect_timeout=2"


@pytest.fixture
def databases(tmp_path, both):
    stores = open_stores(fast_settings(tmp_path / "home", store=Secret(both)), PROFILE, str)
    yield stores.databases
    stores.close()


@pytest.fixture
def database(databases):
    """A workspace, with two connections at rest that were used."""
    database = databases.get("team", create=True)
    with database.read(), databases.get("other", create=True).read():
        pass
    return database


def put(database, value):
    with database.write() as db:
        meta.put(db, "a", value)


def get(database):
    with database.read() as db:
        return meta.get(db, "a")


@contextmanager
def frozen(server):
    """Let a server stand still during a block, each process of it, while the system goes on to answer for it."""
    main = psutil.Process(server.pid)
    family = [main, *main.children(recursive=True)]
    for process in family:
        process.suspend()
    try:
        yield
    finally:
        for process in family:
            process.resume()


def test_writers_continue_on_the_promoted_server(databases, leader, follower):
    team = databases.get("team", create=True)

    def store(text):
        with contextlib.suppress(StoreUnavailable):
            return accept(databases.get("team"), Draft(text)).id
        return None

    with Writers.writing(store) as writers:
        writers.get_on()
        leader.kill()
        writers.are_refused()
        # One that only follows may lack what was acknowledged last, for as long as it has not read it.
        with pytest.raises(StoreUnavailable):
            get(team)
        follower.promote()
        writers.get_on()
        leader.return_behind(follower)
        follower.wait_for_follower()
        writers.get_on()
    writers.check(fetch_all(team))
    assert leader.ask("SELECT pg_is_in_recovery()") is True
    assert leader.ask(CONNECTIONS) == 0


def test_clients_over_http_go_on_without_a_restart_of_anything(make_stack, both, leader, follower):
    stack = make_stack(STORE=both)
    stack.start("web", "worker")
    clients, refusals = {}, []

    def call(method, path, body=None):
        me = threading.get_ident()
        if me not in clients:
            clients[me] = stack.client()
        return clients[me].call(method, path, body)

    def store(text):
        with contextlib.suppress(OSError, http.client.HTTPException):
            reply = call("POST", "/v1/memories", {"content": text})
            if reply.status == 201:
                return reply.body["id"]
            refusals.append(reply)
        return None

    with Writers.writing(store) as writers:
        writers.get_on()
        known = next(iter(writers[0].acknowledged.values()))
        leader.kill()
        writers.are_refused()
        read = call("GET", f"/v1/memories/{known}")
        assert read.status == 503
        assert int(read.headers["Retry-After"]) >= 1
        follower.promote()
        writers.get_on()
    assert {reply.status for reply in refusals} == {503}
    assert all(int(reply.headers["Retry-After"]) >= 1 for reply in refusals)
    writers.check(dict(Witness(follower).rows("SELECT id, content FROM memory")))
    stack.wait_until_digested(clients[threading.get_ident()])
    for client in clients.values():
        client.close()


def test_connections_at_rest_while_another_took_over_are_nobodys_concern(database, leader, follower):
    leader.kill()
    follower.promote()
    put(database, "1")
    assert get(database) == "1"


def test_a_server_that_lives_but_leads_no_more_is_left_to_itself(database, leader, follower):
    put(database, "1")
    forbid_writing(leader)
    for ask in (get, lambda database: put(database, "2")):
        with pytest.raises(StoreUnavailable):
            ask(database)
    # Whatever rested there was dropped.
    wait_until("nobody is connected", lambda: leader.ask(CONNECTIONS) == 0)
    follower.promote()
    put(database, "3")
    assert get(database) == "3"
    assert leader.ask(CONNECTIONS) == 0


def test_query_to_a_demoted_server_is_sent_to_the_new_leader(database, leader, follower):
    put(database, "1")
    forbid_writing(leader)
    follower.promote()
    put(database, "2")
    assert get(database) == "2"


def test_frozen_server_is_treated_as_lost(database, leader, follower, monkeypatch):
    monkeypatch.setattr(connection_module, "SILENCE_S", 0.3)
    with frozen(leader):
        with pytest.raises(StoreUnavailable):
            put(database, "1")
        follower.promote()
        put(database, "2")
        assert get(database) == "2"


def test_write_to_a_server_that_freezes_midway_fails(database, leader, follower, monkeypatch):
    monkeypatch.setattr(connection_module, "SILENCE_S", 0.3)
    with contextlib.ExitStack() as still:
        with pytest.raises(StoreUnavailable, match="it hangs"), database.write() as db:  # noqa: PT012 - one write
            meta.put(db, "a", "1")
            still.enter_context(frozen(leader))
            meta.put(db, "a", "2")
        follower.promote()
        put(database, "3")
    assert get(database) == "3"


def test_a_host_that_does_not_even_refuse_is_asked_once(both):
    with socket.create_server(("127.0.0.1", 0)) as silent, closing(Server(_put_before(both, silent))) as server:
        with server.write(), server.write(), server.write():
            pass
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()


def _put_before(address, silent):
    scheme, _, rest = address.partition("@")
    return f"{scheme}@127.0.0.1:{silent.getsockname()[1]},{rest}"


def test_a_server_that_takes_long_is_waited_for(database, monkeypatch):
    monkeypatch.setattr(connection_module, "SILENCE_S", 0.1)
    with database.read() as db:
        assert db.execute("SELECT 1 FROM pg_sleep(1)").fetchone() == (1,)


def test_without_its_follower_a_server_acknowledges_no_writes(database, leader, follower, monkeypatch):
    monkeypatch.setattr(connection_module, "SILENCE_S", 0.3)
    monkeypatch.setattr(connection_module, "COMMIT_S", 1.0)
    put(database, "1")
    follower.kill()
    with pytest.raises(StoreUnavailable):
        put(database, "2")
    assert get(database) == "1"
    follower.start()

    def is_put():
        with contextlib.suppress(StoreBusy):
            put(database, "2")
            return True

    wait_until("it is acknowledged", is_put)
    assert get(database) == "2"
