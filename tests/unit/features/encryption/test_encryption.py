"""Every store of an encrypted home is unreadable without the key, and whole with it, wherever its making broke off."""

import contextlib
import os
import resource
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.paths import HomePaths, find_store_key
from pipeline.features.encryption.usecases import choose_key, decrypt_home, describe_encryption, encrypt_home
from pipeline.features.snapshots import job as local_snapshots
from pipeline.features.snapshots.job import scrub_snapshots
from pipeline.index.segment import build_segment, load_segment
from pipeline.kernel.errors import (
    Conflict,
    InvalidField,
    KeyUnavailable,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
)
from pipeline.kernel.records import Draft
from pipeline.kernel.store import backup, driver, encryption, key
from pipeline.kernel.store.driver import PLAIN
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.homes import Home
from tests.fakes.in_process import PROFILE

MARK = "Okapis hide in the forest"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A home of two workspaces with snapshots, and of the secrets that it shares with other machines; to be copied."""
    home = Home(tmp_path_factory.mktemp("filled") / "home")
    with contextlib.closing(home):
        for workspace in ("default", "other"):
            for number in range(20):
                home.say(f"{MARK}, says {workspace} for the {number}th time", workspace)
            local_snapshots.take_snapshot(home.settings.paths.workspace(workspace), datetime.now(UTC))
            home.say(f"{MARK} after the snapshot", workspace)
        home.sync.invite()
        return home.root


@pytest.fixture
def paths(filled, tmp_path):
    return HomePaths(shutil.copytree(filled, tmp_path / "home"))


@pytest.fixture
def encrypted(paths, key_file):
    assert choose_key(paths, key_file)
    encrypt_home(paths)
    return paths


def content(file):
    """Return everything that a store says, with the numbers of its rows, and what stands in its header."""
    with contextlib.closing(driver.connect(file)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        found = {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
        found["schema"] = db.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        found["pragmas"] = [db.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")]
    return found


def contents(paths):
    return {file: content(file) for file in encryption.list_all(paths)}


def traces(paths, *texts):
    return [
        file
        for file in paths.root.rglob("*")
        if file.is_file() and any(text in file.read_bytes() for text in (PLAIN[:-1], *(one.encode() for one in texts)))
    ]


def test_encryption_leaves_nothing_plain_and_loses_nothing(paths, key_file):
    before = contents(paths)
    assert len(before) == 5
    secret = content(paths.home)["circle"][0][0]
    assert set(traces(paths, MARK, secret)) >= set(before)
    choose_key(paths, key_file)
    done = encrypt_home(paths)
    assert (done.files, done.already, done.left) == ({"home": 1, "default": 2, "other": 2}, 0, [])
    assert traces(paths, MARK, secret) == []
    assert contents(paths) == before
    assert {file.stat().st_mode & 0o777 for file in (*before, paths.store_key, key_file)} == {0o600}


def test_transcript_records_are_encrypted(paths, key_file):
    home = Home(paths.root)
    with contextlib.closing(home):
        home.container.stores.transcripts.note_read(["u1"])
    choose_key(paths, key_file)
    assert encrypt_home(paths).files["home"] == 1
    assert not driver.is_plain(paths.home)
    home = Home(paths.root)
    with contextlib.closing(home):
        assert home.container.stores.transcripts.list_known(["u1", "u2"]) == {"u1"}


def test_and_back_without_a_loss(encrypted, key_file):
    before = contents(encrypted)
    assert decrypt_home(encrypted).files == {"home": 1, "default": 2, "other": 2}
    assert not encrypted.store_key.exists()
    assert key_file.is_file()
    assert contents(encrypted) == before
    assert all(driver.is_plain(file) for file in before)
    assert decrypt_home(encrypted).files == {}


def test_later_writes_and_snapshots_are_encrypted(encrypted):
    home = Home(encrypted.root)
    with contextlib.closing(home):
        kept = home.say("Tapirs swim at night", "new")
        snapshot = local_snapshots.take_snapshot(encrypted.workspace("new"), datetime.now(UTC))
        assert traces(encrypted, "Tapirs", MARK) == []
        assert backup.count_memories(snapshot.file) == 1
        revise.purge(home.database("new"), kept)
        assert home.texts("new") == []
        place = encrypted.workspace("new")
        assert scrub_snapshots(home.database("new"), place.snapshots, print) == 1
        assert [backup.count_memories(one.file) for one in backup.snapshots(place.snapshots)] == [0]
    local_snapshots.restore_snapshot(encrypted.workspace("default"), "latest", datetime.now(UTC), print)
    assert traces(encrypted, "Tapirs", MARK) == []
    assert describe_encryption(encrypted).plain == ()


def test_encrypted_store_is_unreadable_without_the_key(encrypted):
    with contextlib.closing(sqlite3.connect(encrypted.workspace("default").events)) as db:  # noqa: SIM117 - one is left
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            db.execute("SELECT * FROM sqlite_master")


@pytest.mark.parametrize("loss", ["gone", "another", "no key", "a folder"])
def test_unavailable_key_is_reported_and_no_file_is_changed(encrypted, key_file, loss):
    key_file.rename(key_file.with_suffix(".away"))
    if loss == "a folder":
        key_file.mkdir()
    elif loss != "gone":
        key_file.write_text("ab" * 32 if loss == "another" else "no key")
    before = {file: file.read_bytes() for file in encrypted.root.rglob("*.sqlite*")}
    place = encrypted.workspace("default")
    for attempt in (
        lambda: SqliteDatabase(place.events, PROFILE, create=False),
        lambda: SqliteDatabase(encrypted.workspace("new").events, PROFILE, create=True),
        lambda: local_snapshots.restore_snapshot(place, "latest", datetime.now(UTC), print),
        lambda: local_snapshots.take_snapshot(place, datetime.now(UTC)),
        lambda: [backup.count_memories(one.file) for one in backup.snapshots(place.snapshots)],
        Home(encrypted.root).sync.invite,
        lambda: encrypt_home(encrypted),
        lambda: decrypt_home(encrypted),
        lambda: choose_key(encrypted, None),
    ):
        with pytest.raises(KeyUnavailable, match=str(key_file)):
            attempt()
    assert {file: file.read_bytes() for file in encrypted.root.rglob("*.sqlite*")} == before
    assert describe_encryption(encrypted).problem is not None
    if key_file.is_dir():
        key_file.rmdir()
    key_file.with_suffix(".away").rename(key_file)
    assert describe_encryption(encrypted).problem is None
    assert len(content(place.events)["memory"]) == 21


def test_a_damaged_store_is_damaged_also_where_the_key_is_right(encrypted):
    file = encrypted.workspace("default").events
    file.write_bytes(bytes(4096) + file.read_bytes()[4096:])
    with pytest.raises(StoreDamaged):
        SqliteDatabase(file, PROFILE, create=False)


def test_the_key_is_never_in_the_data_directory(paths, tmp_path):
    (tmp_path / "link").symlink_to(paths.root)
    places = [paths.root / "key", paths.root / "workspaces" / "key", tmp_path / "link" / "key", tmp_path]
    for place in (*places, tmp_path / "unplugged" / "key"):
        with pytest.raises(InvalidField):
            choose_key(paths, place)
    with pytest.raises(InvalidField):
        choose_key(paths, None)
    assert not paths.store_key.exists()
    assert not (paths.root / "key").exists()


def test_file_with_other_content_is_rejected_as_key_and_not_changed(paths, key_file):
    key_file.write_text("my shopping list")
    with pytest.raises(KeyUnavailable):
        choose_key(paths, key_file)
    assert key_file.read_text() == "my shopping list"
    assert not paths.store_key.exists()


def test_moved_key_can_be_named_again_and_another_key_is_rejected(encrypted, key_file):
    before = contents(encrypted)
    moved = key_file.rename(key_file.with_name("moved.key"))
    assert not choose_key(encrypted, moved)
    assert contents(encrypted) == before
    other = key_file.with_name("other.key")
    with pytest.raises(KeyUnavailable, match="is missing"):
        choose_key(encrypted, other)
    other.write_text("ab" * 32)
    with pytest.raises(Conflict):
        choose_key(encrypted, other)
    assert contents(encrypted) == before


def test_lost_key_record_accepts_only_the_same_key_again(encrypted, key_file):
    before = contents(encrypted)
    encrypted.store_key.unlink()
    with pytest.raises(StoreDamaged, match="encrypted with another key than the data directory's"):
        SqliteDatabase(encrypted.workspace("default").events, PROFILE, create=False)
    other = key_file.with_name("other.key")
    with pytest.raises(Conflict, match="encrypted with another key"):
        choose_key(encrypted, other)
    assert not other.exists()
    other.write_text("ab" * 32)
    with pytest.raises(Conflict, match="encrypted with another key"):
        choose_key(encrypted, other)
    assert not encrypted.store_key.exists()
    assert not choose_key(encrypted, key_file)
    assert (encrypt_home(encrypted).already, contents(encrypted)) == (5, before)


def test_unreadable_snapshot_is_reported_and_not_counted_as_encrypted(encrypted):
    [snapshot] = backup.snapshots(encrypted.workspace("other").snapshots)
    snapshot.file.write_bytes(os.urandom(40960))
    done = encrypt_home(encrypted)
    assert (done.already, [str(snapshot.file) in problem for problem in done.left]) == (4, [True])


@pytest.mark.parametrize("way", ["encrypt", "decrypt"])
@pytest.mark.parametrize("after", range(5))
def test_half_of_the_files_are_as_good_as_all(paths, key_file, monkeypatch, way, after):
    """Between any two files it breaks off: everything can be used as it is, and another run ends it."""
    choose_key(paths, key_file)
    convert_all = encrypt_home if way == "encrypt" else decrypt_home
    if way == "decrypt":
        encrypt_home(paths)
    before = contents(paths)
    count = iter(range(after + 1))

    def convert(*arguments):
        if next(count, None) == after:
            raise KeyboardInterrupt
        return real(*arguments)

    real = encryption.convert
    with monkeypatch.context() as patched:
        patched.setattr(encryption, "convert", convert)
        with pytest.raises(KeyboardInterrupt):
            convert_all(paths)
    assert contents(paths) == before
    home = Home(paths.root)
    with contextlib.closing(home):
        for workspace in ("default", "other", "new"):
            home.say("Written in between", workspace)
            assert (
                backup.count_memories(local_snapshots.take_snapshot(paths.workspace(workspace), datetime.now(UTC)).file)
                >= 0
            )
    done = convert_all(paths)
    assert done.left == []
    if way == "encrypt":
        assert traces(paths, MARK, "Written in between") == []
    else:
        assert all(driver.is_plain(file) for file in encryption.list_all(paths))
    assert find_store_key(paths.home) == (paths.store_key if way == "encrypt" else None)
    assert "Written in between" in str(content(paths.workspace("other").events))


@pytest.mark.parametrize("place", ["settle", "verify", "replace_store_file"])
def test_inside_of_a_file_it_is_the_old_one_or_the_new_one(paths, key_file, monkeypatch, place):
    choose_key(paths, key_file)
    before = contents(paths)

    def die(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(backup, place, die)
        with pytest.raises(KeyboardInterrupt):
            encrypt_home(paths)
    assert contents(paths) == before
    encrypt_home(paths)
    assert contents(paths) == before
    assert traces(paths, MARK) == []


@contextlib.contextmanager
def file_limit(size):
    """Let no file of this process grow beyond a size, as on a disk that has no more room."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_file_without_room_for_its_copy_is_not_reported_as_damaged(paths, key_file, monkeypatch):
    choose_key(paths, key_file)
    before = contents(paths)

    def fail(*_arguments):
        # As of SQLCipher, whose function passes on the message of a failed write without its code.
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_ERROR
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(driver, "export", fail)
        with pytest.raises(StoreFull):
            encrypt_home(paths)
    assert contents(paths) == before
    assert encrypt_home(paths).left == []


