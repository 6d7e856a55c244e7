"""The plugins say the same as one another, as `reverie setup` and as the package."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from web.hosts.entries import HookEntry
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.host import is_our_server
from web.hosts.hosts import BY_NAME
from web.mcp.core_tools import CORE

ROOT = Path(__file__).parents[2]
PLUGINS = {path.name: path for path in sorted((ROOT / "plugins").iterdir())}
MANIFESTS = {
    "claude-code": ".claude-plugin/plugin.json",
    "codex": ".codex-plugin/plugin.json",
    "gemini": "gemini-extension.json",
}


def read(path):
    return json.loads(path.read_text())


def test_every_plugin_has_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [listed] = read(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    manifests = [read(PLUGINS[host] / name) for host, name in MANIFESTS.items()]
    assert set(PLUGINS) == set(MANIFESTS)
    assert {manifest["version"] for manifest in (*manifests, listed)} == {project["version"]}
    assert {manifest["description"] for manifest in (*manifests, listed)} == {project["description"]}


@pytest.mark.parametrize("marketplace", [".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"])
def test_a_marketplace_names_a_plugin_that_is_there(marketplace):
    [listed] = read(ROOT / marketplace)["plugins"]
    source = listed["source"]
    folder = ROOT / (source if isinstance(source, str) else source["path"])
    [manifest] = [folder / name for name in MANIFESTS.values() if (folder / name).exists()]
    assert read(manifest)["name"] == listed["name"]


@pytest.mark.parametrize("host", MANIFESTS)
def test_plugin_hooks_equal_the_setup_hooks_except_for_the_plugin_flag(host):
    host_env = HostEnvironment(Path("/home/ann"), "linux", lambda _name: None, lambda _name: None)
    targets = BY_NAME[host].targets(host_env, Installation(Path("/opt/bin")))
    written = [entry for target in targets for entry in target.entries if isinstance(entry, HookEntry)]
    assert written
    command = f"! command -v reverie-hook >/dev/null || exec reverie-hook {host} --plugin"
    assert read(PLUGINS[host] / "hooks" / "hooks.json")["hooks"] == {
        entry.event: [{"hooks": [dict(entry.handler) | {"command": command}]}] for entry in written
    }


@pytest.mark.parametrize("host", MANIFESTS)
def test_a_plugins_server_is_the_relay(host):
    file = PLUGINS[host] / (MANIFESTS[host] if host == "gemini" else ".mcp.json")
    assert all(is_our_server(server) for server in read(file)["mcpServers"].values())
    assert list(read(file)["mcpServers"]) == ["reverie"]


def test_the_skill_is_one_and_names_tools_that_are_there():
    [skill] = {(folder / "skills" / "memory" / "SKILL.md").read_text() for folder in PLUGINS.values()}
    rows = [line.split("|")[2] for line in skill.splitlines() if line.startswith("| ")][1:]
    named = {row.split("`")[1] for row in rows}
    assert named <= {tool.name for tool in CORE}
    assert len(named) == len(rows) == 6


@pytest.mark.parametrize(
    "page",
    sorted(ROOT.glob("plugins/*/skills/*/SKILL.md")) + sorted(ROOT.glob("plugins/*/commands/*.md")),
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_page_has_front_matter_that_a_host_can_parse(page):
    # A host silently drops the fields of front matter that is no YAML.
    front_matter = yaml.safe_load(page.read_text().split("---\n")[1])
    assert isinstance(front_matter["description"], str)


def test_every_command_has_its_counterpart():
    def commands(host, suffix):
        return {path.stem for path in (PLUGINS[host] / "commands").glob(f"*{suffix}")}

    assert commands("claude-code", ".md") == commands("gemini", ".toml") == {"remember", "recall", "lessons"}
    for path in (PLUGINS["gemini"] / "commands").iterdir():
        assert "{{args}}" in tomllib.loads(path.read_text())["prompt"]
    for path in (PLUGINS["claude-code"] / "commands").iterdir():
        assert "$ARGUMENTS" in path.read_text()
