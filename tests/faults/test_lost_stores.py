"""A store that was used and is missing, empty or damaged is reported with its snapshot, and not begun anew."""

import contextlib
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from pipeline.features.snapshots.job import restore_snapshot, take_snapshot
from pipeline.kernel.errors import StoreDamaged
from pipeline.kernel.records import Draft
from pipeline.kernel.store import backup
from pipeline.kernel.store.moves import HomeFiles
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import accept_batch, digest_all, fast_settings, open_web, open_worker
from web.cli import cli
from web.http.app import create_app

NOW = datetime(2026, 3, 1, 3, tzinfo=UTC)
WORDS = ["Zebras graze at dawn", "Giraffes sleep standing"]


def delete(file):
    file.unlink()


def empty(file):
    file.write_bytes(b"")


def zero_header(file):
    with file.open("r+b") as store:
        store.write(b"\0" * 100)


LOSSES = [delete, empty, zero_header]


@pytest.fixture
def settings(tmp_path):
    return fast_settings(tmp_path / "home")


@pytest.fixture
def paths(settings):
    with contextlib.closing(open_worker(settings)) as worker:
        accept_batch(worker.databases.get("default", create=True), [Draft(content) for content in WORDS])
        digest_all(worker)
        worker.context("default").rebuild_segment()
        paths = settings.paths.workspace("default")
        take_snapshot(paths, NOW)
    return paths


def lose(paths, loss, *, keep=("snapshots", "lexical", "vectors.lance")):
    for entry in paths.root.iterdir():
        if entry.is_dir() and entry.name not in keep:
            shutil.rmtree(entry)
        elif entry.name.startswith("events.sqlite-") and entry.name not in keep:
            entry.unlink()
    loss(paths.events)


def ask_all(container):
    """Return the answers to a read, a search and a write."""
    client = CheckedClient(create_app(container), container.token)
    bodies = {"/v1/recall": {"query": "zebra"}, "/v1/memories": {"content": "a new memory"}}
    return [client.get("/v1/memories"), *(client.post(path, body) for path, body in bodies.items())]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("keep", [("snapshots",), ("lexical",), ("vectors.lance",), ("turns.lance", "turns")])
def test_store_with_remaining_traces_is_not_recreated(settings, paths, loss, keep):
    if keep[0].startswith("turns"):
        paths.turn_vectors.mkdir()
        (paths.turn_vectors / "data").touch()
    lose(paths, loss, keep=keep)
    with contextlib.closing(open_web(settings)) as container:
        answers = ask_all(container)
    assert [answer.status_code for answer in answers] == [503] * 3
    detail = answers[0].get_json()["detail"]
    assert str(paths.events) in detail
    if keep == ("snapshots",) and loss is not zero_header:
        assert f"reverie -w default store snapshot restore {backup.snapshots(paths.snapshots)[0].name}" in detail
    assert loss is not delete or not paths.events.exists()
    assert loss is not empty or paths.events.stat().st_size == 0


@pytest.mark.parametrize("loss", [delete, empty])
def test_store_lost_under_a_running_server_is_not_recreated(settings, paths, loss):
    with contextlib.closing(open_web(settings)) as container:
        assert [answer.status_code for answer in ask_all(container)] == [200, 200, 201]
        loss(paths.events)
        assert [answer.status_code for answer in ask_all(container)] == [503] * 3


@pytest.mark.parametrize("loss", LOSSES)
def test_doctor_names_the_snapshot_and_it_brings_everything_back(settings, paths, loss, monkeypatch):
    lose(paths, loss)
    monkeypatch.setenv("REVERIE_HOME", str(settings.home))
    name = backup.snapshots(paths.snapshots)[0].name
    doctor = CliRunner().invoke(cli, ["doctor"])
    assert "fail  default: store" in doctor.output
    assert f"reverie -w default store snapshot restore {name}" in doctor.output
    with pytest.raises(StoreDamaged):
        take_snapshot(paths, NOW)
    assert len(backup.snapshots(paths.snapshots)) == 1
    assert restore_snapshot(paths, "latest", datetime.now(UTC), print).memories == len(WORDS)
    with contextlib.closing(open_web(settings)) as container:
        assert [answer.status_code for answer in ask_all(container)] == [200, 200, 201]


def test_the_log_of_an_emptied_store_is_kept(settings, paths):
    log = paths.events.with_name("events.sqlite-wal")
    lose(paths, empty)
    log.write_bytes(b"the last commits")
    with contextlib.closing(open_web(settings)) as container:
        assert [answer.status_code for answer in ask_all(container)] == [503] * 3
    restored = restore_snapshot(paths, "latest", datetime.now(UTC), print)
    assert (paths.snapshots / f"{restored.aside}.sqlite-wal").read_bytes() == b"the last commits"


def test_deliberately_deleted_workspace_starts_empty(settings, paths):
    HomeFiles(settings.paths).delete("default")
    with contextlib.closing(open_web(settings)) as container:
        assert [answer.status_code for answer in ask_all(container)] == [404, 404, 201]


def test_an_empty_file_of_a_workspace_that_was_never_used_is_a_new_store(settings):
    file = settings.paths.workspace("default").events
    file.parent.mkdir(parents=True)
    file.touch()
    with contextlib.closing(open_web(settings)) as container:
        assert [answer.status_code for answer in ask_all(container)] == [200, 200, 201]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE memory SET content = CAST(x'5aff62' AS TEXT)",
        "UPDATE memory SET tags = '{'",
        "UPDATE memory SET kind = 'faco'",
        "UPDATE memory SET details = '[3'",
    ],
)
def test_damaged_texts_are_a_damaged_store(settings, paths, damage):
    with contextlib.closing(sqlite3.connect(paths.events)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f'DROP TRIGGER "{name}"')
        db.execute("PRAGMA ignore_check_constraints=ON")
        db.execute(damage)
        db.commit()
    with contextlib.closing(open_web(settings)) as container:
        client = CheckedClient(create_app(container), container.token)
        answer = client.get("/v1/memories")
        page = client.browser().get("/", headers=client.auth)
    assert answer.status_code == 503
    assert "reverie store snapshot list" in answer.get_json()["detail"]
    assert "Z" not in answer.get_json()["detail"].replace(str(paths.events), "")
    assert page.status_code == 503


def test_a_journal_of_a_later_version_is_refused_and_named(settings, paths, monkeypatch):
    monkeypatch.setenv("REVERIE_HOME", str(settings.home))
    with contextlib.closing(open_web(settings)) as container:
        container.operations.record_error("x", "y")
    file = settings.paths.home
    with contextlib.closing(sqlite3.connect(file)) as db:
        values = ("reverie-home", "m999_later", "2030")
        db.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, ?)", values)
        db.commit()
    before = file.read_bytes()
    with contextlib.closing(open_web(settings)) as container:
        assert CheckedClient(create_app(container), container.token).get("/v1/errors").status_code == 503
    doctor = CliRunner().invoke(cli, ["doctor"])
    assert f"fail  home.sqlite: {file} was changed by another version" in doctor.output
    assert "move the file away" in doctor.output
    assert file.read_bytes() == before
