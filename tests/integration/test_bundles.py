"""Export and import: a home as one file and back to the row, as notes that people edit, as lines of JSON."""

import contextlib
import gzip
import hashlib
import json
import os
from pathlib import Path

import pyrage
import pytest

from pipeline.errors import Conflict, InvalidField, NotFound
from pipeline.records import EdgeDraft, EdgeKind, Kind, Revision, Scope, ScopeKind
from pipeline.services import export
from pipeline.store import replicated_records
from pipeline.write import revise
from tests.fakes.homes import Home, exchange_until_still, pair
from tests.fakes.passphrases import QuickPassphrases

pytestmark = pytest.mark.usefixtures("either_home")


@pytest.fixture
def quick_passphrases(monkeypatch):
    monkeypatch.setattr(pyrage, "passphrase", QuickPassphrases())


@pytest.fixture
def home(tmp_path):
    with contextlib.closing(Home(tmp_path / "home")) as made:
        yield made


@pytest.fixture
def other(tmp_path):
    with contextlib.closing(Home(tmp_path / "other")) as made:
        yield made


def fill(home):
    """Write something of every kind that a bundle has to carry."""
    first = home.say("The build uses make", tags=("build", "old"), metadata={"of": [1, {"deep": None}]})
    second = home.say("The build uses just", source="import")
    revise.edit(home.database(), first, Revision(content="The build uses task", pinned=True, importance=0.9))
    revise.add_edge(home.database(), second, EdgeDraft(EdgeKind.CONTRADICTS, first))
    home.say("The build uses just")
    for number, day in ((8123, 1), (9000, 5)):
        details = {"subject": "shop", "attribute": "port", "value": number}
        home.say("told", kind=Kind.KEYED_FACT, details=details, occurred_at=f"2026-01-0{day}T00:00:00.000Z")
    home.say("a thought", scope=Scope(ScopeKind.SESSION, "s1"), session_id="s1")
    gone, away = home.say("the flumadiddle"), home.say("put away")
    revise.purge(home.database(), gone)
    revise.archive(home.database(), away)
    home.say("Anchored", branch="main", expires_at="2030-01-01T00:00:00.000Z")
    home.say("I like tea", workspace="me")
    with home.database().write() as db:
        db.execute("UPDATE memory SET recall_count = 3, recalled_at = '2026-02-03T00:00:00.000Z' WHERE seq = 1")
    return first


def dump(home, workspace="default"):
    """Return all that a bundle carries of a workspace, as text."""
    with home.database(workspace).read() as db:
        keys = replicated_records.list_keys(db)
        told = replicated_records.read(db, keys)
        local = list(replicated_records.read_local_values(db))
        gone = sorted(row[0] for row in db.execute("SELECT memory_id FROM operation WHERE kind = 'purge'"))
    lines = [json.dumps([key, told[key]], sort_keys=True) for key in keys]
    return "\n".join([*lines, *(json.dumps(one, sort_keys=True) for one in local), *gone])


def write(home, target, phrase=None, workspaces=("default", "me")):
    return export.export_bundle(home.settings.paths, home.container.stores, target, workspaces, phrase)


def read(home, source, phrase=None):
    return export.import_bundle(home.settings.paths, home.container.stores, source, phrase)


@pytest.mark.usefixtures("quick_passphrases")
@pytest.mark.parametrize("phrase", [None, "correct horse battery staple"])
def test_a_bundle_makes_an_empty_home_the_one_that_wrote_it_to_the_row(home, other, tmp_path, phrase):
    fill(home)
    file = tmp_path / "all.bundle"
    counts = write(home, file, phrase)
    assert counts.memories == {"default": 7, "me": 1}
    assert (file.stat().st_mode & 0o777) == 0o600
    merged = read(other, file, phrase)
    assert merged.put_aside == []
    for workspace in ("default", "me"):
        assert dump(home, workspace) == dump(other, workspace)
    if phrase is None:
        assert "flumadiddle" not in gzip.decompress(file.read_bytes()).decode()


def test_a_bundle_that_is_read_twice_changes_nothing_more(home, other, tmp_path):
    fill(home)
    write(home, tmp_path / "b")
    read(other, tmp_path / "b")
    before = dump(other)
    again = read(other, tmp_path / "b")
    assert sum(again.applied.values()) == 0
    assert dump(other) == before


def test_into_a_home_that_holds_something_a_bundle_is_merged_by_the_rules(home, other, tmp_path):
    first = fill(home)
    write(home, tmp_path / "b")
    read(other, tmp_path / "b")
    revise.edit(other.database(), first, Revision(content="The build uses bazel"))
    mine = other.say("only here")
    read(other, tmp_path / "b")
    assert other.get(first).content == "The build uses bazel"
    assert other.get(mine) is not None
    revise.purge(other.database(), first)
    read(other, tmp_path / "b")
    assert other.get(first) is None