def test_key_that_cannot_be_written_is_an_error_with_a_type(paths, key_file):
    with file_limit(0), pytest.raises(StoreUnavailable, match=r"store\.key"):
        choose_key(paths, key_file)
    assert find_store_key(paths.home) is None
    assert choose_key(paths, key_file)


def test_open_store_is_not_replaced_by_encryption(paths, key_file):
    choose_key(paths, key_file)
    database = SqliteDatabase(paths.workspace("default").events, PROFILE, create=False)
    with contextlib.closing(database), database.read(), pytest.raises(StoreBusy):
        encrypt_home(paths)
    assert encrypt_home(paths).left == []


def test_memory_written_during_encryption_is_not_lost(paths, key_file, monkeypatch):
    choose_key(paths, key_file)
    file = paths.workspace("default").events
    export = driver.export

    def write_meanwhile(source, target, key):
        counts = export(source, target, key)
        if source.execute("PRAGMA database_list").fetchone()[2] == str(file):
            with contextlib.closing(SqliteDatabase(file, PROFILE, create=False)) as database:
                accept(database, Draft("Written meanwhile"))
        return counts

    with monkeypatch.context() as patched:
        patched.setattr(driver, "export", write_meanwhile)
        with pytest.raises(StoreBusy):
            encrypt_home(paths)
    encrypt_home(paths)
    assert "Written meanwhile" in str(content(file))


