from dataclasses import replace
from pathlib import Path

import pytest

from web.hosts import installed_files
from web.hosts.environment import HostEnvironment, Installation
from web.hosts.hosts import BY_NAME
from web.hosts.setup_plan import apply, plan_removal, plan_setup


class Sandbox:
    """A home, a project and an installed Reverie in a scratch folder."""

    def __init__(self, root: Path):
        self.root = root
        self.home, self.project, self.state = root / "home", root / "project", root / "home" / ".reverie"
        programs = root / "opt" / "bin"
        for folder in (self.home, self.project, programs):
            folder.mkdir(parents=True)
        (programs / "reverie").touch()
        self.reverie = Installation(programs)
        self.host_env = HostEnvironment(self.home, "linux", lambda _name: None, lambda _name: None)
        self.on_path = replace(self.host_env, which=lambda name: f"/usr/bin/{name}")

    def plan(self, *hosts, remove=False, host_env=None):
        plan = plan_removal if remove else plan_setup
        chosen = [BY_NAME[host] for host in hosts]
        return plan(chosen, host_env or self.host_env, self.reverie, installed_files.read_state(self.state))

    def setup(self, *hosts, **options):
        return apply(self.plan(*hosts, **options), self.state)

    def remove(self, *hosts, **options):
        return self.setup(*hosts, remove=True, **options)

    def in_project(self, host_env=None):
        return replace(host_env or self.on_path, project=self.project)

    def files(self):
        """Return what stands in the home and the project, the record of setups aside, with empty folders."""
        found = {}
        for folder in (self.home, self.project):
            for path in sorted(folder.rglob("*")):
                if self.state not in (path, *path.parents):
                    found[str(path.relative_to(self.root))] = path.read_bytes() if path.is_file() else None
        return found


@pytest.fixture
def sandbox(tmp_path):
    return Sandbox(tmp_path / "sandbox")
