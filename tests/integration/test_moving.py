"""`reverie store migrate`: a store on a server of PostgreSQL and back in files, row by row, and what is refused."""

import contextlib
import shutil
import sqlite3
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import psycopg
import pytest

from config.declared import Secret
from config.paths import HomePaths
from config.process import Role
from config.settings import load_settings
from config.toml_files import SettingsError
from config.workspace_configs import ConfigFiles, save_workspace_setting
from pipeline.features.encryption.usecases import choose_key, encrypt_home
from pipeline.features.people import usecases as people
from pipeline.features.snapshots import job as local_snapshots
from pipeline.features.workspaces.config import opened_configs
from pipeline.kernel.records import Draft
from pipeline.kernel.store import backup, driver
from pipeline.kernel.store.database import WriterProfile
from pipeline.kernel.store.postgres import moves
from pipeline.kernel.store.stores import open_stores
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.command_line import run, run_json
from tests.fakes.homes import Home
from tests.fakes.in_process import fast_settings
from tests.fakes.rows import fill_all, read_all
from tests.integration.test_bundles import fill
from tests.support.stack import free_port

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A home whose tables all hold something, in two workspaces and beside them."""
    paths = HomePaths(tmp_path_factory.mktemp("made") / "home")
    with contextlib.closing(Home(paths.root)) as home:
        fill(home)
        home.say("I like quince")
        home.sync.invite()
        home.container.stores.operations.record_error("embed", "it broke", workspace="default")
        home.say("Okapis hide", workspace="other")
        people.add_person(home.container.stores.people, "Ann")
        home.container.stores.transcripts.note_read(["u1"])
    for file in (paths.workspace("default").events, paths.home):
        fill_all(file)
    return paths.root


@pytest.fixture
def filled(made, tmp_path, monkeypatch):
    """A copy of that home, in force for this process."""
    shutil.copytree(made, tmp_path / "home")
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    return HomePaths(tmp_path / "home")


@pytest.fixture
def migrate(filled, store_url, monkeypatch):
    """Move the store of the home in force to the server, or back."""

    def there(*options, code=0):
        monkeypatch.delenv("REVERIE_STORE", raising=False)
        return run_json("store", "migrate", "--to", store_url, *options, code=code)

    def back(*options, code=0):
        monkeypatch.setenv("REVERIE_STORE", store_url)
        return run_json("store", "migrate", "--to", "sqlite", *options, code=code)

    return there, back


def files_of(paths):
    return [paths.home, *(paths.workspace(name).events for name in paths.workspace_ids())]


def dump(paths):
    return {file.relative_to(paths.root): read_all(file) for file in files_of(paths)}


def outcomes(told):
    return {one["name"]: one["outcome"] for one in told["parts"]}


@contextlib.contextmanager
def on_server(url, home, workspace="default", create=False):
    """Open a workspace on the server as a server of Reverie's does."""
    settings = fast_settings(home.root, store=Secret(url))
    with contextlib.closing(open_stores(settings, WriterProfile("FULL", 0, 5000), str)) as stores:
        yield stores.databases.get(workspace, create=create)


def test_there_and_back_every_row_is_as_it_was(filled, migrate, tmp_path):
    there, back = migrate
    before = dump(filled)
    for file in (filled.workspace("default").events, filled.home):
        rows = before[file.relative_to(filled.root)]
        assert [name for name in rows if not rows[name]] in ([], ["touched"])
    told = there()
    assert outcomes(told) == dict.fromkeys(
        ("peers", "transcripts", "people", "operations", "default", "me", "other"), "moved"
    )
    assert told["moved"] is True
    assert dump(filled) == before
    returned = HomePaths(tmp_path / "returned")
    assert set(outcomes(back("--home", str(returned.root))).values()) == {"moved"}
    assert dump(returned) == before
    assert {file.stat().st_mode & 0o777 for file in files_of(returned)} == {0o600}
    assert not list(returned.root.rglob("*partial*")) + list(returned.root.rglob("*-wal"))


