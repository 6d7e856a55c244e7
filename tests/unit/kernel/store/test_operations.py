import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from config.paths import STORE_KEY
from pipeline.kernel.store import operations
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.operations import Operations


@pytest.fixture
def journal(tmp_path):
    return Operations(HomeFile(tmp_path / "home.sqlite"), lambda text: text.replace("secret", "[masked]"))


def test_an_error_is_masked_and_cut_before_it_is_kept(journal):
    journal.record_error("web", "the secret " + "x" * 10_000)
    [error] = journal.errors(workspace=None, limit=10)
    assert error.message.startswith("the [masked]")
    assert len(error.message) == operations.KEPT_CHARS


def test_only_the_newest_errors_are_kept(journal, monkeypatch):
    monkeypatch.setattr(operations, "KEPT_ERRORS", 3)
    for number in range(6):
        journal.record_error("web", str(number))
    assert [error.message for error in journal.errors(workspace=None, limit=10)] == ["5", "4", "3"]


def test_a_journal_that_is_deleted_comes_back(journal, tmp_path):
    journal.record_error("web", "before")
    for file in tmp_path.iterdir():
        file.unlink()
    journal.record_error("web", "after")
    assert [error.message for error in journal.errors(workspace=None, limit=10)] == ["after"]


def test_an_error_that_cannot_be_kept_is_printed(journal, tmp_path, capsys):
    (tmp_path / "home.sqlite").mkdir()
    journal.record_error("web", "a secret failed")
    assert "web: a [masked] failed (not logged" in capsys.readouterr().err


def test_error_that_cannot_be_encrypted_is_printed_without_its_text(journal, tmp_path, capsys):
    (tmp_path / STORE_KEY).write_text("/nowhere/reverie.key\n0\n")
    journal.record_error("web", "no vector for quokka")
    said = capsys.readouterr().err
    assert "quokka" not in said
    assert said.startswith("web: an error (not logged: ")
    assert not (tmp_path / "home.sqlite").exists()


def test_workers_report_and_are_forgotten(journal):
    journal.report_worker("one")
    journal.report_worker("two")
    journal.report_worker("one")
    assert [worker.owner for worker in journal.workers()] == ["one", "two"]
    journal.forget_worker("one")
    assert [worker.owner for worker in journal.workers()] == ["two"]


def test_processes_that_start_at_once_make_the_tables_once(tmp_path):
    file = tmp_path / "home.sqlite"
    journals = [Operations(HomeFile(file), str) for _ in range(8)]
    together = threading.Barrier(len(journals))

    def report(journal: Operations, owner: str) -> None:
        together.wait()
        journal.report_worker(owner)

    with ThreadPoolExecutor(len(journals)) as pool:
        for done in [pool.submit(report, journal, f"host:{i}:0") for i, journal in enumerate(journals)]:
            done.result()
    assert len(journals[0].workers()) == len(journals)


def test_errors_since_a_time_include_global_errors(journal, monkeypatch):
    for at, workspace in ((10, "mine"), (20, "mine"), (30, None), (40, "another")):
        monkeypatch.setattr(operations.time, "time", lambda now=at: now)
        journal.record_error("web", "boom", workspace=workspace)
    assert [journal.errors_since("mine", at) for at in (10, 20, 25, 35)] == [3, 2, 1, 0]


def test_repaired_error_is_not_listed_as_open(journal):
    for component, workspace in (("digest.embed", "a"), ("digest.embed", "b"), ("sweep", "a")):
        journal.record_error(component, "broken", workspace=workspace)
    journal.mark_repaired(["digest.embed"], workspace="a", before=time.time() + 1)
    journal.record_error("digest.embed", "broken again", workspace="a")
    still = [(error.component, error.message) for error in journal.errors(workspace="a", limit=9, open_only=True)]
    assert still == [("digest.embed", "broken again"), ("sweep", "broken")]
    everything = journal.errors(workspace="a", limit=9)
    assert [error.repaired_at is not None for error in everything] == [False, False, True]
    assert journal.errors(workspace="b", limit=9, open_only=True)[0].repaired_at is None


def test_an_error_of_the_turn_that_ends_well_is_not_repaired_by_it(journal):
    began = time.time() - 1
    journal.record_error("digest.embed", "one memory failed", workspace="a")
    journal.mark_repaired(["digest.embed"], workspace="a", before=began)
    assert journal.errors(workspace="a", limit=9, open_only=True) != []
