"""Which requests are of this machine's own programs, once others can reach the server too."""

import pytest
from flask import Flask

from config.settings import Settings
from pipeline.features.people.usecases import add_person, add_token, revoke
from pipeline.kernel.records.people import Person
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.people import People
from web.http.connections import BY_PROXY
from web.http.listener import Listener, ListenerRefused, check_listener
from web.http.security import register_security

TOKEN = "t0ken-t0ken-t0ken"
PUBLIC = "memory.example.com"
EXPOSED = Settings(behind_proxy="127.0.0.1", public_url=f"https://{PUBLIC}")


def open_app(settings):
    app = Flask("test")
    register_security(app, lambda: TOKEN, Listener.of(settings), {})
    app.add_url_rule("/v1/thing", "thing", lambda: "fine")
    return app.test_client()


def ask(client, *, host="127.0.0.1:7077", address="127.0.0.1", by_proxy=False, **headers):
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": host, **headers}
    environ = {"REMOTE_ADDR": address, BY_PROXY: by_proxy}
    return client.get("/v1/thing", headers=headers, environ_overrides=environ).status_code


def test_the_homes_token_opens_to_this_machines_own_programs_alone():
    client = open_app(EXPOSED)
    forwarded = {"X-Forwarded-For": "203.0.113.7"}
    assert ask(client) == 200
    assert ask(client, host="localhost", address="::1") == 200
    # A proxy here that tells of somebody, and one that tells nothing but the name it was asked by.
    assert ask(client, by_proxy=True, **{"X-Forwarded-For": "127.0.0.1"}) == 401
    assert ask(client, by_proxy=True, host=PUBLIC) == 401
    assert ask(client, by_proxy=True, host=PUBLIC, address="203.0.113.7", **forwarded) == 401
    assert ask(client, by_proxy=True, address="203.0.113.7", **forwarded) == 401
    # Elsewhere than at the proxy the header is nobody's.
    assert ask(client, **forwarded) == 200


def test_requests_that_bypass_the_proxy_are_refused():
    client = open_app(Settings(host="0.0.0.0", behind_proxy="10.0.0.5", public_url=f"https://{PUBLIC}"))
    assert ask(client, address="10.0.0.7") == 403
    assert ask(client, address="10.0.0.7", host=PUBLIC) == 403
    assert ask(client, address="10.0.0.7", host=PUBLIC, by_proxy=True) == 401


def test_request_from_the_own_address_counts_as_local():
    client = open_app(Settings(host="192.168.1.5", behind_proxy="192.168.1.1", public_url=f"https://{PUBLIC}"))
    assert ask(client, host="192.168.1.5:7077", address="192.168.1.5") == 200
    assert ask(client, host="192.168.1.5:7077", address="192.168.1.6") == 403
    assert ask(client, host=PUBLIC, address="192.168.1.5") == 401


def test_loopback_listener_accepts_only_local_host_names():
    client = open_app(Settings())
    assert ask(client, host="localhost:1", address="192.0.2.1") == 200
    assert ask(client, host=PUBLIC) == 403


@pytest.mark.parametrize(("host", "status"), [(PUBLIC, 200), (f"{PUBLIC}:8443", 200), (f"x.{PUBLIC}", 403)])
def test_the_public_name_is_ours_at_any_port(host, status):
    client = open_app(EXPOSED)
    client.application.view_functions["thing"] = lambda: "fine"
    found = client.get("/healthz", headers={"Host": host}).status_code
    assert found == (404 if status == 200 else 403)


@pytest.fixture
def people(tmp_path):
    return People(HomeFile(tmp_path / "home.sqlite"))


def test_beyond_loopback_there_is_a_proxy_or_nothing(people):
    with pytest.raises(ListenerRefused, match=r"0\.0\.0\.0 without TLS.*--behind-proxy"):
        check_listener(Settings(host="0.0.0.0"), people)


@pytest.mark.parametrize("settings", [EXPOSED, Settings(host="192.168.1.5", behind_proxy="192.168.1.1")])
def test_public_listener_requires_a_person_with_a_token(people, settings):
    with pytest.raises(ListenerRefused, match="reverie user add NAME"):
        check_listener(settings, people)
    ann: Person = add_person(people, "Ann")
    with pytest.raises(ListenerRefused):
        check_listener(settings, people)
    add_token(people, ann, "laptop")
    check_listener(settings, people)
    revoke(people, ann)
    with pytest.raises(ListenerRefused):
        check_listener(settings, people)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1"])
def test_loopback_listener_requires_no_person(people, host):
    check_listener(Settings(host=host), people)
    assert not people.exists
