import shutil
import threading

import pytest

from config.paths import HomePaths
from pipeline.bootstrap.command import CommandContainer
from pipeline.features.maintenance.usecases import complete_store_files
from pipeline.kernel.errors import StoreUnavailable
from pipeline.kernel.records import Draft
from pipeline.kernel.store import driver, meta
from pipeline.kernel.store.checkpoints import complete_files, has_log
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import PROFILE, accept_batch, fast_settings

pytestmark = [pytest.mark.usefixtures("either_home"), pytest.mark.files]
TEXT = "The cache is written behind the queue"


@pytest.fixture
def paths(tmp_path):
    return HomePaths(tmp_path / "home")


@pytest.fixture
def open_database(paths):
    opened = []

    def open_again():
        opened.append(SqliteDatabase(paths.workspace("default").events, PROFILE, create=True))
        return opened[-1]

    yield open_again
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database):
    return open_database()


def copied_texts(file):
    """Copy only the main file, and return the texts in the copy."""
    copy = file.with_name("copy.sqlite")
    shutil.copyfile(file, copy)
    connection = driver.connect(copy)
    try:
        return [text for (text,) in connection.execute("SELECT content FROM memory")]
    finally:
        connection.close()
        for piece in copy.parent.glob("copy.sqlite*"):
            piece.unlink()


def test_closing_a_database_completes_its_file_despite_other_readers(database, open_database):
    other = open_database()
    with other.read() as db:
        meta.get(db, "any")
    accept_batch(database, [Draft(TEXT)])
    assert has_log(database.file)
    database.close()
    assert not has_log(database.file)
    assert copied_texts(database.file) == [TEXT]


def test_a_process_that_never_checkpoints_closes_the_file_unchanged(database):
    accept_batch(database, [Draft(TEXT)])
    reader = SqliteDatabase(database.file, WriterProfile("NORMAL", 0, 5000), create=False)
    with reader.read() as db:
        meta.get(db, "any")
    reader.close()
    assert has_log(database.file)


def test_completing_a_file_waits_for_no_reader_and_no_writer(database, open_database):
    accept_batch(database, [Draft(TEXT)])
    reader, begun, finished = open_database(), threading.Event(), threading.Event()

    def read():
        with reader.read() as db:
            meta.get(db, "any")
            begun.set()
            finished.wait(30)

    thread = threading.Thread(target=read)
    thread.start()
    begun.wait(30)
    try:
        accept_batch(database, [Draft("A later memory")])
        assert not database.complete_file()
        with database.write() as db:
            assert not open_database().complete_file()
            # The timeout for writers is unchanged.
            assert db.execute("PRAGMA busy_timeout").fetchone() == (PROFILE.busy_timeout_ms,)
    finally:
        finished.set()
        thread.join()
    assert database.complete_file()
    assert copied_texts(database.file) == [TEXT, "A later memory"]


def test_a_store_that_was_replaced_while_open_is_closed_without_an_error(database):
    accept_batch(database, [Draft(TEXT)])
    file = database.file
    shutil.copyfile(file, file.with_name("other"))
    file.with_name("other").replace(file)
    database.close()


def write(database, name, size):
    with database.write() as db:
        meta.put(db, name, "x" * size)


def measure_log(database):
    return database.file.with_name("events.sqlite-wal").stat().st_size


def test_a_log_that_grew_under_a_reader_shrinks_with_the_next_writes(database, open_database, monkeypatch):
    monkeypatch.setattr("pipeline.kernel.store.sqlite.MOST_LOG_BYTES", 100_000)
    reader, writer = open_database(), open_database()
    with reader.read() as db:
        meta.get(db, "any")
        write(writer, "large", 10_000_000)
        assert measure_log(writer) > 10_000_000
    # The first moves the log into the file, the second starts it again.
    write(writer, "first", 1)
    write(writer, "second", 1)
    assert measure_log(writer) <= 100_000


def test_a_command_that_writes_for_long_moves_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.bootstrap.command.CHECKPOINT_PAGES", 100)
    container = CommandContainer(fast_settings(tmp_path / "import"))
    database = container.databases.get("default", create=True)
    for number in range(10):
        write(database, f"part {number}", 1_000_000)
    assert measure_log(database) < 4_000_000
    container.close()


def leave_logs(paths, database, target):
    """Copy a data directory as a killed process leaves it."""
    accept_batch(database, [Draft(TEXT)])
    shutil.copytree(paths.root, target)
    database.close()
    return HomePaths(target)


def test_the_files_of_stopped_processes_are_completed(paths, database, tmp_path):
    left = leave_logs(paths, database, tmp_path / "left")
    events = left.workspace("default").events
    assert has_log(events)
    assert list(complete_files(left)) == []
    assert not has_log(events)
    assert copied_texts(events) == [TEXT]
    assert list(complete_files(left)) == []


def test_incompletable_file_is_reported_and_others_are_completed(paths, database, tmp_path):
    left = leave_logs(paths, database, tmp_path / "left")
    events = left.workspace("default").events
    shutil.copytree(events.parent, left.workspace("damaged").root)
    for name in ("events.sqlite", "events.sqlite-wal"):
        left.workspace("damaged").events.with_name(name).write_bytes(b"not a store" * 1000)
    [(file, problem)] = complete_files(left)
    assert file == left.workspace("damaged").events
    assert isinstance(problem, StoreUnavailable)
    assert copied_texts(events) == [TEXT]


def test_a_store_in_use_is_reported(tmp_path):
    settings = fast_settings(tmp_path / "used")
    container = CommandContainer(settings)
    database = container.databases.get("default", create=True)
    with database.read() as db:
        meta.get(db, "any")
        accept_batch(container.databases.get("default"), [Draft(TEXT)])
        [message] = complete_store_files(settings)
    assert "events.sqlite is complete only together with events.sqlite-wal" in message
    container.close()
    assert list(complete_store_files(settings)) == []


def test_an_empty_data_directory_has_nothing_to_complete(paths):
    assert list(complete_files(paths)) == []