def test_a_copy_that_is_not_the_same_takes_nobodys_place(paths, key_file, monkeypatch):
    """The library loses a row: the file stays as it was, is named, and its kind is still told."""
    from pipeline.kernel.store import cipher

    choose_key(paths, key_file)
    compare = cipher._compare
    events = paths.workspace("default").events

    def lose(db):
        if db.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()[0] == str(events):
            db.execute("DELETE FROM target.memory WHERE seq = 3")
        return compare(db)

    before = content(events)
    with monkeypatch.context() as patched:
        patched.setattr(cipher, "_compare", lose)
        done = encrypt_home(paths)
    assert len(done.left) == 1
    assert driver.is_plain(events)
    assert content(events) == before
    assert describe_encryption(paths).plain == (events,)


def test_a_damaged_file_is_left_and_named_and_the_others_are_encrypted(paths, key_file):
    [snapshot] = backup.snapshots(paths.workspace("other").snapshots)
    damaged = snapshot.file.read_bytes()
    damaged = damaged[:4096] + bytes(len(damaged) - 4096)
    snapshot.file.write_bytes(damaged)
    choose_key(paths, key_file)
    done = encrypt_home(paths)
    assert [str(snapshot.file) in problem for problem in done.left] == [True]
    assert snapshot.file.read_bytes() == damaged
    assert describe_encryption(paths).plain == (snapshot.file,)
    done = decrypt_home(paths)
    assert (sum(done.files.values()), done.left) == (4, [])


