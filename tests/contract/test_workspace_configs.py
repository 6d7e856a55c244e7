"""What a workspace's own settings keep wherever they stand: in a file of the home, or on its server."""

import contextlib

import pytest

from config.declared import Secret
from config.toml_files import SettingsError, UnreadableSettings
from config.workspace_configs import save_workspace_setting
from pipeline.kernel.errors import StoreClosed, StoreUnavailable
from pipeline.kernel.store import home_values
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.home_values import HomeValues
from pipeline.kernel.store.postgres.server import Server
from pipeline.kernel.store.stores import open_stores
from pipeline.kernel.workspace import Workspace, WorkspaceSettings
from tests.fakes.in_process import fast_settings
from tests.support.stack import wait_until

IMPATIENT = WriterProfile("FULL", 1000, 200)


@pytest.fixture(params=["file", "server"])
def settings(request, tmp_path):
    """Settings of a home whose workspaces keep their own in one of the two places."""
    url = request.getfixturevalue("store_url") if request.param == "server" else ""
    return fast_settings(tmp_path / "home", store=Secret(url))


@pytest.fixture
def open_more(settings):
    """Open the stores of the home as one more process does."""
    with contextlib.ExitStack() as opened:

        def open_one():
            stores = open_stores(settings, IMPATIENT, str)
            opened.callback(stores.close)
            return stores

        yield open_one


@pytest.fixture
def configs(open_more):
    return open_more().configs


@pytest.fixture
def workspace(settings, open_more):
    """A workspace as one more process knows it."""
    stores = open_more()
    known = WorkspaceSettings(settings, stores)
    return Workspace("default", settings.paths.workspace("default"), stores.databases, known)


def put(configs, text):
    configs.edit("default", lambda _text: text)


def test_a_value_is_set_and_taken_out_and_all_else_stays(configs, open_more):
    assert (configs.state("default"), configs.read("default").text) == (None, "")
    put(configs, "# ours\r\nhook_max_chars = 2000 # short\r\n")
    save_workspace_setting(configs, "default", "review", value=True)
    assert configs.read("default").text == "# ours\r\nhook_max_chars = 2000 # short\r\nreview = true\n"
    assert open_more().configs.read("default") == configs.read("default")
    save_workspace_setting(configs, "default", "review", None)
    assert configs.read("default").text == "# ours\r\nhook_max_chars = 2000 # short\r\n"
    assert configs.state("another") is None


def test_invalid_workspace_setting_is_rejected_with_its_location(configs):
    put(configs, "review = true\n")
    for name, value in (("review", "maybe"), ("port", 7099), ("prot", 1), ("hook_max_chars", 1)):
        with pytest.raises(SettingsError) as refusal:
            save_workspace_setting(configs, "default", name, value)
        assert str(refusal.value).startswith(configs.place("default"))
    assert configs.read("default").text == "review = true\n"
    put(configs, "review = tru")
    with pytest.raises(UnreadableSettings):
        save_workspace_setting(configs, "default", "review", value=True)
    assert configs.read("default").text == "review = tru"


def test_a_name_that_is_none_is_no_place(configs):
    with pytest.raises(ValueError, match="workspace id"):
        configs.edit("../default", str)


def test_workspace_setting_applies_in_every_process_without_restart(configs, workspace):
    assert not workspace.settings.incognito
    for value in (True, False):
        save_workspace_setting(configs, "default", "incognito", value=value)
        wait_until("the other process knows", lambda value=value: workspace.settings.incognito is value)
        assert workspace.write_policy().incognito is value
    assert not workspace.sibling("another").settings.incognito


@pytest.mark.parametrize("text", ["incognito = true\nrecall_budget = 3\n", "incognito = true\n[", "review = 'perhaps'"])
def test_invalid_workspace_settings_make_the_workspace_incognito(configs, workspace, text):
    assert workspace.access.captures
    put(configs, text)
    wait_until("the other process knows", lambda: workspace.settings.incognito)
    assert not workspace.access.captures
    with pytest.raises(StoreClosed, match="its settings are invalid") as refusal:
        workspace.write_policy()
    assert configs.place("default") in str(refusal.value)
    put(configs, "")
    wait_until("it is corrected", lambda: not workspace.settings.incognito)
    assert workspace.write_policy()


@pytest.fixture
def server(store_url):
    with contextlib.closing(Server(store_url)) as opened:
        yield opened


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("before", [None, "review = true\n"], ids=["the first values", "more values"])
def test_concurrent_changes_of_different_settings_are_both_kept(server, before):
    one, other = (home_values.ConfigValues(HomeValues(server), "a server") for _ in range(2))
    if before is not None:
        put(one, before)
    faster = iter(["read_only"])

    def change(text):
        for name in faster:
            save_workspace_setting(other, "default", name, value=True)
        return f"{text}incognito = true\n"

    one.edit("default", change)
    assert one.read("default").text == f"{before or ''}read_only = true\nincognito = true\n"


def test_server_settings_are_cached_for_at_most_a_quarter_second(server):
    clock = Clock()
    asked, writing = (home_values.ConfigValues(HomeValues(server), "a server", clock) for _ in range(2))
    assert asked.state("default") is None
    put(writing, "incognito = true\n")
    clock.now = home_values.KEPT_S * 0.99
    assert asked.state("default") is None
    clock.now = home_values.KEPT_S
    assert asked.state("default") == "incognito = true\n"
    # Who wrote knows at once.
    put(asked, "")
    assert asked.state("default") == ""


def test_unreachable_settings_server_blocks_capture_and_writes(tmp_path):
    settings = fast_settings(tmp_path / "home", store=Secret("postgresql://reverie@127.0.0.1:1/nothing"))
    with contextlib.closing(open_stores(settings, IMPATIENT, str)) as stores:
        known = WorkspaceSettings(settings, stores)
        workspace = Workspace("default", settings.paths.workspace("default"), stores.databases, known)
        for ask in (lambda: workspace.settings, lambda: workspace.access.captures, workspace.write_policy):
            with pytest.raises(StoreUnavailable):
                ask()
