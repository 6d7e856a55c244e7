"""Plugins that setup writes for hosts without settings for hooks."""

import json
from dataclasses import replace

import pytest

from web.hosts.environment import RemoteServer
from web.hosts.hook_entries import CLINE, KILO, OPENCODE, PI
from web.hosts.plugin_file import MARK
from web.http.recording import list_connected_hosts

FILES = {
    CLINE: (".cline/plugins/reverie.js", ".cline/plugins/reverie.js"),
    OPENCODE: (".config/opencode/plugin/reverie.js", ".opencode/plugin/reverie.js"),
    KILO: (".config/kilo/plugin/reverie.js", ".kilo/plugin/reverie.js"),
    PI: (".pi/agent/extensions/reverie.js", ".pi/extensions/reverie.js"),
}
PROGRAM = "reverie-hook"


def find_plugin(sandbox, host):
    return sandbox.home / FILES[host][0]


def read_command(file):
    [line] = [line for line in file.read_text().splitlines() if line.startswith("const COMMAND = ")]
    return json.loads(line.removeprefix("const COMMAND = ").removesuffix(";"))


def was_never_heard(_host):
    return False


@pytest.mark.parametrize("host", FILES)
def test_a_plugin_starts_the_hook_client_of_its_host(sandbox, host):
    sandbox.reverie = replace(sandbox.reverie, variables={"REVERIE_HOME": '/srv/ann "s"', "REVERIE_PORT": "7099"})
    sandbox.setup(host)
    options = ["--home", '/srv/ann "s"', "--port", "7099"]
    assert read_command(find_plugin(sandbox, host)) == [str(sandbox.reverie.bin / PROGRAM), host, *options]


@pytest.mark.parametrize("host", FILES)
def test_a_project_s_plugin_names_no_path_of_this_machine(sandbox, host):
    sandbox.reverie = replace(sandbox.reverie, variables={"REVERIE_HOME": "/srv/memory"})
    sandbox.setup(host, host_env=sandbox.in_project())
    assert read_command(sandbox.project / FILES[host][1]) == [PROGRAM, host]


@pytest.mark.parametrize("host", FILES)
def test_only_a_plugin_for_this_machine_s_server_counts_as_connected(sandbox, host):
    sandbox.setup(host)
    assert [found.name for found in list_connected_hosts(sandbox.state, was_never_heard)] == [host]
    sandbox.reverie = replace(sandbox.reverie, server=RemoteServer("acme", "https://memory.acme.example"))
    sandbox.setup(host)
    assert read_command(find_plugin(sandbox, host))[2:] == ["--server", "acme"]
    assert list_connected_hosts(sandbox.state, was_never_heard) == []


@pytest.mark.parametrize("host", FILES)
@pytest.mark.parametrize("text", ["", "export default () => {};\n"])
def test_a_file_of_another_author_is_left_alone(sandbox, host, text):
    file = find_plugin(sandbox, host)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    [plugin, *others] = sandbox.setup(host)
    assert "rename it" in plugin.error
    assert {change.action for change in others} == {"create"}
    sandbox.remove(host)
    assert file.read_text() == text


@pytest.mark.parametrize("host", FILES)
def test_an_old_plugin_is_replaced_and_removed_without_a_record(sandbox, host):
    file = find_plugin(sandbox, host)
    file.parent.mkdir(parents=True)
    file.write_text(f"{MARK}\nconst COMMAND = [];\n")
    [plugin, *_] = sandbox.setup(host)
    assert plugin.action == "change"
    assert read_command(file)[1] == host
    (sandbox.state / "setup.json").write_text("not json")
    sandbox.remove(host)
    assert not file.exists()
