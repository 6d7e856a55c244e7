"""A command of a read-only session changes nothing that is stored, or is refused.

The commands are those of the command line itself, so that a new one is tested, too.
"""

import contextlib
import json
import os
import shlex
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.fakes.claude_sessions import write_sessions
from tests.fakes.client import CheckedClient
from tests.fakes.command_line import serve_app
from tests.fakes.exports import EXPORTS
from tests.fakes.in_process import fast_settings, flush_notes, open_web
from tests.fakes.pdfs import pdf
from tests.integration.test_read_only_sessions import FACT, LESSON, dump, list_changed, list_tables
from web.cli import cli
from web.cli.command import list_declared
from web.http.app import create_app

pytestmark = [pytest.mark.files, pytest.mark.timeout(300)]

# Commands that are not run here, each with its reason.
LEFT_OUT = {
    "up": "starts the stack",
    "down": "stops the stack",
    "setup": "writes the files of agents, and starts `import sessions`",
    "tail": "reads events until it is interrupted",
    "mcp": "its tools are tested with those of every session",
    "team serve": "starts a server",
    "service install": "changes the services of the machine",
    "service remove": "changes the services of the machine",
    "model compile": "compiles a model for minutes, and opens no store",
    "store migrate": "needs a server of PostgreSQL",
}
# The values of required arguments, by name.
VALUES = {
    "memory_id": "{fact}",
    "goal_id": "{goal}",
    "surface_id": "unknown",
    "entry_id": "1",
    "run": "1",
    "text": "A new memory by a command",
    "query": "billing port",
    "error": "billing port",
    "task": "deploy billing",
    "subject": "billing",
    "attribute": "port",
    "value": "9",
    "title": "A goal by a command",
    "outcome": "followed",
    "session": "s1",
    "name": "named",
    "new_name": "renamed",
    "target": "other",
    "into": "other",
    "alias": "other",
    "around": "billing",
    "source": "project",
    "url": "dir:{folder}/remote",
    "code": "no-code",
    "device": "no-device",
    "workspace_id": "default",
    "role": "reader",
    "shell": "bash",
    "path": "{folder}/notes.jsonl",
    "file": "{folder}/all.bundle",
    "notification": '{{"type": "agent-turn-complete", "thread-id": "s1", "input-messages": ["We use pnpm"], '
    '"last-assistant-message": "Noted"}}',
}
# The complete arguments of commands whose required arguments alone do nothing or are invalid.
LINES = {
    "blame": "{folder}/a.py",
    "codex-notify": "--home {home} '{notification}'",
    "dashboard": "--print-url",
    "doctor": "--fix",
    "edit": "{fact} --content 'Changed by a command' --pin",
    "export": "{folder}/again.bundle",
    "forget": "{fact} --yes",
    "goals set": "{goal} --status done",
    "import chatgpt": "{exports}/chatgpt.json",
    "import claude": "{exports}/claude.json",
    "import markdown": "{folder}/notes.md",
    "import mem0": "{exports}/mem0.json",
    "import pmb": "{exports}/pmb.json",
    "index git": "{folder}",
    "index pdf": "{folder}/paper.pdf",
    "index project": "{folder}",
    "jobs run": "decay",
    "sleep": "--all",
    "me edit": "{personal} 'I prefer trains'",
    "me purge": "{personal} --yes",
    "model use": "hash",
    "config set": "recall_budget_ms 4000",
    "purge": "{fact} --yes",
    "review conflicts": "--list",
    "review duplicates": "--list",
    "sessions incognito on": "--session s1",
    "sessions incognito off": "--session s1",
    "sync add": "elsewhere dir:{folder}/remote",
    "team add": "--token-file {folder}/token shop https://127.0.0.1:1",
    "token": "--renew --yes",
    "user add": "ada --role writer",
    "user remove": "grace --yes",
    "user grant": "grace default owner",
    "user ungrant": "grace default",
    "user revoke": "grace",
    "workspace delete": "other --yes",
    "workspace move": "{fact} other",
    "workspace trust": "--yes",
    "workspace use": "default",
    "store snapshot restore": "latest",
    "store encrypt": "--key-file {folder}/reverie.key",
}
# Commands that change tables in other sessions; the test below would otherwise hold for calls that do nothing.
WRITING = {
    *("remember", "edit", "forget", "restore", "facts set", "facts end", "goals add", "goals set", "me add", "me edit"),
    *("import jsonl", "import markdown", "import chatgpt", "import sessions", "index project"),
    *("index git", "index pdf", "sessions rename", "sessions incognito on", "user add", "user grant", "user remove"),
    *("sync invite", "sync add", "jobs run", "workspace move", "codex-notify"),
}
# Commands that are refused, too, although they wait for a worker or find nothing to do in the test below.
REFUSED = WRITING | {
    *("import bundle", "store rebuild", "store encrypt", "store decrypt", "store snapshot restore", "model embed"),
    *("workspace delete", "doctor", "sync join", "sync now", "sync repair", "sync revoke"),
}