def test_store_moved_back_is_valid_and_accepts_writes(filled, migrate, tmp_path, monkeypatch):
    there, back = migrate
    there("--only", "other", "--only", "me")
    returned = tmp_path / "returned"
    back("--home", str(returned))
    monkeypatch.delenv("REVERIE_STORE")
    monkeypatch.setenv("REVERIE_HOME", str(returned))
    # Another Reverie may run at the default port.
    monkeypatch.setenv("REVERIE_PORT", str(free_port()))
    checks = run_json("doctor")["checks"]
    assert {"other: queue", "other: indexes", "me: queue"} <= {one["check"] for one in checks}
    assert [one for one in checks if one["state"] == "fail"] == []
    with contextlib.closing(Home(returned)) as home:
        assert home.texts("other") == ["Okapis hide"]
        home.say("Okapis hide well", workspace="other")
        assert home.texts("other") == ["Okapis hide", "Okapis hide well"]


def test_on_the_server_numbers_go_on_where_they_were(filled, migrate, store_url):
    with contextlib.closing(Home(filled.root)) as home:
        gone = home.say("Nobody will know", workspace="other")
        revise.purge(home.database("other"), gone)
    migrate[0]()
    with psycopg.connect(store_url) as db:
        assert db.execute("SELECT reltuples FROM pg_class WHERE relname = 'memory'").fetchone()[0] > 0
    with on_server(store_url, filled, "other") as database:
        added = accept(database, Draft("Okapis are striped")).id
        with database.read() as db:
            assert db.execute("SELECT seq, id FROM memory ORDER BY seq").fetchall()[1:] == [(3, added)]
            assert db.execute("SELECT count(*) FROM touched").fetchone()[0] == 0


def test_store_migration_dry_run_reports_and_moves_nothing(filled, migrate):
    there, back = migrate
    told = there("--dry-run")
    assert (told["moved"], set(outcomes(told).values())) == (False, {"would be moved"})
    assert all(one["rows"] for one in told["parts"])
    back(code=1)
    assert set(outcomes(there()).values()) == {"moved"}


def test_repeated_migration_moves_changes_and_rejects_conflicting_writes(filled, migrate, store_url):
    there, _ = migrate
    there()
    assert set(outcomes(there()).values()) == {"the same already"}
    with contextlib.closing(Home(filled.root)) as home:
        home.say("Okapis hide from cameras", workspace="other")
    assert outcomes(there()) | {"other": ""} == dict.fromkeys(outcomes(there()), "the same already") | {"other": ""}
    with on_server(store_url, filled, "other") as database:
        accept(database, Draft("Written on the server"))
    assert outcomes(there())["other"] == "moved before, and written to there since"
    with contextlib.closing(Home(filled.root)) as home:
        home.say("Written in the file", workspace="other")
    told = there(code=1)
    [refused] = [one for one in told["parts"] if one["problem"]]
    assert (refused["name"], "both were written to" in refused["problem"]) == ("other", True)
    with on_server(store_url, filled, "other") as database, database.read() as db:
        texts = {row[0] for row in db.execute("SELECT content FROM memory")}
    assert texts == {"Okapis hide", "Okapis hide from cameras", "Written on the server"}


def test_another_homes_workspace_is_never_overwritten(filled, migrate, tmp_path, monkeypatch):
    there, _ = migrate
    there()
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "another"))
    with contextlib.closing(Home(tmp_path / "another")) as another:
        another.say("Somebody else's")
        another.say("And one that is nowhere yet", workspace="fresh")
        another.container.operations.record_error("embed", "another broke")
    told = there(code=1)
    assert outcomes(told) == {"default": "refused", "fresh": "moved", "operations": "another one is there, and is kept"}
    monkeypatch.setenv("REVERIE_HOME", str(filled.root))
    assert set(outcomes(there()).values()) == {"the same already"}


def test_empty_workspace_on_the_server_does_not_block_migration(filled, migrate, store_url):
    with on_server(store_url, filled, "other", create=True):
        pass
    assert outcomes(migrate[0]())["other"] == "moved"


