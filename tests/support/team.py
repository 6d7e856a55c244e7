"""A web server for a team as `reverie team serve` starts it, and people with tokens of their own."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from config.paths import HomePaths
from pipeline.features.people.usecases import add_person, add_token, grant
from pipeline.kernel.records.people import Role
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.people import People
from tests.support.stack import ROOT, Stack, wait_until


def make_token(home: Path, name: str, *, is_admin: bool = False, **roles: str) -> str:
    """Add somebody with a role in each workspace that is named; return a token of theirs."""
    with closing(HomeFile(HomePaths(home).home)) as file:
        people = People(file)
        person = add_person(people, name, is_admin=is_admin)
        for workspace, role in roles.items():
            grant(people, person, workspace, Role(role))
        return add_token(people, person, "laptop").secret


def serve_command(*options: str) -> list[str]:
    """Return the command `reverie team serve` with options."""
    return [sys.executable, "-m", "web.cli", "team", "serve", *options]


@contextlib.contextmanager
def serving(stack: Stack, *options: str, environment: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """Let `reverie team serve --only web` run on a home during a block, with further options."""
    with (stack.logs / "web.log").open("ab") as log:
        stack.running["web"] = subprocess.Popen(
            serve_command("--only", "web", *options),
            cwd=ROOT,
            env={**stack.environment, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until("the web server answers", lambda: stack.running["web"].poll() is not None or stack.is_healthy())
        assert stack.running["web"].poll() is None, stack.tail("web")
        yield stack
    finally:
        stack.stop()