def list_commands(command=cli, path=()):
    """Return every command of the command line by its path, and groups that do something without a command."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    context = click.Context(command)
    declared = (entry.name for entry in list_declared() if " " not in entry.name)
    names = dict.fromkeys([*command.list_commands(context), *(() if path else (*command._own, *declared))])
    found = {" ".join(path): command} if command.invoke_without_command else {}
    for name in names:
        found |= list_commands(command.get_command(context, name), (*path, name))
    return found


COMMANDS = list_commands()


class Place:
    """A data directory with a server, memories, people and files to import."""

    def __init__(self, folder, container):
        self.folder, self.container = folder, container
        client = CheckedClient(create_app(container), container.token)
        fact, goal = client.write(FACT), client.post("/v1/goals", {"title": "Ship it"}).get_json()["id"]
        personal = client.write("I prefer planes", scope={"kind": "user"})
        client.write(**LESSON)
        client.put("/v1/facts/billing/port", {"value": "8123"})
        client.write("Another workspace", workspace="other")
        client.post("/v1/turns", {"session_id": "s1", "messages": [{"role": "user", "content": "Hello"}]})
        flush_notes(container)
        self.values = {"fact": fact, "goal": goal, "personal": personal}
        self.values |= {"folder": folder, "exports": EXPORTS, "home": container.settings.paths.root}
        self.make_files()

    def make_files(self):
        (self.folder / "a.py").write_text("PORT = 8123\n")
        (self.folder / "notes.jsonl").write_text(json.dumps({"content": "A memory of a file"}) + "\n")
        (self.folder / "notes.md").write_text("# Notes\n\nStaging listens on port 5433 since the move to Hetzner.\n")
        (self.folder / "paper.pdf").write_bytes(pdf(["Tea from Uji is sold by the shop in spring."]))
        (self.folder / "token").write_text("rvp_no-token\n")
        for line in ("init -q", "add a.py", "-c user.name=a -c user.email=a@b commit -qm 'Move billing to port 8123'"):
            subprocess.run(["git", "-C", self.folder, *shlex.split(line)], check=True)
        write_sessions(Path.home(), self.folder)

    def line(self, name):
        """Return the arguments of a command."""
        values = self.values | {"notification": VALUES["notification"].format()}
        if name in LINES:
            return shlex.split(LINES[name].format(**values))
        required = [one for one in COMMANDS[name].params if one.required]
        unknown = [one.name for one in required if one.name not in VALUES]
        assert unknown == [], f"add values for {unknown}, or the arguments of `{name}` to LINES"
        return [VALUES[one.name].format(**values) for one in required]

    def run(self, name):
        return CliRunner().invoke(cli, [*name.split(), *self.line(name)], input="")

    def stored(self):
        """Return every row of every workspace, and of the data directory except errors and workers."""
        flush_notes(self.container)
        paths, rows = self.container.settings.paths, {}
        for workspace_id in paths.workspace_ids():
            with self.container.databases.get(workspace_id).read() as db:
                rows |= {(workspace_id, table): dump(db, table) for table in list_tables(db)}
        passing = ("error", "worker")
        with self.container.stores.operations.tables.read() as db:
            return rows | {("", table): dump(db, table) for table in list_tables(db) if table not in passing}


@contextlib.contextmanager
def open_place(folder, monkeypatch):
    """Serve a data directory, which is that of this process for as long."""
    user_home, project = folder / "user", folder / "project"
    for made in (user_home, project, folder / "home"):
        made.mkdir()
    monkeypatch.setenv("HOME", str(user_home))
    monkeypatch.setenv("REVERIE_HOME", str(folder / "home"))
    monkeypatch.setenv("REVERIE_WORKSPACE", "default")
    monkeypatch.chdir(project)
    container = open_web(fast_settings(folder / "home"))
    try:
        with serve_app(container) as port:
            monkeypatch.setenv("REVERIE_PORT", str(port))
            monkeypatch.setenv("REVERIE_EMBEDDING_MODEL", "hash")
            place = Place(project, container)
            for line in (
                "status",
                "user add Grace --role writer",
                f"export {project}/all.bundle",
                "store snapshot take",
            ):
                done = CliRunner().invoke(cli, shlex.split(line))
                assert done.exit_code == 0, done.output
            yield place
    finally:
        container.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch, open_place(tmp_path_factory.mktemp("read-only"), patch) as opened:
        patch.setenv("REVERIE_READ_ONLY", "1")
        opened.variables = {name: value for name, value in os.environ.items() if name.startswith("REVERIE_")}
        # Only the tests that ask for this place have them.
        for name in opened.variables:
            patch.delenv(name)
        yield opened


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - LEFT_OUT.keys()))
def test_a_command_of_a_read_only_session_changes_nothing(place, name, monkeypatch):
    for variable, value in place.variables.items():
        monkeypatch.setenv(variable, value)
    before = place.stored()
    done = place.run(name)
    assert list_changed(before, place.stored()) == [], done.output
    assert not (done.exit_code == 2 and "Usage:" in done.output), f"the arguments are invalid: {done.output}"
    if name in REFUSED and name != "codex-notify":
        assert done.exit_code != 0, done.output
        assert "read-only" in done.output.lower() or "read only" in done.output.lower(), done.output


def test_the_same_commands_change_tables_in_another_session(tmp_path, monkeypatch):
    silent = []
    with open_place(tmp_path, monkeypatch) as place:
        for name in sorted(WRITING):
            before = place.stored()
            done = place.run(name)
            if not list_changed(before, place.stored()):
                silent.append((name, done.output, done.exception))
    assert silent == []


def test_every_command_that_is_left_out_exists():
    assert LEFT_OUT.keys() <= COMMANDS.keys()
    assert LINES.keys() <= COMMANDS.keys()
    assert COMMANDS.keys() - LEFT_OUT.keys() >= WRITING