def test_store_moved_back_replaces_local_copies_and_derived_indexes(filled, migrate, store_url):
    there, back = migrate
    there()
    place = filled.workspace("other")
    local_snapshots.take_snapshot(place, datetime.now(UTC))
    for derived in (place.lexical, place.vectors):
        derived.mkdir()
    with on_server(store_url, filled, "other") as database:
        with database.read() as db:
            [(first,)] = db.execute("SELECT id FROM memory").fetchall()
        revise.purge(database, first)
        accept(database, Draft("Written on the server"))
    assert outcomes(back()) == dict.fromkeys(
        ("peers", "transcripts", "people", "operations", "default", "me"), "the same already"
    ) | {"other": "moved"}
    with contextlib.closing(Home(filled.root)) as home:
        assert home.texts("other") == ["Written on the server"]
    assert not place.lexical.exists()
    assert not place.vectors.exists()
    kept = backup.snapshots(place.snapshots)
    assert len(kept) == 2
    assert [b"Okapis hide" in file.read_bytes() for file in (place.events, *(one.file for one in kept))] == [False] * 3


def test_a_file_that_was_written_to_since_is_not_replaced(filled, migrate, store_url):
    there, back = migrate
    there()
    with on_server(store_url, filled, "other") as database:
        accept(database, Draft("Written on the server"))
    with contextlib.closing(Home(filled.root)) as home:
        home.say("Written in the file", workspace="other")
    told = back(code=1)
    assert outcomes(told)["other"] == "refused"
    with contextlib.closing(Home(filled.root)) as home:
        assert home.texts("other") == ["Okapis hide", "Written in the file"]


def test_encrypted_store_is_moved_and_returns_encrypted(filled, migrate, key_file):
    there, back = migrate
    before = dump(filled)
    choose_key(filled, key_file)
    encrypt_home(filled)
    there()
    with contextlib.closing(Home(filled.root)) as home:
        home.say("Written after the move", workspace="other")
    assert outcomes(back())["other"] == "moved before, and written to there since"
    filled.workspace("other").events.unlink()
    assert outcomes(back())["other"] == "moved"
    assert dump(filled) == before
    assert not driver.is_plain(filled.workspace("other").events)


@pytest.mark.parametrize("role", ["web", "up", "scheduler"])
def test_a_stack_that_runs_is_not_moved_under(filled, migrate, role):
    held = Role(filled.root, role)
    held.take()
    try:
        migrate[0](code=1)
    finally:
        held.release()
    assert set(outcomes(migrate[0]()).values()) == {"moved"}


def test_a_server_that_others_use_is_not_moved_from_nor_to(filled, migrate, store_url):
    there, back = migrate
    there()
    with on_server(store_url, filled, "other") as database, database.read():
        for move in (there, back):
            assert "Reverie connections" in move(code=1)["error"]["message"]


def test_a_connection_that_ends_during_the_check_is_no_obstacle(filled, migrate, store_url, monkeypatch):
    other = psycopg.connect(store_url, application_name="reverie")

    def close_and_wait(seconds):
        other.close()
        time.sleep(seconds)

    monkeypatch.setattr(moves, "time", SimpleNamespace(**vars(time) | {"sleep": close_and_wait}))
    migrate[0]()
    assert other.closed


@pytest.fixture
def silent(filled):
    """A workspace that is incognito, and one that will be once something is said in it."""
    for name in ("other", "unheard-of"):
        ConfigFiles(filled).edit(name, lambda _text: f"# ours, é\r\n{INCOGNITO}")
    return ConfigFiles(filled)


INCOGNITO = "incognito = true\r\n"


def of_settings(told):
    return {one["name"]: one["outcome"] for one in told["parts"] if one["of"] == "settings"}


@contextlib.contextmanager
def served_configs(url, paths):
    with opened_configs(fast_settings(paths.root, store=Secret(url))) as configs:
        yield configs


