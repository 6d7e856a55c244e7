"""Two web servers and a worker with a home each, and one store on a server: a setting of a workspace holds in all."""

import contextlib
import html

import pytest

from tests.fakes.client import CheckedClient
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import fast_settings, open_web, open_worker
from tests.support.stack import wait_until
from web.http.app import create_app

PAGE = "/w/default/settings"
SAID = "The flumadiddle listens on port 5433"


@pytest.fixture
def served_at(store_url):
    """Where the store of the first home is."""
    return store_url


@pytest.fixture
def other(home, tmp_path):
    """The services of another machine, which has an empty folder."""
    with contextlib.closing(open_web(fast_settings(tmp_path / "elsewhere", store=home.store))) as container:
        yield container


@pytest.fixture
def other_client(other):
    return CheckedClient(create_app(other), other.token)


def set_value(client, name, value):
    assert sign_in(client).post(f"{PAGE}/value", {"name": name, "value": value}).status_code == 303


def wait_for_settings(container, **values):
    """Wait until a workspace's settings are in force in a process."""

    def is_so():
        settings = container.workspace("default").settings
        return all(getattr(settings, name) == value for name, value in values.items())

    wait_until(f"{values} holds", is_so)


def test_an_incognito_workspace_is_incognito_on_every_server(home, client, container, other, other_client, tmp_path):
    client.write("Known before")
    with contextlib.closing(open_worker(fast_settings(tmp_path / "third", store=home.store))) as worker:
        assert other.workspace("default").access.captures
        assert not worker.context("default").settings.incognito
        set_value(client, "incognito", "true")
        assert container.workspace("default").settings.incognito
        for one in (other, worker):
            wait_for_settings(one, incognito=True)
        assert worker.context("default").settings.incognito
        assert not worker.workspace("default").access.captures
    assert other_client.post("/v1/memories", {"content": SAID}).get_json()["outcome"] == "rejected"
    assert "This workspace is incognito." in sign_in(other_client).page(PAGE)
    assert SAID not in str(client.get("/v1/memories").get_json())
    set_value(other_client, "incognito", "")
    wait_for_settings(container, incognito=False)
    assert client.post("/v1/memories", {"content": SAID}).get_json()["outcome"] == "created"


def test_server_setting_survives_a_restart_with_an_empty_folder(home, client, container, tmp_path):
    set_value(client, "read_only", "true")
    assert list(home.paths.workspaces.rglob("config.toml")) == []
    with contextlib.closing(open_web(fast_settings(tmp_path / "fresh", store=home.store))) as fresh:
        assert fresh.workspace("default").settings.read_only
        assert not fresh.workspace("another").settings.read_only


def test_a_file_of_this_machine_alone_says_nothing(home, container):
    own = home.paths.workspace("default").config
    own.parent.mkdir(parents=True)
    own.write_text("hook_max_chars = 1000\n")
    assert container.workspace("default").settings.hook_max_chars == home.hook_max_chars


def test_settings_that_cannot_be_taken_close_the_workspace_everywhere(client, container, other, other_client):
    client.write("Known before")
    container.stores.configs.edit("default", lambda _text: "incognito = true\n[")
    wait_for_settings(other, incognito=True)
    answer = other_client.post("/v1/memories", {"content": SAID})
    place = container.stores.configs.place("default")
    assert (answer.status_code, place in answer.get_json()["detail"]) == (503, True)
    page = html.unescape(sign_in(other_client).page(PAGE))
    assert place in page.partition('role="alert"')[2]
    assert sign_in(other_client).post(f"{PAGE}/value", {"name": "review", "value": "true"}).status_code == 409
    assert container.stores.configs.read("default").text == "incognito = true\n["