def test_the_old_file_is_overwritten(paths, key_file):
    choose_key(paths, key_file)
    file = paths.workspace("default").events
    with file.open("rb") as old:
        encrypt_home(paths)
        assert os.fstat(old.fileno()).st_nlink == 0
        assert old.read().strip(b"\0") == b""


def test_unencrypted_data_directory_needs_no_key(tmp_path):
    for place in ("events.sqlite", "workspaces/w/events.sqlite", "workspaces/w/snapshots/x.sqlite"):
        assert find_store_key(tmp_path / place) is None
    (tmp_path / "store.key").touch()
    segments = [str(folder) for folder in HomePaths(tmp_path).workspace("w").segment_folders]
    for place in ("home.sqlite", "workspaces/w/events.sqlite", "workspaces/w/snapshots/x.sqlite", *segments):
        assert find_store_key(tmp_path / place) == tmp_path / "store.key"
    with pytest.raises(KeyUnavailable, match="names no key"):
        driver.connect(Path(tmp_path / "home.sqlite"), "rwc")
    assert not (tmp_path / "home.sqlite").exists()


def test_earlier_encrypted_data_directory_is_sealed_by_encrypting_again(encrypted):
    """Before, the journal and the words of the search index stayed plain."""
    name, place = key.named(encrypted.store_key), encrypted.workspace("default")
    encrypted.store_key.unlink()
    encrypted.home.unlink()
    segments = [(folder, build_segment(folder, [(1, [MARK.lower()])])) for folder in place.segment_folders]
    journal = Operations(HomeFile(encrypted.home), str)
    journal.record_error("digest", MARK)
    encrypted.store_key.write_text("\n".join(map(str, name)))
    plain = {file.name for file in describe_encryption(encrypted).plain}
    assert plain == {"home.sqlite", "words.vocabulary.json", "fields.json"}
    assert encrypt_home(encrypted).files["home"] == 1
    assert describe_encryption(encrypted).plain == ()
    assert traces(encrypted, MARK, MARK.lower()) == []
    for folder, name in segments:
        assert load_segment(folder, name).posting(MARK.lower())[0].tolist() == [1]
    journal = Operations(HomeFile(encrypted.home), str)
    assert [error.message for error in journal.errors(workspace=None, limit=5)] == [MARK]


def test_a_damaged_file_is_named_because_its_texts_stay_plain(paths, key_file):
    paths.home.write_bytes(PLAIN + MARK.encode() * 1000)
    choose_key(paths, key_file)
    [problem] = encrypt_home(paths).left
    assert str(paths.home) in problem
    assert describe_encryption(paths).plain == (paths.home,)