def test_workspace_settings_are_migrated_byte_for_byte_and_back(silent, filled, migrate, store_url, tmp_path):
    there, back = migrate
    text = f"# ours, é\r\n{INCOGNITO}"
    assert of_settings(there("--dry-run")) == dict.fromkeys(("other", "unheard-of"), "would be moved")
    assert of_settings(there()) == dict.fromkeys(("other", "unheard-of"), "moved")
    with served_configs(store_url, filled) as configs:
        assert [configs.read(name).text for name in ("other", "unheard-of", "default")] == [text, text, ""]
    assert of_settings(there()) == dict.fromkeys(("other", "unheard-of"), "the same already")
    returned = HomePaths(tmp_path / "returned")
    assert of_settings(back("--home", str(returned.root))) == dict.fromkeys(("other", "unheard-of"), "moved")
    for name in ("other", "unheard-of"):
        assert returned.workspace(name).config.read_bytes() == text.encode()
        assert returned.workspace(name).config.stat().st_mode & 0o777 == 0o600
    assert not returned.workspace("default").config.exists()
    assert not list(returned.root.rglob("*partial*"))


def test_a_workspace_takes_its_own_settings_along_when_it_is_moved_alone(silent, filled, migrate, store_url):
    told = migrate[0]("--only", "other")
    assert [(one["of"], one["name"]) for one in told["parts"]] == [("settings", "other"), ("workspace", "other")]
    with served_configs(store_url, filled) as configs:
        assert "incognito = true" in configs.read("other").text


def test_settings_changed_on_both_sides_are_rejected_by_migration(silent, filled, migrate, store_url):
    there, back = migrate
    there()
    with served_configs(store_url, filled) as configs:
        save_workspace_setting(configs, "other", "incognito", None)
        save_workspace_setting(configs, "other", "read_only", value=True)
    assert of_settings(there())["other"] == "moved before, and written to there since"
    with served_configs(store_url, filled) as configs:
        configs.edit("unheard-of", lambda _text: "")
    assert of_settings(back()) == dict.fromkeys(("other", "unheard-of"), "moved")
    assert silent.read("other").text == "# ours, é\r\nread_only = true\n"
    assert silent.read("unheard-of").text == ""
    save_workspace_setting(silent, "other", "imports_in_prompts", value=False)
    with served_configs(store_url, filled) as configs:
        save_workspace_setting(configs, "other", "review", value=True)
    for move in (there, back):
        assert of_settings(move(code=1))["other"] == "refused"
    assert silent.read("other").text == "# ours, é\r\nread_only = true\nimports_in_prompts = false\n"


def test_settings_that_are_none_go_along_and_keep_the_workspace_closed(silent, filled, migrate, store_url):
    filled.workspace("other").config.write_bytes(b"incognito = true\n[")
    migrate[0]()
    with served_configs(store_url, filled) as configs, pytest.raises(SettingsError):
        load_settings(own=configs.read("other"))


def test_workspace_with_unmovable_settings_is_not_moved(silent, filled, migrate):
    there, back = migrate
    filled.workspace("other").config.write_bytes(b"incognito = true\n# \0")
    told = there(code=1)
    [settings, store] = [one for one in told["parts"] if one["problem"]]
    assert [(one["of"], one["name"]) for one in (settings, store)] == [("settings", "other"), ("workspace", "other")]
    assert settings["problem"] == "config other: contains a NUL character"
    assert "its settings were not moved" in store["problem"]
    assert ("workspace", "other") not in {(one["of"], one["name"]) for one in back("--dry-run")["parts"]}
    filled.workspace("other").config.write_bytes(b"incognito = true\n")
    assert {one["outcome"] for one in there()["parts"] if one["name"] == "other"} == {"moved"}


def test_settings_that_are_no_text_are_named_and_nothing_is_moved(silent, filled, migrate):
    filled.workspace("other").config.write_bytes(b"incognito = true\n# \xff")
    assert "other/config.toml" in migrate[0](code=4)["error"]["message"]
    assert "nothing to move" in migrate[1](code=1)["error"]["message"]


