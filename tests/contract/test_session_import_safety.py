"""A killed import loses and doubles nothing; no secret is written to disk, and no newer fact is overruled."""

import json
import random
import string
import subprocess

import pytest

from benchmarks.session_import import TranscriptWriter
from pipeline.bootstrap.command import CommandContainer
from pipeline.features.workspaces.usecases import choose_workspace
from pipeline.kernel.records import Scope
from pipeline.kernel.store import facts, turns
from pipeline.kernel.times import utc_now
from pipeline.sessions.import_usecases import ImportOptions, import_sessions
from tests.fakes import transcripts
from tests.fakes.in_process import digest_all
from tests.fakes.statements import MarkedStatements
from tests.fakes.transcripts import assistant, user, write_session
from tests.support.killed import run_until_killed

KILLED = """
import sys, time
from pipeline.sessions import import_usecases as session_import
from pipeline.kernel.store.transcripts import Transcripts

session_import.BATCH_ITEMS = 30
put, calls = Transcripts.note_read, []

def stop(self, agent, marks):
    calls.append(agent)
    is_last = len(calls) == 3
    if not (is_last and sys.argv[1] == "before the marks"):
        put(self, agent, marks)
    if is_last:
        print("here", flush=True)
        time.sleep(600)

Transcripts.note_read = stop
from web.cli import cli
cli.main(["import", "sessions"])
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def run(container, tmp_path):
    def run(**options):
        places = transcripts.places(tmp_path)
        options = ImportOptions(**options)
        return import_sessions(
            container.settings, container.stores.transcripts, container.workspace, options, places=places
        )

    return run


def _rows(container, project):
    choice = choose_workspace(project, container.settings, explicit=None, environment=None)
    with container.workspace(choice.workspace).database.read() as db:
        said = db.execute("SELECT session_id, role, content, at FROM turn").fetchall()
        done = db.execute("SELECT session_id, tool, target, at FROM action").fetchall()
    return sorted(map(tuple, said)), sorted(map(tuple, done))


@pytest.mark.parametrize("moment", ["before the marks", "after the marks"])
def test_an_import_that_is_killed_goes_on_without_loss_or_doubles(home, project, tmp_path, monkeypatch, moment):
    monkeypatch.setattr("benchmarks.session_import.SESSION_BYTES", 400_000)
    writer = TranscriptWriter(tmp_path / ".claude" / "projects", project, seed=3)
    # Enough for child processes.
    writer.write(6_000_000)
    monkeypatch.setenv("HOME", str(tmp_path))
    run_until_killed(KILLED, moment)
    container = CommandContainer(home)
    before = sum(map(len, _rows(container, project)))
    assert import_sessions(home, container.stores.transcripts, container.workspace).agents["claude-code"].turns
    said, done = _rows(container, project)
    container.close()
    assert before < len(said) + len(done)
    transcripts_read = list((tmp_path / ".claude").rglob("*.jsonl"))
    assert len({session for session, *_ in said}) == len(transcripts_read)
    assert len(said) == len(set(said))
    assert len(done) == len(set(done))
    assert len(said) == sum(_count_said(file) for file in transcripts_read)


def _count_said(file):
    """Count the messages of a made-up transcript with words in them."""
    records = map(json.loads, file.read_text().splitlines())
    blocks = [record["message"]["content"] for record in records if "message" in record]
    return sum(isinstance(block, str) or block[0]["type"] == "text" for block in blocks)


# Secrets

LETTERS = string.ascii_letters + string.digits
FORMS = (
    lambda pick: f"ghp_{pick(36)}",
    lambda pick: f"AKIA{pick(16).upper()}",
    lambda pick: f"sk-ant-api03-{pick(40)}",
    lambda pick: f"xoxb-{pick(12, string.digits)}-{pick(24)}",
    lambda pick: f"AIza{pick(35)}",
    lambda pick: f"glpat-{pick(20)}",
    lambda pick: f"npm_{pick(36)}",
    lambda pick: f"hf_{pick(34)}",
    lambda pick: f"SG.{pick(22)}.{pick(43)}",
    lambda pick: f"sk_live_{pick(24)}",
)


def _plant(number, secret):
    """Return records of Claude Code with a secret in one of twenty places."""
    at = f"2026-03-01T10:{number % 60:02d}:{number // 60:02d}.000Z"
    base = {"sessionId": "planted", "timestamp": at, "uuid": f"u{number}", "gitBranch": "main"}

    def said(content, kind="user", **more):
        message = {"role": kind, "content": content}
        return base | {"type": kind, "message": message} | more

    def call(name, arguments, result=None, **outcome):
        block = {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result or "done", **outcome}
        return [said([block], "assistant"), said([answer])] if result is not None else [said([block], "assistant")]

    filler = "x" * (299 - len("Exit code 1 token ") - 20)
    places = (
        lambda: [said(f"Use the token {secret} for the deployment.")],
        lambda: [said(f"My key is {secret}", "assistant")],
        lambda: [said([{"type": "text", "text": f"I set API_TOKEN={secret}."}], "assistant")],
        lambda: call("Bash", {"command": f"curl -H 'Authorization: Bearer {secret}' https://example.com"}, "ok"),
        lambda: call("Bash", {"command": f"export TOKEN={secret} && make deploy"}, "ok"),
        lambda: call("Edit", {"file_path": "a.py", "old_string": f"KEY = '{secret}'", "new_string": "KEY = ''"}, "ok"),
        lambda: call("Write", {"file_path": f"keys/{secret}.txt", "content": secret}, "ok"),
        lambda: call("Bash", {"command": "make"}, f"Exit code 1\nrefused {secret}", is_error=True),
        lambda: call("Bash", {"command": "make x"}, f"Exit code 1 token {filler}{secret}", is_error=True),
        lambda: call("Bash", {"command": "cat .env"}, f"TOKEN={secret}"),
        lambda: call("mcp__db__query", {"sql": "select"}, f"Error: bad password {secret}", is_error=True),
        lambda: call("Bash", {"command": f"echo {secret} > waiting"}),
        lambda: [base | {"type": "queue-operation", "operation": "enqueue", "content": f"also use {secret}"}],
        lambda: [base | {"type": "summary", "summary": f"Rotate {secret}", "leafUuid": "u1"}],
        lambda: [said(f"Checked out {secret}.", gitBranch=f"fix/{secret}")],
        lambda: [said(f"<command-name>/login</command-name><command-args>{secret}</command-args>")],
        lambda: [said(f"<bash-input>gh auth login --with-token {secret}</bash-input>")],
        lambda: [
            said([{"type": "tool_result", "tool_use_id": "x", "content": "ok"}, {"type": "text", "text": secret}])
        ],
        lambda: [base | {"type": "attachment", "attachment": {"type": "queued_command", "prompt": f"and {secret}"}}],
        lambda: [said("word " * 1990 + secret)],
    )
    return places[number % len(places)]()


def _secrets():
    dice = random.Random(11)

    def pick(count, letters=LETTERS):
        # A digit and both cases, as every real one has.
        return "a7K" * (letters is LETTERS) + "".join(dice.choices(letters, k=count - 3 * (letters is LETTERS)))

    return [FORMS[number % len(FORMS)](pick) for number in range(200)]


def test_no_secret_of_a_transcript_is_on_disk(run, container, project, tmp_path):
    secrets = _secrets()
    assert len(set(secrets)) == 200
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    records = [
        record | {"cwd": str(project)} for number, secret in enumerate(secrets) for record in _plant(number, secret)
    ]
    (folder / "planted.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    summary = run().agents["claude-code"]
    assert summary.turns > 60
    assert summary.actions > 50
    said, done = _rows(container, project)
    assert sum("[REDACTED:" in content for _, _, content, _ in said) > 60
    assert sum("[REDACTED:" in target for _, _, target, _ in done) > 30
    container.feedback.flush()
    files = [file for file in container.settings.paths.root.rglob("*") if file.is_file()]
    assert any(file.name == "home.sqlite" for file in files) or container.settings.store.reveal()
    on_disk = b"".join(file.read_bytes() for file in files)
    # Also no half of one that was cut.
    assert [secret for secret in secrets if secret[: len(secret) // 2].encode() in on_disk] == []


@pytest.mark.files
def test_encrypted_store_contains_no_readable_session_text(
    run, container, project, encrypt_stores, tmp_path, monkeypatch
):
    encrypt_stores()
    transcripts.install(monkeypatch)
    talk = [user("The walrus migrates northward.", "2026-03-01T10:00:00.000Z"), assistant("Walrus noted.", None)]
    write_session(tmp_path / ".fake", "s1", talk, cwd=str(project))
    assert run().agents["fake"].turns == 2
    assert len(_rows(container, project)[0]) == 2
    assert run().agents["fake"].unchanged == 1
    files = [file for file in container.settings.paths.root.rglob("*") if file.is_file()]
    assert [file for file in files if b"alrus" in file.read_bytes()] == []
    assert not (container.settings.paths.home).read_bytes().startswith(b"SQLite format")


SAID = {
    "older": ("2026-01-05T10:00:00.000Z", "Staging runs on port 5432 now."),
    "newer": ("2026-03-05T10:00:00.000Z", "Staging runs on port 6543 now."),
}


@pytest.mark.parametrize("first", ["older", "newer"])
def test_an_old_statement_overrules_no_newer_fact(run, container, project, worker, tmp_path, monkeypatch, first):
    """Sessions are captured in the order of their import; facts are placed by the time at which they were said."""
    worker._statements = MarkedStatements()
    worker._statements.labels = {text: "fact" for _, text in SAID.values()}
    worker._classifier = lambda *_given: worker._statements
    transcripts.install(monkeypatch)
    for number, name in enumerate(sorted(SAID, key=lambda name: name != first)):
        at, text = SAID[name]
        write_session(tmp_path / ".fake", name, [user(text, at)], cwd=str(project), at=1000 + number)
        run()
        choice = choose_workspace(project, container.settings, explicit=None, environment=None)
        # Also what was captured.
        for _ in range(2):
            digest_all(worker, choice.workspace)
    with container.workspace(choice.workspace).database.read() as db:
        current = [fact.details["value"] for fact in facts.page(db, Scope(), None, utc_now(), 10, None)]
        assert len([text for _, text in turns.list_texts_after(db, 0, 1000) if "port" in text]) == 2
    assert current == [6543]