def test_what_a_paired_device_signed_stays_its_own(home, other, tmp_path):
    pair(home, other, url=f"dir:{tmp_path}/shared")
    home.say("signed")
    exchange_until_still(home, other)
    write(home, tmp_path / "b", workspaces=["default"])
    assert read(other, tmp_path / "b").applied == {"default": 0}


def spoil_cut(data):
    return data[: len(data) // 2]


def spoil_tail(data):
    return data[:-9]


def spoil_byte(data):
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


def spoil_lines(data):
    lines = gzip.decompress(data).splitlines(keepends=True)
    return gzip.compress(b"".join([*lines[:3], *lines[4:]]))


def spoil_order(data):
    lines = gzip.decompress(data).splitlines(keepends=True)
    return gzip.compress(b"".join([lines[0], lines[1], lines[3], lines[2], *lines[4:]]))


def spoil_version(data):
    return gzip.compress(gzip.decompress(data).replace(b'"version":1', b'"version":9', 1))


def spoil_other(_data):
    return b"PK\x03\x04 something else"


# An encrypted bundle has no lines to change.
SPOILS = (spoil_tail, spoil_byte, spoil_other)
SPOILS_OF_PLAIN = (*SPOILS, spoil_cut, spoil_lines, spoil_order, spoil_version)


def is_rejected(home, file, phrase):
    try:
        read(home, file, phrase)
    except InvalidField:
        return True
    return False


def list_accepted(home, other, file, phrase, spoils):
    """List the ways to damage a bundle that the other home does not notice."""
    write(home, file, phrase, home.settings.paths.workspace_ids())
    complete, accepted = file.read_bytes(), []
    for spoil in spoils:
        file.write_bytes(spoil(complete))
        if not is_rejected(other, file, phrase):
            accepted.append(spoil)
    file.write_bytes(complete)
    return accepted


@pytest.mark.usefixtures("quick_passphrases")
@pytest.mark.parametrize(("phrase", "spoils"), [(None, SPOILS_OF_PLAIN), ("correct horse", SPOILS)])
def test_an_incomplete_bundle_is_rejected(home, other, tmp_path, phrase, spoils):
    fill(home)
    assert list_accepted(home, other, tmp_path / "b", phrase, spoils) == []
    assert other.settings.paths.workspace_ids() == []


@pytest.mark.usefixtures("quick_passphrases")
def test_without_its_passphrase_a_bundle_stays_shut(home, other, tmp_path):
    fill(home)
    write(home, tmp_path / "b", "correct horse")
    with pytest.raises(InvalidField, match="--passphrase-file"):
        read(other, tmp_path / "b")
    with pytest.raises(InvalidField, match="passphrase does not open"):
        read(other, tmp_path / "b", "battery staple")


@pytest.mark.parametrize("either_home", ["plain"], indirect=True)
def test_a_bundle_that_age_encrypted_is_opened_or_rejected(home, other, tmp_path):
    home.say("The build uses make")
    # With age, opening a bundle takes a second.
    assert list_accepted(home, other, tmp_path / "b", "correct horse", (spoil_tail, spoil_byte)) == []
    assert other.settings.paths.workspace_ids() == []
    assert read(other, tmp_path / "b", "correct horse").applied == {"default": 1}


HOSTILE = {
    "long line": [b'{"operation":"' + b"0" * 17 * 2**20 + b'"}\n'],
    "unknown lines": [b"{}\n"] * 2,
    "too many bytes": [b'{"local":"' + b"0" * 2**20 + b'"}\n'] * 70,
    "deep": [b"[" * 200_000],
    "deep operation": [b'{"operation":' + b"[" * 3000 + b"]" * 3000 + b"}\n"],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_bundle_that_unpacks_to_too_much_is_rejected(home, other, tmp_path, kind):
    fill(home)
    write(home, tmp_path / "b", None, home.settings.paths.workspace_ids())
    header = gzip.decompress((tmp_path / "b").read_bytes()).splitlines(keepends=True)[0]
    with gzip.open(tmp_path / "hostile", "wb", compresslevel=1) as file:
        file.writelines([header, *HOSTILE[kind]])
    with pytest.raises(InvalidField):
        read(other, tmp_path / "hostile", None)
    assert other.settings.paths.workspace_ids() == []


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices are POSIX's")
def test_a_bundle_that_is_no_regular_file_is_rejected(other, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(InvalidField):
            read(other, file, None)


def test_an_export_of_what_is_not_there_leaves_no_file(home, tmp_path):
    home.say("something")
    with pytest.raises(NotFound):
        write(home, tmp_path / "b", workspaces=["nowhere"])
    assert list(tmp_path.glob("*b*")) == []


def test_a_damaged_line_keeps_no_other_from_being_read(home, other, tmp_path):
    home.say("one")
    home.say("two")
    write(home, tmp_path / "b", workspaces=["default"])
    lines = gzip.decompress((tmp_path / "b").read_bytes()).splitlines()
    lines[2] = lines[2].replace(b'"kind":"fact"', b'"kind":"fiction"', 1)
    body = b"".join(line + b"\n" for line in lines[:-1])
    end = {"end": {"lines": len(lines) - 1, "digest": hashlib.sha256(body).hexdigest()}}
    (tmp_path / "b").write_bytes(gzip.compress(body + json.dumps(end).encode() + b"\n"))
    merged = read(other, tmp_path / "b")
    assert len(merged.put_aside) == 1
    assert other.texts() == ["two"]


# Notes


def notes_of(home, folder):
    export.export_notes(home.settings.paths, home.container.databases, folder, home.settings.paths.workspace_ids())
    return {note.read_text("utf-8").rpartition("---\n")[2].strip(): note for note in folder.rglob("*.md")}


def take(home, folder):
    return export.import_notes(home.container.workspace("default"), folder)


def test_notes_are_edited_and_come_back_as_edits(home, tmp_path):
    first = fill(home)
    notes = notes_of(home, tmp_path / "notes")
    assert {"The build uses task", "The build uses just", "I like tea"} <= set(notes)
    assert "put away" not in notes
    file = notes["The build uses task"]
    file.write_text(file.read_text("utf-8").replace("The build uses task", "The build uses ninja"), "utf-8")
    (tmp_path / "notes" / "default" / "new.md").write_text("A note of my own\n", "utf-8")
    merged = take(home, tmp_path / "notes")
    assert (merged.edited, merged.created, merged.refused) == (1, 1, [])
    assert home.get(first).content == "The build uses ninja"
    assert "A note of my own" in home.texts()


def test_notes_that_nobody_touched_change_nothing_even_where_the_memory_did(home, tmp_path):
    first = fill(home)
    notes_of(home, tmp_path / "notes")
    revise.edit(home.database(), first, Revision(content="The build uses nix"))
    merged = take(home, tmp_path / "notes")
    assert (merged.edited, merged.created, merged.refused) == (0, 0, [])
    assert home.get(first).content == "The build uses nix"


def test_a_note_and_its_memory_that_both_changed_are_left_alone_and_told(home, tmp_path):
    first = fill(home)
    file = notes_of(home, tmp_path / "notes")["The build uses task"]
    file.write_text(file.read_text("utf-8").replace("uses task", "uses ninja"), "utf-8")
    revise.edit(home.database(), first, Revision(content="The build uses nix"))
    merged = take(home, tmp_path / "notes")
    assert merged.edited == 0
    assert "changed too" in merged.refused[0]
    assert home.get(first).content == "The build uses nix"


@pytest.mark.parametrize(
    "text",
    ["---\nreverie: [1\n---\nx", "---\nkind: nonsense\n---\nx", "---\n- a\n---\nx", "---\nworkspace: ../x\n---\nx"],
)
def test_a_note_that_cannot_be_read_is_an_error_that_names_it(home, tmp_path, text):
    fill(home)
    notes_of(home, tmp_path / "notes")
    (tmp_path / "notes" / "bad.md").write_text(text, "utf-8")
    try:
        told = take(home, tmp_path / "notes").refused
    except InvalidField as error:
        told = [str(error)]
    assert any("bad.md" in one or "workspace" in one for one in told)


def test_notes_are_not_written_over_other_things(home, tmp_path):
    fill(home)
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "mine.md").write_text("mine", "utf-8")
    with pytest.raises(Conflict, match="contains other files"):
        notes_of(home, tmp_path / "vault")


def test_lines_of_json_hold_everything_with_its_history(home, tmp_path):
    first = fill(home)
    counts = export.export_lines(home.settings.paths, home.container.databases, tmp_path / "lines", ["default", "me"])
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text("utf-8").splitlines()]
    assert counts == {"default": 7, "me": 1}
    assert len(lines) == 8
    line = next(one for one in lines if one["id"] == first)
    assert [entry["content"] for entry in line["history"] if entry["event"] == "edited"] == ["The build uses make"]
    assert line["content"] == "The build uses task"