def test_text_invalid_in_postgresql_is_named_and_others_are_moved(filled, migrate):
    there, back = migrate
    with contextlib.closing(sqlite3.connect(filled.workspace("other").events)) as db, db:
        db.execute(
            "INSERT INTO turn (seq, session_id, role, content, at) "
            "VALUES (7, 's', 'user', 'before' || char(0) || 'after', '')"
        )
    told = there(code=1)
    [refused] = [one for one in told["parts"] if one["problem"]]
    assert (refused["name"], refused["outcome"]) == ("other", "refused")
    assert refused["problem"] == "turn 7: content contains a NUL character, which PostgreSQL cannot store"
    assert "other" not in outcomes(back("--dry-run"))
    with contextlib.closing(sqlite3.connect(filled.workspace("other").events)) as db, db:
        db.execute("DELETE FROM turn WHERE seq = 7")
    assert outcomes(there())["other"] == "moved"


def test_migration_copy_that_differs_from_its_source_is_undone(filled, migrate, store_url):
    there, back = migrate
    there("--only", "me")
    with psycopg.connect(store_url) as db:
        db.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN NEW.content := NEW.content || ' '; RETURN NEW; END $$"
        )
        db.execute(
            "CREATE TRIGGER spoil BEFORE INSERT ON memory FOR EACH ROW WHEN (NEW.seq = 2) EXECUTE FUNCTION spoil()"
        )
    told = there(code=1)
    refused = {one["name"]: one["problem"] for one in told["parts"] if one["problem"]}
    assert refused == {"default": "the copy differs from its source in memory: 2"}
    assert "default" not in outcomes(back("--dry-run"))
    with psycopg.connect(store_url) as db:
        db.execute("DROP TRIGGER spoil ON memory")
    assert outcomes(there())["default"] == "moved"


SECRET = "f1umadidd1e"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda url: url.replace("reverie@", f"nobody:{SECRET}@"), "nobody"),
        (lambda url: url.replace("reverie@", f"reverie:{SECRET}@") + "_missing", "does not exist"),
        (lambda _url: f"postgresql://reverie:{SECRET}@127.0.0.1:1/reverie", "refused"),
    ],
    ids=["no such role", "no such database", "nobody answers"],
)
def test_unusable_server_is_reported_without_its_password(filled, store_url, change, says):
    before = dump(filled)
    done = run("store", "migrate", "--to", change(store_url), code=4)
    assert says in done.output
    assert SECRET not in done.output
    assert dump(filled) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--to", f"mysql://root:{SECRET}@localhost/x"), "not a PostgreSQL URL"),
        (("--to", "sqlite"), "REVERIE_STORE names no server"),
        (("--to", "postgresql://127.0.0.1:1/x", "--home", "elsewhere"), "only --to sqlite"),
    ],
)
def test_a_place_that_is_none_is_wrong_usage(filled, tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    done = run("store", "migrate", *options, code=2)
    assert says in " ".join(done.output.split())
    assert SECRET not in done.output
    assert [place.name for place in tmp_path.iterdir()] == ["home"]


def test_a_database_of_another_encoding_or_version_is_refused(filled, migrate, postgres, store_url):
    with psycopg.connect(postgres.admin_url, autocommit=True) as db:
        db.execute("CREATE DATABASE of_bytes OWNER reverie ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    url = f"{store_url.rpartition('/')[0]}/of_bytes"
    assert "encoding is not UTF8" in run("store", "migrate", "--to", url, code=4).output
    migrate[0]("--only", "me")
    with psycopg.connect(store_url) as db:
        db.execute("INSERT INTO migration VALUES ('p999_later')")
    assert "p999_later" in migrate[0](code=4)["error"]["message"]


def test_a_workspace_that_is_not_there_is_said(filled, migrate):
    assert "no such workspace: quagga" in migrate[0]("--only", "quagga", code=1)["error"]["message"]


def test_migration_output_explains_the_setting_and_the_files_that_stay(filled, store_url):
    said = run("store", "migrate", "--to", store_url).output
    assert f"to use it, set REVERIE_STORE={store_url}" in said
    assert "settings, token, models and indexes stay" in said
    assert "encrypted" not in said


def test_migration_of_an_encrypted_store_warns_about_the_plain_server(filled, store_url, key_file):
    choose_key(filled, key_file)
    encrypt_home(filled)
    assert (
        "the files here are encrypted, the server's database is not"
        in run("store", "migrate", "--to", store_url).output
    )
